"""The layers of a layered network. Each knows its own shapes, limits, weights, surgery, text and module.

A layer is a plain, immutable description; what it looks at ([channels, *spatial]) is passed to it. No other
module needs to know which type a layer has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeGuard

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.activations import Activations
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.genes import Genes, check_genes
from epicortex.families.layered import placing
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.shapes import (
    convolution_text,
    draw_kernels,
    draw_stride,
    extent,
    kernel_limit,
    stride_limit,
)
from epicortex.native.program import Activation, Conv, Full, Operation
from epicortex.text import times

if TYPE_CHECKING:
    from torch import nn

MAX_SPATIAL_DIMENSIONS: Final = 3
#: What no sane layer exceeds; a file that claims more is refused before anything is allocated.
MAX_NODES: Final = 1_000_000


class Layer(ABC):
    """What all layers have in common. Where a method does not apply to a type, it gives nothing."""

    __slots__ = ()

    type: ClassVar[str]
    """The word for it in files and for people."""
    title: ClassVar[str]
    """What it is, in words."""

    if TYPE_CHECKING:  # at run time these are fields or properties of each type

        @property
        def nodes(self) -> int:
            """How many nodes, and so output channels, the layer has."""

        @property
        def kernels(self) -> tuple[Shape, ...]:
            """The shape of each kernel; empty where it has none."""

        @property
        def stride(self) -> Shape:
            """Its stride; empty where it has none."""

    @property
    def key(self) -> str:
        """What of it belongs to the species key: its type, node count and stride."""
        return str(self)

    @abstractmethod
    def check(self, where: str, below: Shape) -> None:
        """Refuse, with a `GenomeError`, a layer that cannot stand on this input."""

    @abstractmethod
    def output_shape(self, below: Shape) -> Shape:
        """What the layer gives for an input [channels, *spatial]."""

    @abstractmethod
    def connections(self, below: Shape) -> int:
        """Its weights over an input, without biases and without the zeros around small kernels."""

    def cost(self, below: Shape) -> int:
        """Its multiplications for one sample."""
        return self.connections(below) * math.prod(self.output_shape(below)[1:])

    def limited_to(self, below: Shape) -> Self:
        """The same layer with the limits of a (smaller) input re-imposed."""
        del below
        return self

    # Its weights.

    @abstractmethod
    def array_shapes(self, below: Shape) -> dict[str, Shape]:
        """The arrays of its genes by name, and their shapes."""

    def check_genes(self, genes: Genes, below: Shape, where: str) -> None:
        """Refuse, with a `GenomeError`, genes that are not this layer's."""
        check_genes(genes, self.array_shapes(below), where)

    def draw(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> Genes:
        """New weights and biases."""
        shapes = self.array_shapes(below).items()
        return Genes(**{name: placing.draw(shape, rules, rng) for name, shape in shapes})

    def refit(
        self, genes: Genes, old: Layer, before: Shape, below: Shape, *, rules: Rules, rng: np.random.Generator
    ) -> Genes:
        """The genes of an `old` layer of the same type over `before`, fitted to this layer over `below`."""
        if old == self and before == below:
            return genes
        weight = self._refit_weight(genes.weight, old, before, below, rules, rng)
        if self.nodes == old.nodes:
            return genes.replace(weight=weight)
        return genes.replace(weight=weight, bias=placing.paste(genes.bias, (self.nodes,), rules, rng))

    @abstractmethod
    def _refit_weight(
        self, weight: Array, old: Layer, before: Shape, below: Shape, rules: Rules, rng: np.random.Generator
    ) -> Array:
        """The weight alone."""

    def kernel_weights(self, genes: Genes) -> tuple[Array, ...]:
        """The weights of each kernel [channels, *shape], without the zeros around it."""
        del genes
        return ()

    # Its nodes.

    @abstractmethod
    def part(self, rows: Sequence[int]) -> Self:
        """A layer with only some of its nodes."""

    def take(self, genes: Genes, rows: Sequence[int]) -> tuple[Self, Genes]:
        """Some of its nodes, whole, as a layer of their own."""
        return self.part(rows), genes.take(rows)

    def join(self, below: Shape, parts: Iterable[tuple[Sequence[int], Genes]]) -> Genes:
        """Its genes put together: each part says which nodes its rows become."""
        arrays = {name: np.zeros(shape, np.float32) for name, shape in self.array_shapes(below).items()}
        for rows, part in parts:
            for name, array in arrays.items():
                array[np.asarray(rows)] = self._placed(name, part[name], array.shape)
        return Genes(**arrays)

    def _placed(self, name: str, array: Array, shape: Shape) -> Array:
        """An array of some nodes, as it stands in this layer's."""
        del name, shape
        return array

    @abstractmethod
    def mixed(self, other: Self, parent: Sequence[int], *, share: float, rng: np.random.Generator) -> Self:
        """A child of two aligned layers; `parent` says for each node whose it is: 0 for this one, else 1."""

    # How it varies.

    @abstractmethod
    def grown(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> Self:
        """It with one node more, at the end."""

    def shrunk(self) -> Self:
        """It without its last node."""
        return self.part(range(self.nodes - 1))

    def redrawn(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> Self:
        """A layer with the same key, with all that is free within a species drawn anew."""
        del below, rules, rng
        return self

    def restrided(self, below: Shape, direction: Direction) -> Iterator[Self]:
        """Every layer with a stride one step away; growing means a larger output."""
        del below, direction
        return iter(())

    def resizes(self, below: Shape, direction: Direction) -> Iterator[tuple[int, Shape]]:
        """Every (kernel, new shape of it) that is a step larger or smaller in one dimension."""
        del below, direction
        return iter(())

    def with_kernel(self, index: int, shape: Shape) -> Self:
        """The layer with another shape of one kernel."""
        raise GenomeError(f"{self} has no kernel {index + 1} that could become {times(shape)}")

    # How it is stored and computed.

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""

    @abstractmethod
    def module(self, genes: Genes, below: Shape) -> nn.Module:
        """It as a module of torch, with a copy of the genes."""

    @abstractmethod
    def operations(self, activations: Activations) -> list[Operation]:
        """It, and the activation after it, as operations of the native arithmetic."""


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
        _check_nodes(where, self.nodes)
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


@dataclass(frozen=True, slots=True)
class _DenseLayer(Layer):
    """A fully connected layer. Over feature maps it matches its inputs as [channel, *spatial]."""

    nodes: int

    @property
    def kernels(self) -> tuple[Shape, ...]:
        """None."""
        return ()

    @property
    def stride(self) -> Shape:
        """None."""
        return ()

    def check(self, where: str, below: Shape) -> None:
        """It stands on anything."""
        del below
        _check_nodes(where, self.nodes)

    def output_shape(self, below: Shape) -> Shape:
        """It counts as [nodes, 1, 1]."""
        return (self.nodes, *(1 for _ in below[1:]))

    def connections(self, below: Shape) -> int:
        """Every node looks at every input."""
        return self.nodes * math.prod(below)

    def array_shapes(self, below: Shape) -> dict[str, Shape]:
        """A row of inputs a node."""
        return {"weight": (self.nodes, math.prod(below)), "bias": (self.nodes,)}

    def _refit_weight(
        self, weight: Array, old: Layer, before: Shape, below: Shape, rules: Rules, rng: np.random.Generator
    ) -> Array:
        source = weight.reshape(old.nodes, *before)
        return placing.paste(source, (self.nodes, *below), rules, rng).reshape(self.nodes, -1)

    def part(self, rows: Sequence[int]) -> Self:
        """A layer with only some of its nodes."""
        return replace(self, nodes=len(rows))

    def mixed(self, other: Self, parent: Sequence[int], *, share: float, rng: np.random.Generator) -> Self:
        """As many nodes as were drawn."""
        del other, share, rng
        return replace(self, nodes=len(parent))

    def grown(self, below: Shape, *, rules: Rules, rng: np.random.Generator) -> Self:
        """It with one node more."""
        del below, rules, rng
        return replace(self, nodes=self.nodes + 1)

    def to_dict(self) -> dict[str, Any]:
        """Its type and its node count."""
        return {"type": self.type, "nodes": self.nodes}

    def module(self, genes: Genes, below: Shape) -> nn.Module:
        """An `nn.Linear`."""
        from epicortex.families.layered.irregular import linear, tensor

        del below
        return linear(tensor(genes.weight), tensor(genes.bias))

    def __str__(self) -> str:
        return f"{self.type} {self.nodes}"


@dataclass(frozen=True, slots=True)
class FullLayer(_DenseLayer):
    """A hidden layer that is fully connected."""

    type = "full"
    title = "fully connected layer"

    def operations(self, activations: Activations) -> list[Operation]:
        """A full layer and its activation."""
        return [Full(self.nodes), Activation(activations.full)]

    @classmethod
    def drawn(cls, below: Shape, nodes: int, *, rules: Rules, rng: np.random.Generator) -> FullLayer:
        """A new layer."""
        del below, rules, rng
        return cls(nodes)

    @staticmethod
    def fits_between(below: Layer | None, above: Layer, spatial: int) -> bool:
        """Whether one may be inserted there: wherever a full layer or the output stands above."""
        del below, spatial
        return isinstance(above, _DenseLayer)


@dataclass(frozen=True, slots=True)
class OutputLayer(_DenseLayer):
    """The output layer: fully connected, always there, a node for each class."""

    type = "out"
    title = "output layer"

    def operations(self, activations: Activations) -> list[Operation]:
        """A full layer alone."""
        del activations
        return [Full(self.nodes)]


HiddenLayer: TypeAlias = ConvLayer | FullLayer
#: The types of hidden layers, in the order in which they stand on each other.
HIDDEN: Final = (ConvLayer, FullLayer)
#: All types, in that order.
TYPES: Final = (*HIDDEN, OutputLayer)


def stands_on(above: Layer, below: Layer) -> bool:
    """Whether a layer may stand right on another: convolutions come first, then full layers."""
    return TYPES.index(type(below)) <= TYPES.index(type(above))


def layer_from_dict(index: int, data: object) -> HiddenLayer:
    """A hidden layer from what `to_dict` gave; anything else is a `GenomeError`."""
    where = f"layer {index}"
    if isinstance(data, dict) and data.get("type") == "full":
        return FullLayer(whole_in(data, "nodes", where))
    if isinstance(data, dict) and data.get("type") == "conv":
        kernels = data.get("kernels")
        if not isinstance(kernels, list) or len(kernels) > MAX_NODES:
            raise GenomeError(f"{where}: kernels must be a list of shapes")
        shapes = tuple(shape_in(f"{where}, kernel {n}", k) for n, k in enumerate(kernels, 1))
        return ConvLayer(shapes, shape_in(f"{where}: stride", data.get("stride")))
    raise GenomeError(f"{where}: type must be conv or full")


def shape_in(what: str, value: object) -> Shape:
    """A shape from JSON."""
    few = isinstance(value, list) and len(value) <= 1 + MAX_SPATIAL_DIMENSIONS
    if not isinstance(value, list) or not few or not all(map(is_whole, value)):
        raise GenomeError(f"{what} must be a short list of whole numbers, not {short(value)}")
    return tuple(value)


def whole_in(data: Mapping[str, Any], name: str, where: str) -> int:
    """A whole number from JSON."""
    value = data.get(name)
    if not is_whole(value):
        raise GenomeError(f"{where}: {name} must be a whole number, not {short(value)}")
    return value


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number of a sane size."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _check_nodes(where: str, nodes: int) -> None:
    if not is_whole(nodes) or not 1 <= nodes <= MAX_NODES:
        raise GenomeError(f"{where}: needs 1 to {MAX_NODES} nodes, has {nodes}")


def _stepped(shape: Shape, dimension: int, step: int) -> Shape:
    return (*shape[:dimension], shape[dimension] + step, *shape[dimension + 1 :])
