"""Fully connected layers: hidden ones, and the output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epicortex.families.activations import Activations
from epicortex.families.family import Array, Shape
from epicortex.families.genes import Genes
from epicortex.families.layered import placing
from epicortex.families.layered.layer import Layer
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.values import check_nodes
from epicortex.native.program import Activation, Full, Operation

if TYPE_CHECKING:
    from torch import nn


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
        check_nodes(where, self.nodes)

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
