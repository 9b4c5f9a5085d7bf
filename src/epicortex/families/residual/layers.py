"""One layer of a residual network as it stands in its place, and what follows from that: shapes and counts.

A table is an input without spatial dimensions: its kernels have the shape () and its convolutions are full
layers, so that nothing below asks which of the two it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Shape

Role: TypeAlias = Literal["entry", "inner", "outer", "out"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution with its norm, or the output layer."""

    name: str
    """What files call it, such as `stages.0.blocks.1.inner`."""
    role: Role
    key: tuple[int, ...]
    """The ids of its stage and block, and its role: equal for layers of relatives in the same place."""
    stage: int
    """The index of its stage; -1 for the output layer."""
    block: int
    """The index of its block in the stage; -1 outside of blocks."""
    kernels: tuple[Shape, ...]
    stride: Shape
    ids: tuple[int, ...]
    """The ids of its nodes."""
    sources: tuple[int, ...]
    """The ids of the channels that it looks at; none where its nodes are the columns of a table."""
    below: Shape
    """The shape [channels, *spatial] of what it looks at."""

    @property
    def nodes(self) -> int:
        """How many nodes, and so output channels, it has."""
        return len(self.ids)

    @property
    def extent(self) -> Shape:
        """The largest kernel in each dimension: the size of the dense weight."""
        return tuple(max(sizes) for sizes in zip(*self.kernels, strict=True))

    @property
    def output(self) -> Shape:
        """The shape [nodes, *spatial] of what it gives."""
        if self.role == "out":
            return (self.nodes,)
        pairs = zip(self.below[1:], self.stride, strict=True)
        return (self.nodes, *(-(-size // step) for size, step in pairs))

    @property
    def weight_shape(self) -> Shape:
        """The shape [nodes, channels, *extent] of the dense weight; a pooled map is an extent, too."""
        return (self.nodes, self.below[0], *self.extent)

    @property
    def connections(self) -> int:
        """All weights, without the zeros around small kernels."""
        return self.below[0] * sum(map(math.prod, self.kernels))

    @property
    def parameters(self) -> int:
        """All weights, and a bias for each node; the factor of the norm, too, where there is one."""
        return self.connections + self.nodes * (1 if self.role == "out" else 2)

    @property
    def cost(self) -> int:
        """The multiplications of one sample; those of a norm are left out, as they fold into the weights."""
        return self.connections * math.prod(self.output[1:])


def kernel_mask(kernels: Sequence[Shape]) -> NDArray[np.bool_]:
    """Where a stack of centred kernels has entries: [nodes, 1, *extent].

    >>> kernel_mask([(1, 3), (3, 1)])[0, 0].astype(int).tolist()
    [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    >>> kernel_mask([(), ()]).shape
    (2, 1)
    """
    extent = tuple(max(sizes) for sizes in zip(*kernels, strict=True))
    mask = np.ones((len(kernels), 1, *extent), dtype=np.bool_)
    for dimension, size in enumerate(extent):
        distance = np.abs(np.arange(size) - size // 2)
        halves = np.array([kernel[dimension] // 2 for kernel in kernels])
        shape = [1] * mask.ndim
        shape[0], shape[dimension + 2] = len(kernels), size
        mask &= (distance <= halves[:, None]).reshape(shape)
    return mask
