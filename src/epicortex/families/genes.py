"""The genes of one layer: named arrays with a row for each node.

A gene is one row of every array: its weights, its bias, and whatever else belongs to it, such as the
normalisation of its output. Whoever takes, mixes or drops genes treats all arrays alike.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Shape


class Genes(Mapping[str, Array]):
    """Named read-only float32 arrays whose first axis counts the nodes of a layer.

    >>> genes = Genes(weight=np.ones((2, 3), np.float32), bias=np.zeros(2, np.float32))
    >>> genes.bias.tolist(), {name: array.shape for name, array in genes.take([1]).items()}
    ([0.0, 0.0], {'weight': (1, 3), 'bias': (1,)})
    """

    __slots__ = ("_arrays",)

    def __init__(self, weight: Array, bias: Array, **others: Array) -> None:
        self._arrays = {"weight": weight, "bias": bias, **others}
        for array in self._arrays.values():
            array.setflags(write=False)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def items(self) -> ItemsView[str, Array]:
        """Names and arrays; those of the dict itself, which are quicker than a mapping's."""
        return self._arrays.items()

    def __reduce__(self) -> tuple[object, ...]:
        return _genes, (self._arrays,)

    @property
    def weight(self) -> Array:
        """The weights of the nodes' input connections."""
        return self._arrays["weight"]

    @property
    def bias(self) -> Array:
        """One number a node."""
        return self._arrays["bias"]

    def take(self, rows: Sequence[int]) -> Genes:
        """Some of the genes, whole."""
        return Genes(**{name: array[list(rows)] for name, array in self._arrays.items()})

    def replace(self, **arrays: Array) -> Genes:
        """The same genes with some arrays exchanged."""
        return Genes(**{**self._arrays, **arrays})

    def same_bits(self, other: Genes) -> bool:
        """Whether both hold the same arrays, bit for bit."""
        return self.keys() == other.keys() and all(
            array.shape == other[name].shape and array.tobytes() == other[name].tobytes()
            for name, array in self._arrays.items()
        )


def _genes(arrays: dict[str, Array]) -> Genes:
    return Genes(**arrays)


def check_genes(genes: Mapping[str, Array], shapes: Mapping[str, Shape], where: str) -> None:
    """Refuse arrays that are not exactly those that a layer has, in name, shape and type."""
    if genes.keys() != shapes.keys():
        raise GenomeError(f"{where}: needs the arrays {', '.join(shapes)}, has {', '.join(genes)}")
    for name, shape in shapes.items():
        if genes[name].shape != shape:
            raise GenomeError(f"{where}: {name} of shape {genes[name].shape} does not fit; expected {shape}")
        if genes[name].dtype != np.float32:
            raise GenomeError(f"{where}: weights must be float32, not {genes[name].dtype}")
