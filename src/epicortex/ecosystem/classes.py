"""The speciation `cost`: a species is a class of cost, with one founder that nearly fills it.

Networks compete with others of their class only: a cheap one learns faster at first, a dear one pays later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from epicortex.config import Config
from epicortex.ecosystem.state import EcosystemState, Individual, Species
from epicortex.errors import ConfigError
from epicortex.families.family import Family, HasSimplest, SizesFounders
from epicortex.randomness import generator


class CostClasses:
    """One founder for each of the classes of `speciation.classes`, each a part of the largest cost."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def start(self, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
        """The founders, from the dearest to the cheapest; an ancestor is the only founder there is."""
        if not isinstance(family, SizesFounders):
            raise ConfigError(
                f"evolution.speciation is cost; the family {family.name} cannot "
                "size founders: take --preset layered, or another preset of its own"
            )
        if ancestor is None and self._config.evolution.start_genome is not None:
            ancestor = family.minimal(generator(self._config.evolution.seed, "founding", network=1))
        founders = [ancestor]
        if ancestor is None:
            founders = self._with_simplest(self._founders(family.founder, family.cost), family)
        costs = [family.cost(founder) for founder in founders]
        species = tuple(
            Species(id=place, key=f"about {cost:,} multiplications", founded=0, cost=cost)
            for place, cost in enumerate(costs, 1)
        )
        networks = tuple(
            Individual(id=place, phenotype=founder, parents=(), birth=0, species=place)
            for place, founder in enumerate(founders, 1)
        )
        return EcosystemState(0, networks, species, len(networks) + 1, len(species) + 1)

    def register(self, state: EcosystemState, *, generation: int) -> ClassRegister:
        """Classes neither come nor go while networks are born."""
        del generation
        return ClassRegister(state)

    def _founders(self, founder: Callable[..., Any], cost_of: Callable[[Any], int]) -> list[Any]:
        """One for each class: the first nearly fills the limits; others are like it, for a part of it."""
        parts, sizes = self._config.speciation.classes, self._config.residual
        most = sizes.start_cost
        founders: list[Any] = []
        for place, part in enumerate(parts, 1):
            rng = generator(self._config.evolution.seed, "founding", network=place)
            limits = (
                None if limit is None else max(1, round(part * limit))
                for limit in (most, sizes.start_parameters)
            )
            cost, parameters = limits
            like = {"like": founders[0]} if founders else {}
            founders.append(founder(rng, max_cost=cost, max_parameters=parameters, **like))
            if place == 1:
                most = round(cost_of(founders[0]) / part)
        return founders

    def _with_simplest(self, founders: list[Any], family: Family[Any]) -> list[Any]:
        """The cheapest of several classes begins with the family's simplest network, if there is one."""
        if len(founders) == 1 or not isinstance(family, HasSimplest):
            return founders
        simplest = family.simplest(generator(self._config.evolution.seed, "founding", network=len(founders)))
        return founders if simplest is None else [*founders[:-1], simplest]


class ClassRegister:
    """The classes within one generation."""

    founded = 0
    extinct = 0

    def __init__(self, state: EcosystemState) -> None:
        self.species = state.species
        self.next_species = state.next_species
        self._members = Counter(network.species for network in state.networks)

    def members(self, species: int) -> int:
        """How many networks a class has."""
        return self._members[species]

    def affinity(self, family: Family[Any], one: Individual, other: Individual) -> float:
        """Networks of a class average what they have in common."""
        del family, one, other
        return 1.0

    def birth(self, species: int, key: str) -> None:
        """A challenger was born."""
        del key
        self._members[species] += 1

    def move(self, home: int, key: str) -> int:
        """It stays in its class."""
        del key
        return home
