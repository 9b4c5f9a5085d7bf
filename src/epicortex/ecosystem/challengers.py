"""The selection `challengers`: the incumbent of a class never stops training, and others try to beat it.

A challenger is a copy of the incumbent with one mutation. Both get the same work; then the one with the lower
validation loss goes on as the incumbent, or the dearer if there is nothing between them. What the two have in
common is averaged after every generation, so that nothing that was learned is lost, and they differ in little
but the mutation. A new challenger forks from the winner. In polish, siblings are averaged in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem import census, speciation
from epicortex.ecosystem.comparison import behind, challengers, clearly_better, is_simplest, loss, preferred
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState, Event, Individual
from epicortex.ecosystem.strategies import Culled, Register, Selected
from epicortex.errors import ConfigError, RunError
from epicortex.families.family import Family
from epicortex.randomness import generator

#: How far a challenger may be in cost from what its class is for: such networks compete fairly.
_CLASS: Final = (0.7, 1.4)
#: How many of them grow, where they can: that keeps what was learned exactly, so that their work counts at
#: once, while one that has lost nodes has to recover first.
_GROWING: Final = 0.75
#: How often a mutation is drawn before a class goes without a challenger for a generation.
_TRIES: Final = 20
#: A loser that is so much worse has nothing to give.
_RUINED: Final = 1.15


class ChallengerSelection:
    """Compares, averages and forks, class by class."""

    def __init__(self, config: Config) -> None:
        if config.evolution.speciation == "none":
            raise ConfigError(
                "evolution.selection is challengers, which compete within classes of cost; to evolve without "
                "species, take another preset, such as layered"
            )
        self._config = config
        self._averages = config.selection.averaging

    def calibrate(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """Losses are compared as they are."""
        del family
        return state

    def champion(self, networks: Sequence[Individual], family: Family[Any]) -> Individual | None:
        """The network with the lowest validation loss; of equals the smaller, then the older.

        Where the family knows a simplest network, others must be clearly better than that.
        """
        scored = census.evaluated(networks)
        if not scored:
            return None
        best = min(scored, key=lambda one: (loss(one), family.parameters(one.phenotype), one.id))
        return preferred(best, scored, family)

    def prepare(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """The population that a plan asks for: challengers at first, siblings when polish begins."""
        plan = state.plan
        if plan is None:
            raise ValueError("this selection needs a budget that plans, such as planned")
        if plan.phase == "search":
            whole = any(len(group) > 1 for group in census.by_species(state.networks).values())
            return state if whole or not self._evolves else self._challenged(state, family).state
        return _with_siblings(state, plan, family) if plan.first else state

    @property
    def _evolves(self) -> bool:
        return self._config.evolution.evolve

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """After a comparison new challengers are born; after a generation of polish siblings are averaged."""
        del register, generation
        state = state.older()
        plan = state.plan
        if plan is not None and plan.phase == "polish":
            averaged = state if plan.last or not self._averages else _averaged_siblings(state, family)
            return Selected(averaged, 0, 0, 0, 0, 0, 0)
        if plan is None or plan.last or not self._evolves:
            return Selected(state, 0, 0, 0, 0, 0, 0)
        shared = self._shared(state, family)
        return self._challenged(shared, family) if plan.judge else Selected(shared, 0, 0, 0, 0, 0, 0)

    def _shared(self, state: EcosystemState, family: Family[Any]) -> EcosystemState:
        """What the networks of a class have in common, averaged in each of them, but for the ruined ones."""
        if not self._averages:
            return state
        phenotypes = {network.id: network.phenotype for network in state.networks}
        for group in census.by_species(census.evaluated(state.networks)).values():
            limit = _RUINED * min(map(loss, group))
            sound = [one for one in group if loss(one) <= limit]
            for one in sound:
                others = [other.phenotype for other in sound if other.id != one.id]
                phenotypes[one.id] = _mean(family, one.phenotype, others)
        return replace(
            state, networks=tuple(replace(one, phenotype=phenotypes[one.id]) for one in state.networks)
        )

    def _challenged(self, state: EcosystemState, family: Family[Any]) -> Selected:
        """With new challengers for the winner of every class."""
        groups = census.by_species(network for network in state.networks if network.failed is None)
        born: list[Individual] = []
        failed = 0
        winners = [judge(group, family) for group in groups.values()]
        for winner in winners:
            if is_simplest(winner, family):
                continue  # it is there to be beaten
            for _ in range(challengers(self._config, len(groups))):
                challenger = self._challenger(winner, state.next_network + len(born), state, family)
                if challenger is None:
                    failed += 1
                else:
                    born.append(challenger)
        lead = {winner.id for winner in winners}
        networks = tuple(replace(one, pace=1.0) if one.id in lead else one for one in state.networks)
        after = replace(state, networks=(*networks, *born), next_network=state.next_network + len(born))
        return Selected(after, len(born), len(born), 0, failed, 0, 0)

    def _challenger(
        self, winner: Individual, id: int, state: EcosystemState, family: Family[Any]
    ) -> Individual | None:
        """The winner with one mutation that keeps it in its class; None where none was found."""
        rng = generator(self._config.evolution.seed, "challenger", generation=state.generation, network=id)
        cost = family.cost(winner.phenotype)
        low, high = _class_bounds(state, winner.species)
        for _ in range(_TRIES):
            tried = family.mutate(winner.phenotype, grow=_GROWING, relative_fitness=0.5, rng=rng)
            if tried.phenotype is None or not low <= family.cost(tried.phenotype) <= high:
                continue
            return Individual(
                id=id,
                phenotype=tried.phenotype,
                parents=(winner.id,),
                birth=state.generation,
                species=winner.species,
                pace=cost / family.cost(tried.phenotype),
                events=(Event(tried.type, tried.direction, tried.layer, "applied"),),
            )
        return None


class OutcompetedCulling:
    """After a comparison the winner of each class is left, and who was born since.

    A class ends where a dearer one is clearly better, unless the run keeps it as its small one.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """Remove the failed, and where the plan says so the beaten."""
        del rng
        left = tuple(network for network in state.networks if network.failed is None)
        plan, old = state.plan, census.evaluated(left)
        if plan is not None and plan.judge and self._config.evolution.evolve and old:
            winners = [judge(group, family) for group in census.by_species(old).values()]
            kept = {one.id for one in winners} | {one.id for one in left if one.fitness is None}
            over = behind(winners, family) if self._config.culling.classes else set()
            left = tuple(one for one in left if one.id in kept and one.species not in over)
        beaten = sum(one.failed is None for one in state.networks) - len(left)
        species, extinct = speciation.without_empty(state.species, left)
        return Culled(replace(state, networks=left, species=species), beaten, extinct)


