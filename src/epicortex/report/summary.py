"""What a report needs from networks.jsonl, gathered in one pass: only sums and what is drawn is kept.

What the figures mean and how they look is left to the modules beside this one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from epicortex.ecosystem.history import History
from epicortex.ecosystem.state import Event
from epicortex.errors import GenomeError, StorageError
from epicortex.families.family import Family, Outline, Shape
from epicortex.storage import NetworkLine
from epicortex.text import one_line

#: Every network of 100 generations of 111 is a dot; of larger runs an even choice.
MOST_POINTS: Final = 12_000
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class GenerationSummary:
    """A generation's networks, summed up."""

    generation: int
    quantiles: tuple[float, ...] | None
    """Of the fitness, at `QUANTILES`; None where nobody has one."""
    species: Mapping[int, int]
    """How many networks each species has; empty without speciation."""
    kernels: Mapping[Shape, int]
    """How many kernels of each shape all networks have together."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A network in a generation: a dot in the plot of fitness over parameters."""

    parameters: int
    fitness: float
    generation: int
    network: int
    genome: Outline


@dataclass(slots=True)
class Mean:
    """A running mean with the error of it."""

    number: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Count a value in."""
        self.number += 1
        self.total += value
        self.squares += value * value

    @property
    def mean(self) -> float | None:
        """The mean; None of nothing."""
        return self.total / self.number if self.number else None

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None of fewer than two values."""
        if self.number < 2:
            return None
        mean = self.total / self.number
        variance = max(0.0, self.squares - self.number * mean * mean) / (self.number - 1)
        return math.sqrt(variance / self.number)


@dataclass(slots=True)
class Attempts:
    """Mutations of one type and direction."""

    type: str
    direction: str
    outcomes: Counter[str] = field(default_factory=Counter)
    effect: Mean = field(default_factory=Mean)
    """The change of fitness from the generation before an applied mutation to the one after."""

    @property
    def tried(self) -> int:
        """All attempts."""
        return self.outcomes.total()


@dataclass(slots=True)
class RunSummary:
    """All networks of a run, summed up."""

    generations: list[GenerationSummary] = field(default_factory=list)
    points: list[Dot] = field(default_factory=list)
    evaluated: int = 0
    """How many networks had a fitness, summed over generations; so many dots there could be."""
    front: list[Dot] = field(default_factory=list)
    """No other network was as fit with as few parameters; the smallest first."""
    species: dict[int, str] = field(default_factory=dict)
    """Each species' key."""
    attempts: dict[tuple[str, str], Attempts] = field(default_factory=dict)
    unchanged: Mean = field(default_factory=Mean)
    """The change of fitness, by training alone, of networks that were not mutated."""
    crossovers: Mean = field(default_factory=Mean)
    """A child's fitness before training less the mean of its parents'."""
    clones: Mean = field(default_factory=Mean)
    """A clone's fitness before training less its parent's."""
    births: Counter[str] = field(default_factory=Counter)
    """Children ("crossover") and clones ("clone") that came to an evaluation."""
    failures: Counter[str] = field(default_factory=Counter)
    """How often each reason was given."""
    failed: list[NetworkLine] = field(default_factory=list)
    """The last failures."""
    events: dict[int, list[tuple[int, Event]]] = field(default_factory=dict)
    """The applied mutations of the networks asked for, with the generation they happened in."""


_KEPT_FAILURES: Final = 20


@dataclass(frozen=True, slots=True)
class _Structure:
    """A genome, one object for all networks that have it, with its kernels counted."""

    genome: Outline
    kernels: tuple[tuple[Shape, int], ...]


def kernel_counts(outline: Outline) -> Counter[Shape]:
    """How many kernels of each shape a network has."""
    return Counter(kernel for part in outline.parts for kernel in part.kernels)


def summarise(
    lines: Iterable[NetworkLine], history: History, *, family: Family[Any] | None, followed: frozenset[int]
) -> RunSummary:
    """Read the lines of all complete generations; the events of the networks `followed` are kept.

    The family says what a genome means; there is none before the first generation is complete.
    """
    if family is None:
        return RunSummary()
    accumulator = _Accumulator(family, followed, sum(line.networks for line in history))
    for line in lines:
        if line.generation > len(history):
            break
        accumulator.add(line)
    summary = accumulator.done()
    if len(summary.generations) != len(history):
        raise StorageError(
            f"networks.jsonl ends with generation {len(summary.generations)}, history.jsonl with "
            f"{len(history)}: one of them is damaged"
        )
    return summary


