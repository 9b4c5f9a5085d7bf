"""The whole state of an ecosystem, frozen: networks, species, the run's champion, and what just happened.

A checkpoint is this state written down. Nothing here acts; the rules are in the files beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from epicortex.ecosystem.jobs import Sums
from epicortex.ecosystem.plan import Plan
from epicortex.families.family import Array

EventOutcome: TypeAlias = Literal["applied", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class MovingAverage:
    """An exponential moving average of a fitness and of its variance."""

    mean: float
    variance: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """One attempt at mutating a network."""

    type: str
    direction: Literal["grow", "shrink", "same"]
    layer: int | None
    """The layer it touched, counted from 1 at the bottom; None where it came to none."""
    outcome: EventOutcome


@dataclass(frozen=True, slots=True, eq=False)
class Individual:
    """A network of the ecosystem: its phenotype, where it comes from, and how it stands."""

    id: int
    phenotype: Any
    """Genome and weights; the ecosystem knows it only through its `Family`."""
    parents: tuple[int, ...]
    birth: int
    """The generation it was born in; 0 for founders."""
    species: int
    """The id of its species; 0 without speciation."""
    age: int = 0
    average: MovingAverage | None = None
    """The moving average of its fitness; none before its first evaluation."""
    fitness: float | None = None
    fitness_before: float | None = None
    relative_fitness: float | None = None
    relative_complexity: float | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    """What the evaluator measured besides, by name."""
    losses: Array | None = None
    """The loss of each sample that fitness was measured on, where the evaluator gives it."""
    failed: str | None = None
    events: tuple[Event, ...] = ()
    """What was tried on it since its last evaluation was written down."""
    pace: float = 1.0
    """The steps it takes where a plan says one: fewer, where it costs more than those it competes with."""


@dataclass(frozen=True, slots=True)
class Species:
    """A set of networks with equal keys."""

    id: int
    key: str
    founded: int
    """The generation it was founded in; 0 at the start."""
    average: MovingAverage | None = None
    """The moving average of its mean fitness."""
    cost: int | None = None
    """What its founder took in multiplications, where a species is a class of cost."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one generation did, counted: the figures of a `Tally` and of a `Generation`."""

    generation: int
    networks: int
    """Networks alive when the generation was evaluated."""
    species: int
    highest_fitness: float | None
    average_fitness: float | None
    offspring_fitness: float | None
    """The mean fitness before training of those born in the generation before; None where none was."""
    offspring: int
    """Children and clones born in this generation."""
    mutations: int
    """Mutations in place that were applied."""
    mutations_refused: int
    mutations_failed: int
    species_founded: int
    species_extinct: int
    culled: int
    """Networks drawn in culling; the failed, which go before any draw, are not counted here."""
    failed: int
    champion: int | None
    """The id of this generation's champion."""
    champion_parameters: int | None
    mean_parameters: float | None


@dataclass(frozen=True, slots=True)
class Tally(Counts):
    """What one generation did, and what a person should know about it."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class EcosystemState:
    """Everything a run is, between two generations."""

    generation: int
    """How many generations are complete; in the evaluated half of a `Step`, the one being run."""
    networks: tuple[Individual, ...]
    """In the order of their ids."""
    species: tuple[Species, ...]
    """In the order of their ids; empty without speciation."""
    next_network: int
    next_species: int
    champion: Individual | None = None
    """The network with the highest fitness of any generation, by value, as it was then. Of equals the one
    with fewer parameters, then that of the later generation, which has learned for longer."""
    champion_generation: int = 0
    """The generation in which the run's champion had that fitness."""
    last_rise: int = 0
    """The generation in which the highest fitness last rose."""
    average: MovingAverage | None = None
    """The moving average of the mean fitness of all; kept only without speciation, as no species has one."""
    tally: Tally | None = None
    """What the last complete generation did."""
    credit: Mapping[str, float] = field(default_factory=dict)
    """What the types of mutations are credited with, by type and direction, where selection goes by it."""
    plan: Plan | None = None
    """How the last generation was spent, or the next one will be; None where the run is not planned."""
    sums: Sums = field(default_factory=dict)
    """What all evaluations so far have added up, where the evaluator does that."""
    champion_sums: Sums = field(default_factory=dict)
    """What those were that the run's champion was evaluated with."""

    def older(self) -> EcosystemState:
        """Everybody a generation older."""
        networks = tuple(replace(network, age=network.age + 1) for network in self.networks)
        return replace(self, networks=networks)
