"""Beads that keep a list of what they are asked, states made by hand, and the paper's rules one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicortex.config import Config, changed, fields
from epicortex.config.models import MOVED
from epicortex.ecosystem.culling import PaperCulling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.selection import PaperSelection
from epicortex.ecosystem.state import EcosystemState, Individual, MovingAverage, Species
from epicortex.ecosystem.strategies import Culled, Register, Selected, Strategies
from epicortex.families.family import Mutation
from tests import beads
from tests.beads import Beads

Rng = np.random.Generator


@dataclass(slots=True)
class BeadFamily(beads.BeadFamily):
    """Keeps a list of everything it was asked to do; a test may say itself what a mutation gives."""

    mutation: Callable[[Beads, Rng], Mutation[Beads]] | None = None
    overlap: float | None = None
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def minimal(self, rng: Rng) -> Beads:
        self.calls.append(("minimal", {}))
        return beads.BeadFamily.minimal(self, rng)

    def grow(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("grow", {"phenotype": phenotype}))
        return beads.BeadFamily.grow(self, phenotype, rng)

    def redraw(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("redraw", {"phenotype": phenotype}))
        return beads.BeadFamily.redraw(self, phenotype, rng)

    def similarity(self, one: Beads, other: Beads) -> float:
        self.calls.append(("similarity", {"one": one, "other": other}))
        return beads.BeadFamily.similarity(self, one, other) if self.overlap is None else self.overlap

    def mutate(self, phenotype: Beads, *, grow: float, relative_fitness: float, rng: Rng) -> Mutation[Beads]:
        self.calls.append(
            ("mutate", {"phenotype": phenotype, "grow": grow, "relative_fitness": relative_fitness})
        )
        if self.mutation:
            return self.mutation(phenotype, rng)
        return beads.BeadFamily.mutate(self, phenotype, grow=grow, relative_fitness=relative_fitness, rng=rng)

    def cross(self, one: Beads, other: Beads, *, share: float, rng: Rng) -> Beads:
        self.calls.append(("cross", {"one": one, "other": other, "share": share}))
        return beads.BeadFamily.cross(self, one, other, share=share, rng=rng)

    def clone(self, phenotype: Beads, rng: Rng) -> Beads:
        self.calls.append(("clone", {"phenotype": phenotype}))
        return beads.BeadFamily.clone(self, phenotype, rng)

    def called(self, name: str) -> list[dict[str, Any]]:
        """The arguments of all calls of one method, in order."""
        return [arguments for called, arguments in self.calls if called == name]


def config(**changes: Any) -> Config:
    """A config from settings by their bare names, such as `seed` or `newborns`, wherever they stand."""
    return changed(Config(), **fields.by_section({_dotted(name): value for name, value in changes.items()}))


def settings(**changes: Any) -> Config:
    """The same for one network, unless something else is said."""
    return config(**{"initial_networks": 1, "initial_species": 1, **changes})


def _dotted(name: str) -> str:
    """The setting of this bare name: of format 1's, else of `evolution`, else the only one of that name."""
    if "." in name:
        return name
    if (old := f"evolution.{name}") in MOVED:
        return MOVED[old]
    found = [one for one in fields.settings() if one == old or one.partition(".")[2] == name]
    return old if old in found or len(found) != 1 else found[0]


def start(settings: Config, family: Any, *, ancestor: Any | None = None) -> EcosystemState:
    """The founders."""
    return Strategies.from_config(settings).speciation.start(family, ancestor=ancestor)


def register(state: EcosystemState, *, generation: int, settings: Config) -> Register:
    """The species of a state."""
    return Strategies.from_config(settings).speciation.register(state, generation=generation)


def reproduce(state: EcosystemState, *, generation: int, family: Any, settings: Config) -> Selected:
    """The paper's selection over a state and its own species."""
    species = register(state, generation=generation, settings=settings)
    return PaperSelection(settings).select(state, generation=generation, family=family, register=species)


def cull(state: EcosystemState, *, generation: int, family: Any, settings: Config, rng: Rng) -> Culled:
    """The paper's culling."""
    return PaperCulling(settings).cull(state, generation=generation, family=family, rng=rng)


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
    if isinstance(value, Mapping):
        return [(name, _plain(one)) for name, one in value.items()]
    if hasattr(value, "__dataclass_fields__"):
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in value.__dataclass_fields__)]
    return value
