"""The naive search that classes of cost are there to improve on: one pool, equal work, the best four of six.

All networks compete with each other, whatever they cost, and each gets the same multiplications; a smaller
one takes more steps for them. After a comparison the four with the lowest validation loss stay, and two
mutants of them are born. What wins is polished as in ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem import census
from epicortex.ecosystem.challengers import ChallengerSelection
from epicortex.ecosystem.classes import CostClasses
from epicortex.ecosystem.comparison import loss
from epicortex.ecosystem.state import EcosystemState, Event, Individual, Species
from epicortex.ecosystem.strategies import Culled, Register, Selected
from epicortex.families.family import Family
from epicortex.randomness import generator

POOL: Final = 6
SURVIVORS: Final = 4
_TRIES: Final = 20
#: Two founders of each of the usual sizes.
SETTINGS: Final[dict[str, object]] = {"speciation.classes": (1.0, 0.5, 0.25, 1.0, 0.5, 0.25)}


class OnePool(CostClasses):
    """The usual founders, all in one species."""

    def start(self, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
        """Founders, none of them protected from another."""
        state = super().start(family, ancestor=ancestor)
        networks = tuple(replace(network, species=1) for network in state.networks)
        return replace(state, networks=networks, species=(Species(1, "all", 0),), next_species=2)


class BestOfPool(ChallengerSelection):
    """Survivors are those with the lowest loss, by however little."""

    def prepare(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """In search all get equal work; polish begins with the best alone."""
        if state.plan is not None and state.plan.phase == "search":
            first = family.cost(state.networks[0].phenotype)
            return replace(
                state,
                networks=tuple(
                    replace(one, pace=first / family.cost(one.phenotype)) for one in state.networks
                ),
            )
        structures = {network.phenotype.genome for network in state.networks}
        if len(structures) > 1:
            state = replace(state, networks=tuple(best(state.networks, 1)))
        return super().prepare(state, family=family)

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """After a comparison mutants of the survivors are born; polish is as usual."""
        plan = state.plan
        if plan is None or plan.phase == "polish" or plan.last or not plan.judge:
            judged = replace(state, plan=plan and replace(plan, judge=False))
            done = super().select(judged, generation=generation, family=family, register=register)
            return replace(done, state=replace(done.state, plan=plan))
        networks = tuple(replace(network, age=network.age + 1) for network in state.networks)
        survivors = best(networks, SURVIVORS)
        born = []
        for place in range(POOL - len(survivors)):
            child = self._mutant(survivors, state.next_network + place, state, family)
            if child is not None:
                born.append(child)
        after = replace(state, networks=(*networks, *born), next_network=state.next_network + POOL)
        return Selected(after, len(born), len(born), 0, 0, 0, 0)

    def _mutant(
        self, parents: Sequence[Individual], id: int, state: EcosystemState, family: Family[Any]
    ) -> Individual | None:
        rng = generator(self._config.evolution.seed, "mutant", generation=state.generation, network=id)
        parent = parents[int(rng.integers(len(parents)))]
        for _ in range(_TRIES):
            tried = family.mutate(parent.phenotype, grow=0.5, relative_fitness=0.5, rng=rng)
            if tried.phenotype is not None:
                event = Event(tried.type, tried.direction, tried.layer, "applied")
                return Individual(id, tried.phenotype, (parent.id,), state.generation, 1, events=(event,))
        return None


class WorstOfPool:
    """After a comparison only the survivors are left, and who was born since; at last only the best."""

    def __init__(self, config: Config) -> None:
        del config

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """Remove the failed, and after a comparison the worst."""
        del generation, family, rng
        networks = [network for network in state.networks if network.failed is None]
        plan = state.plan
        if plan is None or plan.phase == "polish" or not plan.judge:
            return Culled(replace(state, networks=tuple(networks)), 0, 0)
        left = {one.id for one in best(networks, 1 if plan.last else SURVIVORS)}
        kept = tuple(one for one in networks if one.id in left or one.fitness is None)
        return Culled(replace(state, networks=kept), len(networks) - len(kept), 0)


PARTS: Final = {"speciation": OnePool, "selection": BestOfPool, "culling": WorstOfPool}


def best(networks: Sequence[Individual], most: int) -> list[Individual]:
    """Those with the lowest loss, in the order of their ids; unscored ones only where nobody has a score."""
    scored = census.evaluated(networks) or list(networks)
    if scored[0].fitness is None:
        return scored[:most]
    return sorted(sorted(scored, key=lambda one: (loss(one), one.id))[:most], key=lambda one: one.id)