def _class_bounds(state: EcosystemState, species: int) -> tuple[float, float]:
    """The least and the most that a network of a class costs."""
    (cost,) = (one.cost for one in state.species if one.id == species)
    low, high = _CLASS
    return (0.0, math.inf) if cost is None else (low * cost, high * cost)


def judge(group: Sequence[Individual], family: Family[Any], *, ties: bool = True) -> Individual:
    """The winner: the incumbent, which is the oldest, or the best of those that may take its place.

    Without `ties`, as where few samples were scored, a challenger has to be clearly better.
    """
    scored = [one for one in group if one.fitness is not None]
    if not scored:
        return min(group, key=lambda one: one.id)
    incumbent = min(scored, key=lambda one: one.id)
    better = [
        one
        for one in scored
        if clearly_better(one, incumbent) or (ties and _is_dearer_and_level(one, incumbent, family))
    ]
    return min(better, key=lambda one: (loss(one), one.id), default=incumbent)


def _is_dearer_and_level(challenger: Individual, incumbent: Individual, family: Family[Any]) -> bool:
    """Whether it is dearer and not clearly worse, though it has taken fewer steps.

    What was added pays later, as dear networks do.
    """
    dearer = family.cost(challenger.phenotype) > family.cost(incumbent.phenotype)
    return dearer and not clearly_better(incumbent, challenger)


def _mean(family: Family[Any], first: Any, others: Sequence[Any]) -> Any:
    """The mean of networks, in the structure of the first."""
    mean, rng = first, np.random.default_rng(0)  # a mean draws nothing
    for count, other in enumerate(others, 1):
        mean = family.cross(mean, other, share=count / (count + 1), rng=rng)
    return mean


def _averaged_siblings(state: EcosystemState, family: Family[Any]) -> EcosystemState:
    """All siblings of a species with the mean of what they have learned."""
    means: dict[int, Any] = {}
    for species, group in census.by_species(census.evaluated(state.networks)).items():
        if len(group) > 1:
            means[species] = _mean(family, group[0].phenotype, [other.phenotype for other in group[1:]])
    networks = tuple(
        replace(one, phenotype=means.get(one.species, one.phenotype)) if one.fitness is not None else one
        for one in state.networks
    )
    return replace(state, networks=networks)


def _with_siblings(state: EcosystemState, plan: Plan, family: Family[Any]) -> EcosystemState:
    """The chosen species only, each as so many copies of its network."""
    groups = census.by_species(network for network in state.networks if network.failed is None)
    if plan.main not in groups:
        raise RunError(f"the plan is not of this run: it polishes class {plan.main}, which is not there")
    # Whoever is left beside a winner was not compared on all samples: the search ended late.
    kept = [
        judge(group, family, ties=False)
        for species, group in groups.items()
        if species in (plan.main, plan.small)
    ]
    kept.sort(key=lambda one: one.id)
    born = [
        Individual(
            id=0,
            phenotype=one.phenotype,
            parents=(one.id,),
            birth=state.generation,
            species=one.species,
        )
        for one in kept
        for _ in range(plan.siblings - 1)
    ]
    numbered = [replace(one, id=state.next_network + place) for place, one in enumerate(born)]
    networks = (*(replace(one, pace=1.0) for one in kept), *numbered)
    species, _ = speciation.without_empty(state.species, networks)
    return replace(state, networks=networks, species=species, next_network=state.next_network + len(born))
