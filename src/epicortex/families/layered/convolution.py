"""Convolutions whose kernels have shapes of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.activations import Activations
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.genes import Genes, check_genes
from epicortex.families.layered import placing
from epicortex.families.layered.layer import Layer
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.shapes import (
    convolution_text,
    draw_kernels,
    draw_stride,
    extent,
    kernel_limit,
    stride_limit,
)
from epicortex.families.layered.values import check_nodes, is_whole
from epicortex.native.program import Activation, Conv, Operation
from epicortex.text import times

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, slots=True)
class ConvLayer(Layer):
    """A convolution: one kernel shape per node, and one stride for the layer."""

    kernels: tuple[Shape, ...]
    stride: Shape

    type = "conv"
    title = "convolution"

    @property
    def nodes(self) -> int:
        """How many kernels, and so output channels, the layer has."""
        return len(self.kernels)

    @property
    def extent(self) -> Shape:
        """The largest kernel in each dimension: the size of the layer's weight tensor."""
        return extent(self.kernels)

    @property
    def key(self) -> str:
        """Kernel shapes are free within a species."""
        return f"conv {self.nodes}/{times(self.stride)}"

    @classmethod
    def drawn(cls, below: Shape, nodes: int, *, rules: Rules, rng: np.random.Generator) -> ConvLayer:
        """A new layer over this input, its shapes drawn."""
        kernels = draw_kernels(below[1:], nodes, rules=rules, rng=rng)
        return cls(kernels, draw_stride(below[1:], rules=rules, rng=rng))

    @staticmethod
    def fits_between(below: Layer | None, above: Layer, spatial: int) -> bool:
        """Whether one may be inserted there: on the spatial input, or on a convolution."""
        del above
        return spatial > 0 and (below is None or isinstance(below, ConvLayer))

    def check(self, where: str, below: Shape) -> None:
        """Kernels are odd and within half of the input, strides within half of it."""
        check_nodes(where, self.nodes)
        spatial = below[1:]
        if not spatial:
            raise GenomeError(f"{where}: a convolution needs an input with spatial dimensions, not a table")
        for number, kernel in enumerate(self.kernels, 1):
            if len(kernel) != len(spatial):
                raise GenomeError(
                    f"{where}, kernel {number}: {times(kernel)} needs {len(spatial)} dimensions"
                )
            for length, size in zip(kernel, spatial, strict=True):
                if not is_whole(length) or length % 2 == 0 or not 1 <= length <= kernel_limit(size):
                    raise GenomeError(
                        f"{where}, kernel {number}: {times(kernel)} must be odd and between 1 and "
                        f"{times(map(kernel_limit, spatial))} over an input of {times(spatial)}"
                    )
        if len(self.stride) != len(spatial):
            raise GenomeError(f"{where}: stride {times(self.stride)} needs {len(spatial)} dimensions")
        for step, size in zip(self.stride, spatial, strict=True):
            if not is_whole(step) or not 1 <= step <= stride_limit(size):
                raise GenomeError(
                    f"{where}: stride {times(self.stride)} must be between 1 and "
                    f"{times(map(stride_limit, spatial))} over an input of {times(spatial)}"
                )

    def output_shape(self, below: Shape) -> Shape:
        """Padding is half the largest kernel, so the output depends on the stride alone."""
        pairs = zip(below[1:], self.stride, strict=True)
        return (self.nodes, *(-(-size // stride) for size, stride in pairs))

    def connections(self, below: Shape) -> int:
        """The entries of all kernels over all channels."""
        return below[0] * sum(math.prod(kernel) for kernel in self.kernels)

    def limited_to(self, below: Shape) -> ConvLayer:
        """The same layer with the limits of a (smaller) input re-imposed on kernels and stride."""
        spatial = below[1:]
        if any(len(shape) != len(spatial) for shape in (*self.kernels, self.stride)):
            raise GenomeError(f"{self} does not fit an input with {len(spatial)} spatial dimensions")
        limits = [kernel_limit(size) for size in spatial]
        kernels = tuple(tuple(map(min, kernel, limits)) for kernel in self.kernels)
        return ConvLayer(kernels, tuple(map(min, self.stride, map(stride_limit, spatial))))

    def array_shapes(self, below: Shape) -> dict[str, Shape]:
        """One dense weight, as large as its largest kernel in each dimension."""
        return {"weight": (self.nodes, below[0], *self.extent), "bias": (self.nodes,)}

    def check_genes(self, genes: Genes, below: Shape, where: str) -> None:
        """What stands around a small kernel must be 0."""
        check_genes(genes, self.array_shapes(below), where)
        around = np.where(placing.known_mask(self.kernels), np.float32(0), genes.weight)
        kernels = around.nonzero()[0]
        if kernels.size:
            raise GenomeError(f"{where}, kernel {kernels[0] + 1}: the weights around it must be 0")

    def draw(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> Genes:
        """New weights and biases, zeros around small kernels."""
        weight, bias = (placing.draw(shape, rules, rng) for shape in self.array_shapes(below).values())
        return Genes(np.where(placing.known_mask(self.kernels), weight, np.float32(0)), bias)

    def kernel_weights(self, genes: Genes) -> tuple[Array, ...]:
        """Each kernel cut out of the dense weight."""
        return tuple(
            placing.place(genes.weight[None, node], shape)[0] for node, shape in enumerate(self.kernels)
        )

    def _refit_weight(
        self, weight: Array, old: Layer, before: Shape, below: Shape, rules: Rules, rng: np.random.Generator
    ) -> Array:
        del before
        return placing.refit_kernels(weight, old.kernels, self.kernels, below[0], rules, rng)

    def part(self, rows: Sequence[int]) -> ConvLayer:
        """A layer with only some of its kernels."""
        return ConvLayer(tuple(self.kernels[row] for row in rows), self.stride)

    def take(self, genes: Genes, rows: Sequence[int]) -> tuple[ConvLayer, Genes]:
        """Some of its kernels as a layer of their own, whose weight is as large as the largest of them."""
        part, taken = self.part(rows), genes.take(rows)
        return part, taken.replace(weight=placing.place(taken.weight, part.extent))

    def _placed(self, name: str, array: Array, shape: Shape) -> Array:
        return placing.place(array, shape[2:]) if name == "weight" else array

    def mixed(
        self, other: ConvLayer, parent: Sequence[int], *, share: float, rng: np.random.Generator
    ) -> ConvLayer:
        """Each kernel is that of its parent; the stride comes from one of them."""
        stride = self.stride if rng.random() < share else other.stride
        kernels = (self.kernels, other.kernels)
        return ConvLayer(tuple(kernels[who][node] for node, who in enumerate(parent)), stride)

    def grown(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> ConvLayer:
        """It with one kernel more, its shape drawn."""
        return replace(self, kernels=self.kernels + draw_kernels(below[1:], 1, rules=rules, rng=rng))

    def redrawn(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> ConvLayer:
        """As many kernels, with shapes of their own."""
        return replace(self, kernels=draw_kernels(below[1:], self.nodes, rules=rules, rng=rng))

    def restrided(self, below: Shape, direction: Direction) -> Iterator[ConvLayer]:
        """Every layer whose stride is one less (growing) or more in one dimension."""
        step = -1 if direction == "grow" else 1
        for dimension, size in enumerate(below[1:]):
            stride = _stepped(self.stride, dimension, step)
            if 1 <= stride[dimension] <= stride_limit(size):
                yield replace(self, stride=stride)

    def resizes(self, below: Shape, direction: Direction) -> Iterator[tuple[int, Shape]]:
        """Every kernel larger or smaller by 2 in one dimension."""
        step = 2 if direction == "grow" else -2
        limits = [kernel_limit(size) for size in below[1:]]
        for index, kernel in enumerate(self.kernels):
            for dimension, limit in enumerate(limits):
                if 1 <= kernel[dimension] + step <= limit:
                    yield index, _stepped(kernel, dimension, step)

    def with_kernel(self, index: int, shape: Shape) -> ConvLayer:
        """The layer with another shape of one kernel."""
        return replace(self, kernels=(*self.kernels[:index], shape, *self.kernels[index + 1 :]))

    def to_dict(self) -> dict[str, Any]:
        """Kernels and stride as lists."""
        return {
            "type": "conv",
            "kernels": [list(kernel) for kernel in self.kernels],
            "stride": list(self.stride),
        }

    def module(self, genes: Genes, below: Shape) -> nn.Module:
        """An `IrregularConv`."""
        from epicortex.families.layered.irregular import IrregularConv, tensor

        return IrregularConv(
            below[0], self.kernels, self.stride, weight=tensor(genes.weight), bias=tensor(genes.bias)
        )

    def operations(self, activations: Activations) -> list[Operation]:
        """A convolution with its own kernels."""
        return [Conv(self.kernels, self.stride), Activation(activations.conv)]

    def __str__(self) -> str:
        return convolution_text(self.kernels, self.stride)


def _stepped(shape: Shape, dimension: int, step: int) -> Shape:
    return (*shape[:dimension], shape[dimension] + step, *shape[dimension + 1 :])
