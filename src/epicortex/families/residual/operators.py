"""Mutations of widths and depth, and what an operator of one's own must offer.

An operator says when it is possible and what it does; the choice among operators is left to `mutation`.
Kernel shapes are in `kernels`, stages and strides in `stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Array, Direction, Shape
from epicortex.families.residual.drawing import draw_id, draw_ids
from epicortex.families.residual.genome import (
    MAX_BLOCKS,
    MAX_NODES,
    Block,
    Genome,
)
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.surgery import refit

_T = TypeVar("_T")

#: By which share a width may grow or shrink.
_SHARES: Final = (0.125, 0.25, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Mutated:
    """What an operator made, and the part of the outline it touched, counted from 1 at the bottom."""

    phenotype: Phenotype
    layer: int | None = None


@runtime_checkable
class Operator(Protocol):
    """A mutation type. Any object with these members is one; nothing needs to be inherited."""

    @property
    def name(self) -> str:
        """What settings, logs and errors call it."""

    @property
    def keeps(self) -> bool:
        """Whether growing leaves the network's function exactly as it was."""

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """Whether the mutation can be applied to this genome at all."""

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Carry it out: a new phenotype; the one given stays as it is."""


class WidthOperator:
    """Widens a stage, or removes those of its channels whose norms have the smallest factors."""

    name = "width"
    keeps = True

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """A stage keeps one channel; columns neither come nor go."""
        return bool(self._stages(genome, direction))

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Change the width of one stage by an eighth to a half."""
        genome = phenotype.genome
        index = pick(self._stages(genome, direction), self.name, rng)
        stage = genome.stages[index]
        count = _count(stage.width, direction, rng)
        if direction == "grow":
            blocks = tuple(
                replace(block, outer=block.outer + alike(block.outer, count, rng)) for block in stage.blocks
            )
            changed = genome.replace_stage(
                index,
                ids=stage.ids + draw_ids(count, rng),
                kernels=stage.kernels + alike(stage.kernels, count, rng),
                blocks=blocks,
            )
        else:
            kept = _largest(_channel_factors(phenotype, index), stage.width - count)
            blocks = tuple(replace(block, outer=_taken(block.outer, kept)) for block in stage.blocks)
            changed = genome.replace_stage(
                index, ids=_taken(stage.ids, kept), kernels=_taken(stage.kernels, kept), blocks=blocks
            )
        return Mutated(refit(phenotype, changed, rng), part(changed, index))

    def _stages(self, genome: Genome, direction: Direction) -> list[int]:
        first = 1 if genome.trunk == "linear" else 0
        stages = enumerate(genome.stages[first:], first)
        return [i for i, stage in stages if _movable(stage.width, direction)]


