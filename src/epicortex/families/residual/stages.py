"""Mutations that change the sizes of maps: stages come and go, strides change. None keeps the function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.residual.drawing import draw_id
from epicortex.families.residual.genome import MAX_STAGES, MAX_STRIDE, Genome, Stage
from epicortex.families.residual.operators import Mutated, alike, part, pick, place
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.surgery import refit


class StageOperator:
    """Adds a stage on top, or removes the last one. Neither keeps the function.

    The new stage continues the channels of the one below, under their ids: its kernels begin as unit impulses
    with noise, and the output layer keeps its weights.
    """

    name = "stage"
    keeps = False

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """The first stage stays; a new one must have something to halve, or nothing to stride over."""
        if direction == "shrink":
            return len(genome.stages) > 1
        sizes = genome.layers[-2].output[1:]
        return len(genome.stages) < MAX_STAGES and all(size >= 4 for size in sizes)

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Add a stage of stride 2 and without blocks, or remove the last."""
        genome = phenotype.genome
        if not self.possible(genome, direction):
            raise VariationError(f"stage: cannot {direction} a network of {len(genome.stages)} stages")
        if direction == "shrink":
            changed = replace(genome, stages=genome.stages[:-1])
            return Mutated(refit(phenotype, changed, rng), part(changed, len(changed.stages)))
        last = genome.stages[-1]
        new = Stage(draw_id(rng), (2,) * genome.spatial, last.ids, alike(last.kernels, last.width, rng))
        changed = replace(genome, stages=(*genome.stages, new))
        fitted = refit(phenotype, changed, rng)
        entry = len(changed.layers) - 2
        genes = list(fitted.genes)
        genes[entry] = genes[entry].replace(weight=_impulses(genes[entry].weight))
        return Mutated(Phenotype(changed, tuple(genes)), part(changed, len(genome.stages)))


class StrideOperator:
    """Changes the stride of a stage by one in one dimension; larger maps are growth. It keeps no function."""

    name = "stride"
    keeps = False

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a stride to shorten, or maps of two or more positions to stride over."""
        return bool(self._targets(genome, direction))

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Draw evenly over all possible stages and dimensions; the genes stay as they are."""
        genome = phenotype.genome
        index, stride = pick(self._targets(genome, direction), self.name, rng)
        changed = genome.replace_stage(index, stride=stride)
        return Mutated(refit(phenotype, changed, rng), part(changed, index))

    def _targets(self, genome: Genome, direction: Direction) -> list[tuple[int, Shape]]:
        targets = []
        for index, stage in enumerate(genome.stages):
            sizes = genome.layers[place(genome, index) - 1].below[1:]
            for dimension, size in enumerate(sizes):
                step = stage.stride[dimension] + (-1 if direction == "grow" else 1)
                if 1 <= step <= min(MAX_STRIDE, max(1, size // 2)):
                    head, tail = stage.stride[:dimension], stage.stride[dimension + 1 :]
                    targets.append((index, (*head, step, *tail)))
        return targets


def _impulses(weight: Array) -> Array:
    """Kernels that pass their own channel on, with a tenth of the given weights as noise."""
    result = weight * np.float32(0.1)
    centre = tuple(size // 2 for size in weight.shape[2:])
    for node in range(len(weight)):
        result[(node, node, *centre)] = 1.0
    return result
