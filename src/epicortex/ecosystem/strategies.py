"""The replaceable rules of the ecosystem: what each of them decides, and what it may rely on.

A rule is chosen by name in the settings (`evolution.speciation`, `.selection`, `.culling`, `.budget`). A name
stands for a callable that takes the `Config` and gives an object with the methods below: a class of ours, of
an installed package, of a plug-in file, or handed over in Python. The paper's rules are in the files beside
this one. All are pure: states go in and new states come out, and every draw comes from a generator derived
from (seed, generation, network, purpose).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from epicortex import registry
from epicortex.config import Config
from epicortex.ecosystem.history import History
from epicortex.ecosystem.jobs import Job
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import Counts, EcosystemState, Individual, Species
from epicortex.families.family import Family


class Register(Protocol):
    """The species within one generation, while networks are born and change.

    It begins as the state's species and is asked and told about every birth and move.
    """

    founded: int
    """How many species were founded so far."""
    extinct: int
    """How many died out so far."""
    next_species: int

    @property
    def species(self) -> tuple[Species, ...]:
        """Those that have members, in the order of their ids."""

    def members(self, species: int) -> int:
        """How many networks a species has at this moment."""

    def affinity(self, family: Family[Any], one: Individual, other: Individual) -> float:
        """How ready two networks are to mate, from 0 to 1."""

    def birth(self, species: int, key: str) -> None:
        """A child with this key was born of parents in a species; a key that is out of place is an error."""

    def move(self, home: int, key: str) -> int | None:
        """The species of a network whose key has become `key`; None where the change is refused."""


class Speciation(Protocol):
    """What makes a species: how founders are spread, and where networks belong when they change."""

    def start(self, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
        """The founders, nothing evaluated yet. An ancestor becomes network 1 as it is, weights and all."""

    def register(self, state: EcosystemState, *, generation: int) -> Register:
        """The species as they are at the start of a generation's visits."""


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The ecosystem after mating and mutation, and what happened."""

    state: EcosystemState
    offspring: int
    mutations: int
    refused: int
    failed: int
    founded: int
    extinct: int
    warnings: tuple[str, ...] = ()


class Selection(Protocol):
    """Who mates, who mutates and who rests. It also says what a generation's figures mean to it."""

    def calibrate(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """Turn absolute fitness and size into what this rule, and culling, compare networks by."""

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """Evolve a calibrated state: all are a generation older, some have changed, and some are born.

        Networks that failed have no fitness; they are no parents, and are not changed.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Culled:
    """The ecosystem after culling, and what it took."""

    state: EcosystemState
    culled: int
    extinct: int
    warnings: tuple[str, ...] = ()


class Culling(Protocol):
    """Who is removed. The failed go; at least one network has to stay."""

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """The ecosystem without those who go, and without the species that this empties."""


class Budget(Protocol):
    """Who is trained in a generation and how much, and what a run has spent."""

    def jobs(self, state: EcosystemState, *, generation: int) -> tuple[Job, ...]:
        """A job for every network, in the order of their ids."""

    def limited(self, jobs: Sequence[Job], history: Sequence[Counts]) -> tuple[Job, ...]:
        """The jobs with no more work in them than the run may still spend."""

    def spent(self, history: Sequence[Counts]) -> int:
        """The trainings of these generations."""


# What rules may offer beyond that, for runs that are planned.


@runtime_checkable
class Planner(Protocol):
    """A budget that plans: before a generation begins it says how that is to be spent."""

    def plan(self, state: EcosystemState, history: History, *, family: Family[Any], elapsed: float) -> Plan:
        """The plan of the next generation, after so many seconds; it is written down and then kept."""


@runtime_checkable
class Prepares(Protocol):
    """A selection that makes up the population which a plan asks for, and knows who is best in it."""

    def prepare(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """The state, whose plan is set, with the networks that the next generation trains."""

    def champion(self, networks: Sequence[Individual], family: Family[Any]) -> Individual | None:
        """The best of a generation; None where nobody has a fitness."""


@dataclass(frozen=True, slots=True)
class Strategies:
    """The rules of one run."""

    speciation: Speciation
    selection: Selection
    culling: Culling
    budget: Budget

    @classmethod
    def from_config(cls, config: Config, own: registry.Parts | None = None) -> Strategies:
        """The rules that a config names; `own` are parts of a person's own.

        >>> type(Strategies.from_config(Config()).culling).__name__
        'PaperCulling'
        """

        def made(kind: str, name: str) -> Any:
            return registry.find(registry.SHELVES[kind], name, (own or {}).get(kind))(config)

        settings = config.evolution
        return cls(
            speciation=made("speciation", settings.speciation),
            selection=made("selection", settings.selection),
            culling=made("culling", settings.culling),
            budget=made("budget", settings.budget),
        )
