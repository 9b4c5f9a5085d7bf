"""Evolution proper: species and networks are visited in turn, and each mates, mutates in place, or rests.

The genetics (crossover, mutation) are the family's, the species limit is speciation's; here are the orders,
the partners and the probabilities.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from epicortex.config import Config, SelectionConfig
from epicortex.ecosystem import averages, census, draws
from epicortex.ecosystem.calibration import calibrate, logistic, mean_fitness, relative
from epicortex.ecosystem.state import EcosystemState, Event, EventOutcome, Individual
from epicortex.ecosystem.strategies import Register, Selected
from epicortex.families.family import Family, Mutation, RecordsClones
from epicortex.randomness import generator

#: The fitter parent's part where it is fixed: about the logistic of 1.
FIXED_SHARE = 0.731
#: The relative fitness of an average network.
AVERAGE = 0.5


class PaperSelection:
    """The paper's rule: species and networks are visited in an order drawn by fitness."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def calibrate(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """Relative fitness and complexity, and the moving averages."""
        return calibrate(state, family=family, config=self._config)

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """Visit every evaluated network once, species by species; all are a generation older.

        Where the settings ask for no evolution, nobody is visited.
        """
        state = state.older()
        visits = _Visits(state, generation, family, self._config, register)
        if not self._config.evolution.evolve:
            return visits.result()

        groups = census.by_species(census.evaluated(state.networks))
        means = {species: mean_fitness(group) for species, group in groups.items()}
        rng = generator(self._config.evolution.seed, "species order", generation=generation)
        even = self._config.selection.parents == "even"
        running = self._config.selection.deviation == "running"
        standings = [AVERAGE] * len(means) if even else relative(list(means.values()), running=running)
        by_mean = draws.order(standings, rng)
        species_averages = {species.id: species.average for species in state.species} or {0: state.average}
        for species in (list(groups)[place] for place in by_mean):
            z = averages.standing(species_averages[species], means[species])
            visits.visit_species(species, groups[species], mutation_probability=1 - logistic(z))
        return visits.result()


def mating_probability(f_r1: float, f_r2: float, *, born: int, similarity: float = 1.0) -> float:
    """How likely two networks mate when so many were born already.

    >>> mating_probability(0.8, 0.6, born=1)
    0.35
    """
    return 0.5 * (f_r1 + f_r2) / (born + 1) * similarity


def grow_probability(network: Individual) -> float:
    """How likely a mutation grows a network: the less, the smaller it is and the more its fitness rises."""
    z = averages.standing(network.average, census.fitness(network))
    return 1 - logistic(z) * _known(network.relative_complexity)


def worth(network: Individual, settings: SelectionConfig) -> float:
    """A network's weight in whatever is drawn about parents: f_r, or where all count alike its average."""
    return AVERAGE if settings.parents == "even" else _known(network.relative_fitness)


def share(one: Individual, other: Individual, settings: SelectionConfig) -> float:
    """The probability with which a gene comes from the first parent, the one that is visited."""
    mine, yours = _known(one.relative_fitness), _known(other.relative_fitness)
    match settings.parent_shares:
        case "even":
            return 0.5
        case "fixed":
            return FIXED_SHARE if census.fitness(one) >= census.fitness(other) else 1 - FIXED_SHARE
        case "pair":  # standardised over two, values are −1 and 1, or 0 where they are equal
            return relative([mine, yours])[0]
        case "fitness":
            return mine / (mine + yours)