class _Accumulator:
    """Goes through the lines with what has to be remembered from one to the next."""

    def __init__(self, family: Family[Any], followed: frozenset[int], total: int) -> None:
        self.result = RunSummary()
        self._family = family
        self._followed = followed
        self._step = max(1, -(-total // MOST_POINTS))
        self._structures: dict[int, _Structure] = {}
        """Each network's as it is now."""
        self._known: dict[str, _Structure] = {}
        self._before: dict[int, float] = {}
        """The fitness of each network in the generation before."""
        self._best: dict[int, Dot] = {}
        self._start(0)

    def _start(self, generation: int) -> None:
        self._generation = generation
        self._fitness: dict[int, float] = {}
        self._species: Counter[int] = Counter()
        self._shapes: Counter[Shape] = Counter()

    def _end(self) -> None:
        if not self._generation:
            return
        values = np.array(list(self._fitness.values()))
        quantiles = tuple(np.quantile(values, QUANTILES).tolist()) if len(values) else None
        self.result.generations.append(
            GenerationSummary(self._generation, quantiles, dict(self._species), dict(self._shapes))
        )
        self._before = self._fitness

    def add(self, line: NetworkLine) -> None:
        if line.generation != self._generation:
            if line.generation != self._generation + 1:
                raise StorageError(
                    f"networks.jsonl: generation {line.generation} follows {self._generation}; it is damaged"
                )
            self._end()
            self._start(line.generation)
        structure = self._structure(line)
        if line.species is not None:
            self._species[line.species] += 1
            self.result.species.setdefault(line.species, structure.genome.key)
        for shape, number in structure.kernels:
            self._shapes[shape] += number
        self._add_events(line)
        if line.failed is not None or line.fitness is None:
            self._add_failure(line)
            return
        self._add_birth(line)
        self._add_point(line, structure.genome, line.fitness)

    def done(self) -> RunSummary:
        self._end()
        highest = -math.inf
        for size in sorted(self._best):
            if self._best[size].fitness > highest:
                self.result.front.append(self._best[size])
                highest = self._best[size].fitness
        return self.result

    def _structure(self, line: NetworkLine) -> _Structure:
        where = f"networks.jsonl, network {line.id} in generation {line.generation}"
        if not isinstance(line.genome, str):
            text = json.dumps(line.genome)
            if text not in self._known:
                try:
                    outline = self._family.outline(line.genome)
                except GenomeError as error:
                    raise StorageError(f"{where}: {error}") from None
                self._known[text] = _Structure(outline, tuple(kernel_counts(outline).items()))
            self._structures[line.id] = self._known[text]
        if line.id not in self._structures:
            raise StorageError(f"{where} has a hash for its genome, but no line before has the genome itself")
        return self._structures[line.id]

    def _add_events(self, line: NetworkLine) -> None:
        before = self._before.get(line.id)
        change = None if before is None or line.fitness is None else line.fitness - before
        mutated = False
        for event in line.events:
            name = one_line(event.type)
            attempts = self.result.attempts.setdefault(
                (name, event.direction), Attempts(name, event.direction)
            )
            attempts.outcomes[event.outcome] += 1
            if event.outcome == "applied":
                mutated = True
                if change is not None:
                    attempts.effect.add(change)
                if line.id in self._followed:
                    # A line holds what happened since the last one: at the end of the generation before.
                    self.result.events.setdefault(line.id, []).append((line.generation - 1, event))
        if not mutated and change is not None:
            self.result.unchanged.add(change)

    def _add_failure(self, line: NetworkLine) -> None:
        self.result.failures[one_line(line.failed or "no reason was noted", 300)] += 1
        self.result.failed = [*self.result.failed[-_KEPT_FAILURES + 1 :], line]

    def _add_birth(self, line: NetworkLine) -> None:
        if line.birth != line.generation - 1 or not line.parents:
            return
        parents = tuple(dict.fromkeys(line.parents))
        kind = "clone" if len(parents) == 1 else "crossover"
        self.result.births[kind] += 1
        known = [self._before[parent] for parent in parents if parent in self._before]
        if line.fitness_before_training is not None and len(known) == len(parents):
            effect = self.result.clones if kind == "clone" else self.result.crossovers
            effect.add(line.fitness_before_training - sum(known) / len(known))

    def _add_point(self, line: NetworkLine, genome: Outline, fitness: float) -> None:
        self._fitness[line.id] = fitness
        point = Dot(line.parameters, fitness, line.generation, line.id, genome)
        if self.result.evaluated % self._step == 0:
            self.result.points.append(point)
        self.result.evaluated += 1
        best = self._best.get(line.parameters)
        if best is None or fitness > best.fitness:
            self._best[line.parameters] = point
