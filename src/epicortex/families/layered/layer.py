"""What every layer of a layered network can do: its shapes, limits, weights, surgery, text and module.

A layer is a plain, immutable description; what it looks at ([channels, *spatial]) is passed to it. No other
module needs to know which type a layer has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.activations import Activations
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.genes import Genes, check_genes
from epicortex.families.layered import placing
from epicortex.families.layered.rules import Rules
from epicortex.native.program import Operation
from epicortex.text import times

if TYPE_CHECKING:
    from torch import nn


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