class InnerOperator:
    """Widens or narrows the inside of a block, as `WidthOperator` does a stage."""

    name = "inner"
    keeps = True

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """There must be a block; it keeps one inner node."""
        return bool(self._blocks(genome, direction))

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Change the inner width of one block by an eighth to a half."""
        genome = phenotype.genome
        s, b = pick(self._blocks(genome, direction), self.name, rng)
        block = genome.stages[s].blocks[b]
        count = _count(len(block.ids), direction, rng)
        if direction == "grow":
            ids, inner = block.ids + draw_ids(count, rng), block.inner + alike(block.inner, count, rng)
        else:
            factors = np.abs(phenotype.genes[place(genome, s, b) - 1]["gamma"])
            kept = _largest(factors, len(block.ids) - count)
            ids, inner = _taken(block.ids, kept), _taken(block.inner, kept)
        changed = genome.replace_block(s, b, ids=ids, inner=inner)
        return Mutated(refit(phenotype, changed, rng), part(changed, s, b))

    def _blocks(self, genome: Genome, direction: Direction) -> list[tuple[int, int]]:
        return [
            (s, b)
            for s, stage in enumerate(genome.stages)
            for b, block in enumerate(stage.blocks)
            if _movable(len(block.ids), direction)
        ]


class BlockOperator:
    """Inserts a block that changes nothing yet, or removes the one whose last norm is the weakest."""

    name = "block"
    keeps = True

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """To remove a block there must be one."""
        blocks = sum(len(stage.blocks) for stage in genome.stages)
        return blocks < MAX_BLOCKS if direction == "grow" else blocks > 0

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Insert a block anywhere, with kernels like those of its stage; or remove the weakest."""
        if direction == "grow":
            return self._insert(phenotype, rng)
        genome = phenotype.genome
        blocks = [(s, b) for s, stage in enumerate(genome.stages) for b in range(len(stage.blocks))]
        if not blocks:
            raise VariationError("block: there is none to remove")
        outer = [phenotype.genes[place(genome, s, b)]["gamma"] for s, b in blocks]
        s, b = blocks[int(np.argmin([float(np.abs(gamma).mean()) for gamma in outer]))]
        rest = genome.stages[s].blocks[:b] + genome.stages[s].blocks[b + 1 :]
        changed = genome.replace_stage(s, blocks=rest)
        return Mutated(refit(phenotype, changed, rng), part(genome, s, b))

    def _insert(self, phenotype: Phenotype, rng: np.random.Generator) -> Mutated:
        genome = phenotype.genome
        s = int(rng.integers(len(genome.stages)))
        stage = genome.stages[s]
        b = int(rng.integers(len(stage.blocks) + 1))
        width = stage.width
        shapes = sum((block.inner + block.outer for block in stage.blocks), start=stage.kernels)
        inner, outer = alike(shapes, width, rng), alike(shapes, width, rng)
        new = Block(draw_id(rng), draw_ids(width, rng), inner, outer)
        changed = genome.replace_stage(s, blocks=(*stage.blocks[:b], new, *stage.blocks[b:]))
        return Mutated(refit(phenotype, changed, rng), part(changed, s, b))


def place(genome: Genome, stage: int, block: int = -1) -> int:
    """Where a stage's first layer, or a block's inner one, stands among the layers, counted from 1."""
    before = sum(1 + 2 * len(earlier.blocks) for earlier in genome.stages[:stage])
    return before + 1 if block < 0 else before + 2 + 2 * block


def part(genome: Genome, stage: int, block: int = -1) -> int:
    """Where a stage's first layer, or a block, stands among the parts that people see, counted from 1."""
    before = sum(1 + len(earlier.blocks) for earlier in genome.stages[:stage])
    return before + 2 + block


def _movable(width: int, direction: Direction) -> bool:
    return 2 * width <= MAX_NODES if direction == "grow" else width > 1


def _count(width: int, direction: Direction, rng: np.random.Generator) -> int:
    count = max(1, round(width * _SHARES[int(rng.integers(len(_SHARES)))]))
    return count if direction == "grow" else min(count, width - 1)


def _channel_factors(phenotype: Phenotype, stage: int) -> Array:
    """How much the norms of a stage make of each of its channels."""
    ends = [
        genes["gamma"] for layer, genes in phenotype.pairs() if layer.stage == stage and layer.role != "inner"
    ]
    total: Array = np.sum([np.abs(gamma) for gamma in ends], axis=0, dtype=np.float32)
    return total


def _largest(values: Array, count: int) -> list[int]:
    """The places of the largest values, in order."""
    return sorted(np.argsort(-values, kind="stable")[:count].tolist())


def _taken(items: tuple[_T, ...], places: Sequence[int]) -> tuple[_T, ...]:
    return tuple(items[place] for place in places)


def alike(kernels: tuple[Shape, ...], count: int, rng: np.random.Generator) -> tuple[Shape, ...]:
    """Kernel shapes drawn from those that are there."""
    return tuple(kernels[int(place)] for place in rng.integers(len(kernels), size=count))


def pick(items: Sequence[_T], name: str, rng: np.random.Generator) -> _T:
    """One of the things that an operator could change, each as likely as another."""
    if not items:
        raise VariationError(f"{name}: this network has nothing to change in that direction")
    return items[int(rng.integers(len(items)))]
