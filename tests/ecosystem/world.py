"""A tiny family of networks, strings of beads, and states made by hand: what the ecosystem is tested with.

Beads have nothing to do with layers or weights. That the ecosystem runs on them as they are shows that
another family can stand beside the layered one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicortex.config import Config, EvolutionConfig, changed
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.state import EcosystemState, Individual, MovingAverage, Species
from epicortex.families.family import Mutation

Rng = np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Beads:
    """Beads on a string: their colours make the species, their sizes are free within it."""

    colours: str
    sizes: tuple[int, ...]
    tag: str = ""


@dataclass(slots=True)
class BeadFamily:
    """Keeps a list of everything it was asked to do; a test may say itself what a mutation gives."""

    mutation: Callable[[Beads, Rng], Mutation] | None = None
    overlap: float | None = None
    colours: str = "ab"
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def minimal(self, rng: Rng) -> Beads:
        self.calls.append(("minimal", {}))
        return Beads("o", (int(rng.integers(1, 4)),))

    def grow(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("grow", {"phenotype": phenotype}))
        if rng.random() < 0.5:
            return self._resized(phenotype, 1, rng)
        colour = self.colours[rng.integers(len(self.colours))] if self.colours else ""
        if not colour:
            return phenotype
        return Beads(phenotype.colours + colour, (*phenotype.sizes, 1))

    def redraw(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("redraw", {"phenotype": phenotype}))
        return Beads(phenotype.colours, tuple(int(rng.integers(1, 9)) for _ in phenotype.sizes))

    def key(self, phenotype: Beads) -> str:
        return phenotype.colours

    def similarity(self, one: Beads, other: Beads) -> float:
        self.calls.append(("similarity", {"one": one, "other": other}))
        if self.overlap is not None:
            return self.overlap
        same = sum(a == b for a, b in zip(one.colours, other.colours, strict=False))
        return same / max(len(one.colours), len(other.colours))

    def parameters(self, phenotype: Beads) -> int:
        return sum(phenotype.sizes)

    def mutate(self, phenotype: Beads, *, grow: float, relative_fitness: float, rng: Rng) -> Mutation:
        self.calls.append(
            ("mutate", {"phenotype": phenotype, "grow": grow, "relative_fitness": relative_fitness})
        )
        if self.mutation:
            return self.mutation(phenotype, rng)
        larger = rng.random() < grow
        place = len(phenotype.sizes)
        if rng.random() < 0.5:
            if larger:
                colour = self.colours[rng.integers(len(self.colours))]
                changed = Beads(phenotype.colours + colour, (*phenotype.sizes, 1))
                return Mutation(changed, "bead", "grow", place + 1)
            if place == 1:
                return Mutation(None, "bead", "shrink")
            return Mutation(Beads(phenotype.colours[:-1], phenotype.sizes[:-1]), "bead", "shrink", place)
        return Mutation(
            self._resized(phenotype, 1 if larger else -1, rng), "size", "grow" if larger else "shrink", place
        )

    def cross(self, one: Beads, other: Beads, *, share: float, rng: Rng) -> Beads:
        self.calls.append(("cross", {"one": one, "other": other, "share": share}))
        pairs = zip(one.sizes, other.sizes, strict=False)
        sizes = [mine if rng.random() < share else yours for mine, yours in pairs]
        return Beads(one.colours, (*sizes, *one.sizes[len(sizes) :]))

    def resize(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("resize", {"phenotype": phenotype}))
        return self._resized(phenotype, 1, rng)

    def _resized(self, phenotype: Beads, step: int, rng: Rng) -> Beads:
        sizes = list(phenotype.sizes)
        place = int(rng.integers(len(sizes)))
        sizes[place] = max(1, sizes[place] + step)
        return replace(phenotype, sizes=tuple(sizes))

    def called(self, name: str) -> list[dict[str, Any]]:
        """The arguments of all calls of one method, in order."""
        return [arguments for called, arguments in self.calls if called == name]


def settings(**changes: Any) -> EvolutionConfig:
    return EvolutionConfig.model_validate({"initial_networks": 1, "initial_species": 1, **changes})


def config(**changes: Any) -> Config:
    return changed(Config(), evolution=changes)


def network(id: int, colours: str = "o", **changes: Any) -> Individual:
    """A calibrated network; its phenotype carries its id as a tag, so that calls can be told apart."""
    sizes = changes.pop("sizes", tuple(1 for _ in colours))
    plain = Individual(
        id=id,
        phenotype=Beads(colours, sizes, tag=str(id)),
        parents=(),
        birth=0,
        species=0,
        age=3,
        average=MovingAverage(0.5),
        fitness=0.5,
        relative_fitness=0.5,
        relative_complexity=0.5,
    )
    return replace(plain, **changes)


#: Averages so far above any fitness that members surely mutate, and so far below that they never do.
ALWAYS_MUTATE = MovingAverage(1e6, 1e-6)
NEVER_MUTATE = MovingAverage(-1e6, 1e-6)


def state(
    networks: Sequence[Individual],
    *,
    speciation: bool = True,
    average: MovingAverage | None = None,
    generation: int = 7,
) -> EcosystemState:
    """A state of these networks, their species numbered in the order in which their keys come."""
    keys = list(dict.fromkeys(one.phenotype.colours for one in networks)) if speciation else []
    homes = {key: id for id, key in enumerate(keys, 1)}
    return EcosystemState(
        generation=generation,
        networks=tuple(replace(one, species=homes.get(one.phenotype.colours, 0)) for one in networks),
        species=tuple(Species(id=id, key=key, founded=0, average=average) for key, id in homes.items()),
        next_network=max(one.id for one in networks) + 1,
        next_species=len(keys) + 1,
        average=None if speciation else average,
    )


def outcome(job: Job, fitness: float = 0.5, **changes: Any) -> Outcome:
    """What a worker that trains nothing gives back."""
    before = fitness / 2 if job.newborn else None
    plain = Outcome(
        network=job.network,
        generation=job.generation,
        phenotype=job.phenotype,
        fitness=fitness,
        fitness_before=before,
    )
    return replace(plain, **changes)


def random_outcomes(jobs: Iterable[Job], *, failing: float = 0.0, seed: int = 0) -> list[Outcome]:
    """A fitness for every job that depends on nothing but its network and generation, with some failures."""
    outcomes = []
    for job in jobs:
        rng = np.random.default_rng([seed, job.generation, job.network])
        if rng.random() < failing:
            outcomes.append(Outcome(job.network, job.generation, failed="the loss became NaN"))
        else:
            outcomes.append(outcome(job, fitness=float(rng.random())))
    return outcomes


def fingerprint(value: object) -> str:
    """A hash over everything in a state or outcome, weights too."""
    return hashlib.sha256(repr(_plain(value)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in value.__dataclass_fields__)]
    return value
