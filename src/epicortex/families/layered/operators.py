"""The four mutation types of the paper, in both directions, and what an operator of one's own must offer.

An operator says when it is possible, how likely it is against the others, and what it does. The choice among
operators is left to `mutation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Direction, Shape
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.layers import HIDDEN, HiddenLayer
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.statistics import Statistics
from epicortex.families.layered.surgery import adapt


@dataclass(frozen=True, slots=True, eq=False)
class Mutated:
    """What an operator made, and the layer it touched, counted from 1 at the bottom."""

    phenotype: Phenotype
    layer: int


@runtime_checkable
class Operator(Protocol):
    """A mutation type. Any object with these members is one; nothing needs to be inherited."""

    @property
    def name(self) -> str:
        """What settings, logs and errors call it."""

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """Whether the mutation can be applied to this genome at all."""

    def weight(self, genome: Genome, rules: Rules) -> float:
        """How likely it is to be drawn, relative to the other possible operators."""

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Carry it out: a new phenotype; the one given stays as it is."""


class LayerOperator:
    """Inserts or removes a hidden layer."""

    name = "layer"

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """A layer can always be inserted; to remove one there must be one."""
        return direction == "grow" or bool(genome.hidden)

    def weight(self, genome: Genome, rules: Rules) -> float:
        """Eq. 3."""
        figures = Statistics.of(genome)
        return 1 / (figures.connections_per_node * (figures.nodes_per_layer + figures.nodes_deviation))

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Insert a layer as wide as the mean, or remove one; small ones are drawn more often."""
        genome = phenotype.genome
        hidden, sources = list(genome.hidden), list[int | None](range(len(genome.layers)))
        if direction == "grow":
            place, layer = self._draw_candidate(genome, rules, rng)
            hidden.insert(place, layer)
            sources.insert(place, None)
        else:
            _require(genome.hidden, self, direction)
            place = _draw_inverse(genome.layer_parameters[:-1], rng)
            del hidden[place], sources[place]
        changed = adapt(phenotype, genome.replace(hidden), sources, rules=rules, rng=rng)
        return Mutated(changed, place + 1)

    def _draw_candidate(
        self, genome: Genome, rules: Rules, rng: np.random.Generator
    ) -> tuple[int, HiddenLayer]:
        nodes = max(1, int(Statistics.of(genome).nodes_per_layer))
        candidates = list(self._candidates(genome, nodes, rules, rng))
        if rules.layer_choice == "type":
            types = sorted({layer.type for _, layer in candidates})
            drawn = types[rng.integers(len(types))]
            candidates = [candidate for candidate in candidates if candidate[1].type == drawn]
        shapes = genome.shapes
        counts = [nodes + layer.connections(shapes[place]) for place, layer in candidates]
        return candidates[_draw_inverse(counts, rng)]

    def _candidates(
        self, genome: Genome, nodes: int, rules: Rules, rng: np.random.Generator
    ) -> Iterator[tuple[int, HiddenLayer]]:
        """One candidate for every possible place and type, its shapes drawn."""
        for kind in HIDDEN:
            for place, above in enumerate(genome.layers):
                below = genome.layers[place - 1] if place else None
                if kind.fits_between(below, above, genome.spatial):
                    yield place, kind.drawn(genome.shapes[place], nodes, rules=rules, rng=rng)


class NodeOperator:
    """Appends a node to a hidden layer, or removes its last one."""

    name = "node"

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a hidden layer; a layer keeps one node."""
        return any(direction == "grow" or layer.nodes > 1 for layer in genome.hidden)

    def weight(self, genome: Genome, rules: Rules) -> float:
        """Eq. 4."""
        return 1 / Statistics.of(genome).connections_per_node

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Draw a layer by the inverse of its parameters per node, and change its last node."""
        genome = phenotype.genome
        places = [i for i, layer in enumerate(genome.hidden) if direction == "grow" or layer.nodes > 1]
        _require(places, self, direction)
        place = places[
            _draw_inverse([genome.layer_parameters[i] / genome.layers[i].nodes for i in places], rng)
        ]
        layer, below = genome.hidden[place], genome.input_shapes[place]
        changed = layer.grown(below, rules=rules, rng=rng) if direction == "grow" else layer.shrunk()
        return _exchange(phenotype, place, changed, rules, rng)


class StrideOperator:
    """Changes the stride of a convolution by one in one dimension; growing means a larger output."""

    name = "stride"

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a stride within its limits to go to."""
        return any(True for _ in self._targets(genome, direction))

    def weight(self, genome: Genome, rules: Rules) -> float:
        """Eq. 5."""
        figures = Statistics.of(genome)
        return 1 / (figures.convolutions * figures.outputs_per_convolution)

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Draw evenly over all possible layers and dimensions, or in the published reading by the stride."""
        genome = phenotype.genome
        targets = list(self._targets(genome, direction))
        _require(targets, self, direction)
        if rules.targets == "even":
            place, layer = targets[rng.integers(len(targets))]
        else:
            strides = [_changed(genome.hidden[place].stride, layer.stride)[1] for place, layer in targets]
            draw = _draw_inverse if direction == "grow" else _draw_raw
            place, layer = targets[draw(strides, rng)]
        return _exchange(phenotype, place, layer, rules, rng)

    def _targets(self, genome: Genome, direction: Direction) -> Iterator[tuple[int, HiddenLayer]]:
        """Every possible (place, layer with another stride)."""
        for place, layer in enumerate(genome.hidden):
            for changed in layer.restrided(genome.input_shapes[place], direction):
                yield place, changed


class KernelOperator:
    """Grows or shrinks one kernel by 2 in one dimension: a row or column on both sides."""

    name = "kernel"

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a kernel with room to grow or shrink."""
        return any(True for _ in self.targets(genome, direction))

    def weight(self, genome: Genome, rules: Rules) -> float:
        """Eq. 6."""
        figures = Statistics.of(genome)
        by_kernels = rules.kernel_weight == "kernels"
        count = figures.kernels_per_convolution if by_kernels else figures.nodes_per_layer
        return 1 / (count * figures.kernel_area)

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Draw evenly over all possible layers, kernels and dimensions, or by size (published reading)."""
        targets = list(self.targets(phenotype.genome, direction))
        _require(targets, self, direction)
        if rules.targets == "even":
            drawn = int(rng.integers(len(targets)))
        else:
            draw = _draw_raw if direction == "grow" else _draw_inverse
            drawn = draw([self._size(phenotype.genome, target) for target in targets], rng)
        return self.resize(phenotype, targets[drawn], rules=rules, rng=rng)

    def _size(self, genome: Genome, target: tuple[int, int, Shape]) -> int:
        """What the published code takes for a kernel's size in the dimension that changes.

        It looks one place too far to the left: at the channels for the height, at the height for the width.
        """
        place, index, shape = target
        kernel = genome.hidden[place].kernels[index]
        dimension, _ = _changed(kernel, shape)
        return (genome.input_shapes[place][0], *kernel)[dimension]

    def targets(self, genome: Genome, direction: Direction) -> Iterator[tuple[int, int, Shape]]:
        """Every possible (layer, kernel, new shape of it)."""
        for place, layer in enumerate(genome.hidden):
            for index, shape in layer.resizes(genome.input_shapes[place], direction):
                yield place, index, shape

    def resize(
        self, phenotype: Phenotype, target: tuple[int, int, Shape], *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        """Give one kernel another shape; its centre stays as it is."""
        place, index, shape = target
        changed = phenotype.genome.hidden[place].with_kernel(index, shape)
        return _exchange(phenotype, place, changed, rules, rng)


#: The paper's operators, by name.
OPERATORS: Final[dict[str, Operator]] = {
    operator.name: operator
    for operator in (LayerOperator(), NodeOperator(), StrideOperator(), KernelOperator())
}


def _exchange(
    phenotype: Phenotype, place: int, layer: HiddenLayer, rules: Rules, rng: np.random.Generator
) -> Mutated:
    """Put another layer in the place of one, and adapt the layers above it."""
    genome = phenotype.genome
    changed = genome.replace((*genome.hidden[:place], layer, *genome.hidden[place + 1 :]))
    sources = range(len(genome.layers))
    return Mutated(adapt(phenotype, changed, sources, rules=rules, rng=rng), place + 1)


def _changed(before: Shape, after: Shape) -> tuple[int, int]:
    """The dimension in which two shapes differ, and the first one's size in it."""
    dimension = next(place for place, size in enumerate(before) if size != after[place])
    return dimension, before[dimension]


def _draw_raw(sizes: Sequence[float], rng: np.random.Generator) -> int:
    """An index drawn with weight size."""
    weights = np.asarray(sizes, dtype=np.float64)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _draw_inverse(counts: Sequence[float], rng: np.random.Generator) -> int:
    """An index drawn with weight 1/count."""
    weights = 1 / np.asarray(counts, dtype=np.float64)
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _require(targets: Sequence[object], operator: Operator, direction: Direction) -> None:
    if not targets:
        raise VariationError(
            f"mutation {operator.name!r} cannot {direction} this network; ask possible() before apply()"
        )
