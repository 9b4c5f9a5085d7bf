"""A genome with its weights, as plain read-only arrays: what evolves, is inherited, stored and sent.

A layer's weights are one dense array: [nodes, channels, *extent] for a convolution, with exact zeros around
its smaller kernels, and [nodes, inputs] for a full layer. Turning them into a module is left to `network`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epicortex.errors import GenomeError
from epicortex.families.layered.genome import Genome, Layer, Shape

Array: TypeAlias = NDArray[np.float32]


class LayerWeights(NamedTuple):
    """The weights and biases of one layer."""

    weight: Array
    bias: Array


Weights: TypeAlias = tuple[LayerWeights, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Phenotype:
    """A genome with weights that fit it. The arrays are made read-only: nobody writes into a parent."""

    genome: Genome
    weights: Weights

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.genome.layers):
            raise GenomeError(
                f"{len(self.genome.layers)} layers need as many weights, not {len(self.weights)}"
            )
        places = zip(self.genome.layers, self.genome.input_shapes, self.weights, strict=True)
        for index, (layer, below, weights) in enumerate(places, 1):
            _validate(f"layer {index} ({layer.type})", layer, below, weights)
            for array in weights:
                array.setflags(write=False)

    def __reduce__(self) -> tuple[type[Phenotype], tuple[Genome, Weights]]:
        # A plain copy of the fields would come back with arrays that can be written.
        return Phenotype, (self.genome, self.weights)

    @property
    def parameters(self) -> int:
        """How many weights and biases the network has."""
        return self.genome.parameters

    def same_bits(self, other: Phenotype) -> bool:
        """Whether both have the same genome and, bit for bit, the same weights."""
        return self.genome == other.genome and all(
            a.tobytes() == b.tobytes()
            for mine, yours in zip(self.weights, other.weights, strict=True)
            for a, b in zip(mine, yours, strict=True)
        )


def _validate(where: str, layer: Layer, below: Shape, weights: LayerWeights) -> None:
    weight, bias = weights
    expected = weight_shape(layer, below)
    if weight.shape != expected or bias.shape != (layer.nodes,):
        raise GenomeError(
            f"{where}: weights of shape {weight.shape} and {bias.shape} do not fit; "
            f"expected {expected} and {(layer.nodes,)}"
        )
    for array in weights:
        if array.dtype != np.float32:
            raise GenomeError(f"{where}: weights must be float32, not {array.dtype}")
    if layer.type == "conv":
        around = np.where(kernel_mask(layer.kernels), np.float32(0), weight)
        kernels = around.nonzero()[0]
        if kernels.size:
            raise GenomeError(f"{where}, kernel {kernels[0] + 1}: the weights around it must be 0")


def weight_shape(layer: Layer, below: Shape) -> Shape:
    """The shape of a layer's dense weight over an input [channels, *spatial]."""
    if layer.type == "conv":
        return (layer.nodes, below[0], *layer.extent)
    return (layer.nodes, int(np.prod(below)))


def kernel_mask(kernels: Iterable[Shape]) -> NDArray[np.bool_]:
    """Where a stack of centred kernels has entries: [nodes, 1, *extent].

    >>> kernel_mask([(1, 3), (3, 1)])[0, 0].astype(int).tolist()
    [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    """
    sizes = np.asarray(list(kernels))
    extent = sizes.max(axis=0)
    mask = np.ones((len(sizes), 1, *extent), dtype=np.bool_)
    for dimension, size in enumerate(extent):
        distance = np.abs(np.arange(size) - size // 2)
        inside = distance <= sizes[:, dimension, None] // 2
        shape = [1] * mask.ndim
        shape[0], shape[dimension + 2] = len(sizes), size
        mask &= inside.reshape(shape)
    return mask