class _Visits:
    """What has happened so far in the visits of one generation: the working copy of the networks."""

    def __init__(
        self,
        state: EcosystemState,
        generation: int,
        family: Family[Any],
        config: Config,
        register: Register,
    ) -> None:
        self._state = state
        self._generation = generation
        self._family = family
        self._seed = config.evolution.seed
        self._most_parameters = config.evolution.max_parameters
        self._settings = config.selection
        self._register = register
        self._networks = {network.id: network for network in state.networks}
        self._most_offspring = len(state.networks) // 2
        self._born: list[Individual] = []
        self._count: dict[EventOutcome, int] = {"applied": 0, "refused": 0, "failed": 0}
        self._reasons: Counter[str] = Counter()
        # Champions are fixed before anything changes.
        best = census.champion(state.networks, family)
        self._champion = best.id if best else None
        self._champions = {one.id for one in census.champions(state.networks, family).values()}

    def visit_species(self, species: int, group: list[Individual], *, mutation_probability: float) -> None:
        """Visit the members of one species, as listed before any visit, in an order drawn by f_r."""
        weights = {network.id: worth(network, self._settings) for network in group}
        rng = generator(self._seed, "visiting order", generation=self._generation, network=species)
        partners = draws.Urn(weights)
        ids = list(weights)
        for place in draws.order(list(weights.values()), rng):
            id = ids[place]
            self._visit(id, partners, mutation_probability)
            if self._networks[id].species != species:
                partners.remove(id)

    def _visit(self, id: int, partners: draws.Urn, mutation_probability: float) -> None:
        rng = generator(self._seed, "visit", generation=self._generation, network=id)
        network = self._networks[id]
        alone = self._settings.parents == "alone"
        partner = network if alone else self._networks[partners.draw(rng)]
        mates = rng.random() < self._mating_probability(network, partner)
        if mates:
            self._mate(network, partner, rng)
        may_mutate = not mates or self._settings.mating == "proportional"
        if may_mutate and rng.random() < mutation_probability and not self._is_spared(network):
            self._mutate(network, rng)

    def _mating_probability(self, network: Individual, partner: Individual) -> float:
        if self._settings.mating == "proportional":
            affinity = self._register.affinity(self._family, network, partner)
            return worth(network, self._settings) * affinity
        if len(self._born) >= self._most_offspring:
            return 0.0
        return mating_probability(
            worth(network, self._settings),
            worth(partner, self._settings),
            born=len(self._born),
            similarity=self._register.affinity(self._family, network, partner),
        )

    def _mate(self, network: Individual, partner: Individual, rng: np.random.Generator) -> None:
        """A child of two, or of a network that drew itself a clone; none if it would be too large."""
        events: tuple[Event, ...] = ()
        if partner.id == network.id:
            parents: tuple[int, ...] = (network.id,)
            phenotype, events = self._clone(network, rng)
        else:
            parents = (network.id, partner.id)
            part = share(network, partner, self._settings)
            phenotype = self._family.cross(network.phenotype, partner.phenotype, share=part, rng=rng)
        if self._is_too_large(phenotype):
            return
        self._register.birth(network.species, self._family.key(phenotype))
        self._born.append(
            Individual(
                id=self._state.next_network + len(self._born),
                phenotype=phenotype,
                parents=parents,
                birth=self._generation,
                species=network.species,
                events=events,
            )
        )

    def _clone(self, network: Individual, rng: np.random.Generator) -> tuple[Any, tuple[Event, ...]]:
        """A child of one, and what was changed in it, where its family says so."""
        if self._settings.clones == "exact":
            return network.phenotype, ()
        if not isinstance(self._family, RecordsClones):
            return self._family.clone(network.phenotype, rng), ()
        changed = self._family.cloned(network.phenotype, rng)
        if changed is None or changed.phenotype is None:
            return network.phenotype, ()
        return changed.phenotype, (Event(changed.type, changed.direction, changed.layer, "applied"),)

    def _is_spared(self, network: Individual) -> bool:
        """Whether a network may not be mutated in place: champions, but not one that is alone."""
        if self._settings.champions == "mutated":
            return False
        if network.id == self._champion:
            return True
        return network.id in self._champions and self._register.members(network.species) > 1

    def _mutate(self, network: Individual, rng: np.random.Generator) -> None:
        mutation = self._family.mutate(
            network.phenotype,
            grow=grow_probability(network),
            relative_fitness=_known(network.relative_fitness),
            rng=rng,
        )
        outcome, changed = self._judge(network, mutation)
        event = Event(mutation.type, mutation.direction, mutation.layer, outcome)
        self._count[outcome] += 1
        if mutation.reason is not None:
            self._reasons[mutation.reason] += 1
        self._networks[network.id] = replace(changed, events=(*network.events, event))

    def _judge(self, network: Individual, mutation: Mutation[Any]) -> tuple[EventOutcome, Individual]:
        """The mutated network in its species; the old one, whole, where the mutation failed or is refused."""
        if mutation.phenotype is None:
            return "failed", network
        if self._is_too_large(mutation.phenotype):
            return "refused", network
        species = self._register.move(network.species, self._family.key(mutation.phenotype))
        if species is None:
            return "refused", network
        return "applied", replace(network, phenotype=mutation.phenotype, species=species)

    def _is_too_large(self, phenotype: object) -> bool:
        most = self._most_parameters
        return most is not None and self._family.parameters(phenotype) > most

    def result(self) -> Selected:
        """The state with everybody who was changed or born."""
        state = replace(
            self._state,
            networks=(*self._networks.values(), *self._born),
            species=self._register.species,
            next_network=self._state.next_network + len(self._born),
            next_species=self._register.next_species,
        )
        return Selected(
            state=state,
            offspring=len(self._born),
            mutations=self._count["applied"],
            refused=self._count["refused"],
            failed=self._count["failed"],
            founded=self._register.founded,
            extinct=self._register.extinct,
            warnings=tuple(f"{reason} ({number} times)" for reason, number in self._reasons.most_common(3)),
        )


def _known(value: float | None) -> float:
    if value is None:
        raise ValueError("only calibrated networks are visited")
    return value
