"""Mutations of kernel shapes: kernels grow by borders of zeros and lose those borders that carry least."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.residual.genome import MAX_EXTENT, Genome
from epicortex.families.residual.layers import Layer
from epicortex.families.residual.operators import Mutated, part
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.surgery import refit

#: Which share of a layer's kernels changes at once.
_SHARES: Final = (0.125, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class _Change:
    """Another shape for one kernel, and the dimension in which it loses its border, if it does."""

    node: int
    shape: Shape
    lost: int | None


class KernelOperator:
    """Grows or shrinks some kernels of one layer by 2 in one dimension: a row or column on both sides."""

    name = "kernel"
    keeps = True

    def __init__(self, largest: int = 7) -> None:
        """`largest`: how far kernels grow in a dimension."""
        self.largest = min(largest, MAX_EXTENT)

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a kernel with room to grow or shrink."""
        return any(self._changes(layer, direction) for layer in genome.layers[:-1])

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Draw a layer; grow a random part of its kernels, or shrink where the borders carry least."""
        return _apply(self.name, phenotype, self._layers(phenotype.genome, direction), rng)

    def _layers(self, genome: Genome, direction: Direction) -> dict[int, list[_Change]]:
        return {i: self._changes(layer, direction) for i, layer in enumerate(genome.layers[:-1])}

    def _changes(self, layer: Layer, direction: Direction) -> list[_Change]:
        changes = []
        for dimension, size in enumerate(layer.below[1:]):
            for node, kernel in enumerate(layer.kernels):
                if direction == "grow" and kernel[dimension] + 2 <= _limit(self.largest, size):
                    changes.append(_Change(node, _stepped(kernel, dimension, 2), None))
                elif direction == "shrink" and kernel[dimension] > 1:
                    changes.append(_Change(node, _stepped(kernel, dimension, -2), dimension))
        return changes


class ReshapeOperator:
    """Makes some kernels of one layer longer in one dimension and shorter in another, as 3×3 to 1×5.

    It grows where that gives more entries, shrinks where it gives fewer, and is both where they are as many.
    """

    name = "reshape"
    keeps = False

    def __init__(self, largest: int = 7) -> None:
        """`largest`: how long kernels get in a dimension."""
        self.largest = min(largest, MAX_EXTENT)

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a kernel that can give in one dimension and grow in another."""
        return any(self._changes(layer, direction) for layer in genome.layers[:-1])

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Draw a layer and reshape kernels where the lost borders carry least."""
        layers = {i: self._changes(layer, direction) for i, layer in enumerate(phenotype.genome.layers[:-1])}
        return _apply(self.name, phenotype, layers, rng)

    def _changes(self, layer: Layer, direction: Direction) -> list[_Change]:
        sizes, changes = layer.below[1:], []
        for node, kernel in enumerate(layer.kernels):
            for longer, size in enumerate(sizes):
                for shorter in range(len(sizes)):
                    if (
                        longer == shorter
                        or kernel[shorter] == 1
                        or kernel[longer] + 2 > _limit(self.largest, size)
                    ):
                        continue
                    shape = _stepped(_stepped(kernel, longer, 2), shorter, -2)
                    more = math.prod(shape) - math.prod(kernel)
                    if more >= 0 if direction == "grow" else more <= 0:
                        changes.append(_Change(node, shape, shorter))
        return changes


def _apply(
    name: str, phenotype: Phenotype, layers: dict[int, list[_Change]], rng: np.random.Generator
) -> Mutated:
    """Carry out a part of the possible changes of one layer, at most one for each kernel."""
    possible = [index for index, changes in layers.items() if changes]
    if not possible:
        raise VariationError(f"{name}: no kernel has room")
    index = possible[int(rng.integers(len(possible)))]
    layer, weight, changes = phenotype.genome.layers[index], phenotype.genes[index].weight, layers[index]
    order = rng.random(len(changes))
    for place, change in enumerate(changes):
        if change.lost is not None:
            order[place] = _border(weight[change.node], change.lost, layer.kernels[change.node])
    share = _SHARES[int(rng.integers(len(_SHARES)))]
    shapes: dict[int, Shape] = {}
    for place in np.argsort(order, kind="stable").tolist():
        if len(shapes) < max(1, round(share * layer.nodes)):
            shapes.setdefault(changes[place].node, changes[place].shape)
    kernels = [shapes.get(node, kernel) for node, kernel in enumerate(layer.kernels)]
    changed = phenotype.genome.replace_kernels(layer, kernels)
    return Mutated(refit(phenotype, changed, rng), part(changed, layer.stage, layer.block))


def _border(weight: Array, dimension: int, kernel: Shape) -> float:
    """What share of a kernel [channels, *extent] its outermost entries in one dimension carry."""
    energy = np.square(weight, dtype=np.float64)
    whole = float(energy.sum())
    middle, half = weight.shape[1 + dimension] // 2, kernel[dimension] // 2
    ends = energy.take([middle - half, middle + half], axis=1 + dimension)
    return float(ends.sum()) / whole if whole else 0.0


def _limit(largest: int, size: int) -> int:
    """How long a kernel may get over a map of this size: at most as long as reaches from end to end."""
    return min(largest, 2 * size - 1)


def _stepped(shape: Shape, dimension: int, step: int) -> Shape:
    return (*shape[:dimension], shape[dimension] + step, *shape[dimension + 1 :])
