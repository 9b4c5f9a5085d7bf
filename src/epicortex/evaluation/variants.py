"""Many networks of one structure that differ in their weights: the candidates of an evolution strategy.

The weights are one vector. Modules of torch compute all candidates of a step at once; any other model, and
any task, takes them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Arrays, Family

if TYPE_CHECKING:
    from torch import Tensor, nn

Vector = NDArray[np.float64]
Worth = Callable[[Any], float]
"""What a model is worth in one step: on a batch, or in some episodes."""


class Variants(Protocol):
    """The networks of one structure."""

    start: Vector
    """The weights to begin with."""

    def worths(self, worth: Any, rows: Iterator[Vector], pace: Callable[[], None]) -> list[float]:
        """What networks with these weights are worth."""

    def phenotype(self, weights: Vector) -> Any:
        """The network with these weights."""


class Rebuilt:
    """Candidates of any family, each built anew from its arrays."""

    def __init__(self, family: Family[Any], phenotype: Any) -> None:
        self._family = family
        self._description, self._arrays = family.encode(phenotype)
        self.start = flattened(self._arrays)

    def worths(self, worth: Worth, rows: Iterator[Vector], pace: Callable[[], None]) -> list[float]:
        """One after another."""
        found = []
        for weights in rows:
            pace()
            found.append(worth(self._family.build(self.phenotype(weights))))
        return found

    def phenotype(self, weights: Vector) -> Any:
        """The network with these weights."""
        return self._family.decode(self._description, shaped(weights, self._arrays))


class Stacked:
    """Candidates of a module, whose parameters are stacked; only what learns by gradients is varied."""

    def __init__(self, family: Family[Any], phenotype: Any) -> None:
        self._family, self._phenotype = family, phenotype
        self._module: nn.Module = family.build(phenotype).eval()
        self._names = [name for name, one in self._module.named_parameters() if one.requires_grad]
        parameters = dict(self._module.named_parameters())
        self._shapes = [parameters[name].shape for name in self._names]
        self.start = np.concatenate(
            [parameters[name].detach().numpy().ravel() for name in self._names]
        ).astype(np.float64)

    def worths(self, worth: Any, rows: Iterator[Vector], pace: Callable[[], None]) -> list[float]:
        """All at once, as many as fit into a little memory; `worth` has `of_many` for that."""
        import torch

        found: list[float] = []
        for chunk in _chunks(rows, most=max(1, 2**21 // len(self.start))):
            pace()
            stack = self._stack(torch.from_numpy(np.stack(chunk).astype(np.float32)))
            found += worth.of_many(lambda x, stack=stack: self._logits(stack, x))
        return found

    def phenotype(self, weights: Vector) -> Any:
        """The network with these weights."""
        import torch

        parts = self._stack(torch.from_numpy(weights.astype(np.float32))[None])
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                if name in parts:
                    parameter.copy_(parts[name][0])
        return self._family.learned(self._phenotype, self._module)

    def _stack(self, rows: Tensor) -> dict[str, Tensor]:
        """The parameters by name, [candidates, *shape] each."""
        import torch

        parts = torch.split(rows, [shape.numel() for shape in self._shapes], dim=1)
        pairs = zip(self._names, parts, self._shapes, strict=True)
        return {name: part.reshape(len(rows), *shape) for name, part, shape in pairs}

    def _logits(self, stack: dict[str, Tensor], x: Tensor) -> Tensor:
        from torch.func import functional_call, vmap

        def one(parameters: dict[str, Tensor]) -> Tensor:
            outputs: Tensor = functional_call(self._module, parameters, (x,))
            return outputs

        logits: Tensor = vmap(one)(stack)
        return logits


def flattened(arrays: Arrays) -> Vector:
    """All arrays as one vector, in the order of their names."""
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)]).astype(np.float64)


def shaped(values: Vector, like: Arrays) -> Arrays:
    """Back from `flattened`."""
    found, place = {}, 0
    for name in sorted(like):
        array = like[name]
        found[name] = values[place : place + array.size].reshape(array.shape).astype(np.float32)
        place += array.size
    return {name: found[name] for name in like}


def _chunks(rows: Iterator[Vector], most: int) -> Iterator[Sequence[Vector]]:
    chunk: list[Vector] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == most:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
