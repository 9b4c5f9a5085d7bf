"""The selection `generational`: for weights that evolve, every generation is nearly all new.

The paper's selection bears a few children and lets training improve everybody. Where nothing is trained,
children have to do it: each species has so many, by its rank, of its fittest members, and only its champion
lives on. What a child inherits and how it changes is the family's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem import census
from epicortex.ecosystem.calibration import calibrate
from epicortex.ecosystem.selection import share
from epicortex.ecosystem.state import EcosystemState, Event, EventOutcome, Individual
from epicortex.ecosystem.strategies import Register, Selected
from epicortex.families.family import Family, Mutation
from epicortex.randomness import generator


class GenerationalSelection:
    """Species get children by rank; parents are the fittest part of a species; nobody mutates in place."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def calibrate(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """As in the paper: relative fitness and complexity, and the moving averages."""
        return calibrate(state, family=family, config=self._config)

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """As many children as fill the ecosystem beside the champions; all others are a generation older."""
        state = state.older()
        births = _Births(state, generation, family, self._config, register)
        if self._config.evolution.evolve and self._is_stuck(state, family):
            births.begin_anew()
        elif self._config.evolution.evolve:
            groups = census.by_species(census.evaluated(state.networks))
            places = self._config.evolution.max_networks - len(groups)
            for species, number in quotas(groups, places).items():
                births.have(species, groups[species], number)
        return births.result()

    def _is_stuck(self, state: EcosystemState, family: Family[Any]) -> bool:
        """Whether the same network has been the best for too long."""
        best, patience = census.champion(state.networks, family), self._config.selection.patience
        return best is not None and patience is not None and best.age > patience


def quotas(groups: dict[int, list[Individual]], places: int) -> dict[int, int]:
    """How many children each species has: by the rank of its best member, the second half of the first.

    Ranks take any fitness as it is: rewards may be negative, or a thousand times those of a moment ago.

    >>> one = Individual(1, None, (), 0, 1, fitness=3.0)
    >>> quotas({1: [one], 2: [replace(one, fitness=5.0)], 3: [replace(one, fitness=-1.0)]}, 11)
    {2: 6, 1: 3, 3: 2}
    """
    best = {species: max(census.fitness(one) for one in group) for species, group in groups.items()}
    ranked = sorted(groups, key=lambda species: (-best[species], species))
    weights = [1 / place for place in range(1, len(ranked) + 1)]
    exact = [places * weight / sum(weights) for weight in weights]
    counts = [int(number) for number in exact]
    for place in range(max(0, places - sum(counts))):
        counts[place % len(counts)] += 1
    return dict(zip(ranked, counts, strict=True))


@dataclass(slots=True)
class _Births:
    """Who is born in a generation."""

    state: EcosystemState
    generation: int
    family: Family[Any]
    config: Config
    register: Register
    born: list[Individual] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def have(self, species: int, group: Sequence[Individual], number: int) -> None:
        """Children of one species."""
        fittest = sorted(
            group, key=lambda one: (-census.fitness(one), self.family.parameters(one.phenotype), one.id)
        )
        part = self.config.selection.survivors
        parents = fittest[: max(min(2, len(fittest)), round(part * len(fittest)))]
        for _ in range(number):
            id = self.state.next_network + len(self.born)
            rng = generator(self.config.evolution.seed, "birth", generation=self.generation, network=id)
            self._birth(id, species, parents, rng)

    def begin_anew(self) -> None:
        """New founders for everybody; the best network so far stays known as the run's champion."""
        settings = self.config.evolution
        members = {one.species: one.phenotype for one in self.state.networks}
        for place in range(settings.max_networks):
            id = self.state.next_network + len(self.born)
            rng = generator(settings.seed, "beginning anew", generation=self.generation, network=id)
            phenotype = self.family.minimal(rng)
            for _ in range(place % settings.initial_species):
                phenotype = self.family.grow(phenotype, rng)
            home = self._place(self.family.key(phenotype))
            if home is None:  # there are as many species as there may be
                home = next(iter(members))
                phenotype = self.family.redraw(members[home], rng)
                self.register.birth(home, self.family.key(phenotype))
            self.born.append(Individual(id, phenotype, (), self.generation, home))
        self.state = replace(self.state, networks=())

    def _place(self, key: str) -> int | None:
        """The species for a founder with this key; None where it would be one too many."""
        species = self.register.species
        first = species[0].id if species else 0
        self.register.birth(first, species[0].key if species else key)
        return self.register.move(first, key)

    def _birth(self, id: int, species: int, parents: Sequence[Individual], rng: np.random.Generator) -> None:
        one, other = (parents[int(rng.integers(len(parents)))] for _ in range(2))
        family, selection = self.family, self.config.selection
        given: tuple[int, ...] = (one.id,)
        phenotype = one.phenotype
        if one.id != other.id and rng.random() < selection.crossover:
            given = (one.id, other.id)
            part = share(one, other, selection)
            phenotype = family.cross(one.phenotype, other.phenotype, share=part, rng=rng)
        self.register.birth(species, family.key(phenotype))
        child = Individual(id, phenotype, given, self.generation, species)
        if len(given) == 1 or rng.random() < selection.mutation:
            child = self._mutated(child, one.relative_fitness or 0.0, rng)
        self.born.append(child)

    def _mutated(self, child: Individual, relative_fitness: float, rng: np.random.Generator) -> Individual:
        mutation = self.family.mutate(
            child.phenotype, grow=self.config.selection.growth, relative_fitness=relative_fitness, rng=rng
        )
        outcome, changed = self._judge(child, mutation)
        self.count[outcome] += 1
        if mutation.reason is not None:
            self.reasons[mutation.reason] += 1
        return replace(changed, events=(Event(mutation.type, mutation.direction, mutation.layer, outcome),))

    def _judge(self, child: Individual, mutation: Mutation[Any]) -> tuple[EventOutcome, Individual]:
        """The mutated child in its species; the child as it was where the mutation failed or is refused."""
        most, changed = self.config.evolution.max_parameters, mutation.phenotype
        if changed is None:
            return "failed", child
        if most is not None and self.family.parameters(changed) > most:
            return "refused", child
        species = self.register.move(child.species, self.family.key(changed))
        if species is None:
            return "refused", child
        return "applied", replace(child, phenotype=changed, species=species)

    def result(self) -> Selected:
        """The state with all who were born."""
        state = replace(
            self.state,
            networks=(*self.state.networks, *self.born),
            species=self.register.species,
            next_network=self.state.next_network + len(self.born),
            next_species=self.register.next_species,
        )
        return Selected(
            state=state,
            offspring=len(self.born),
            mutations=self.count["applied"],
            refused=self.count["refused"],
            failed=self.count["failed"],
            founded=self.register.founded,
            extinct=self.register.extinct,
            warnings=tuple(f"{reason} ({number} times)" for reason, number in self.reasons.most_common(3)),
        )
