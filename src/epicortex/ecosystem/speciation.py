"""Speciation: which species a network belongs to while networks are born and change, and the species limit.

A species is the set of networks with one key. It exists while it has a member; then its slot is free.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from epicortex.config import Config
from epicortex.ecosystem.start import with_species, without_species
from epicortex.ecosystem.state import EcosystemState, Individual, Species
from epicortex.errors import VariationError
from epicortex.families.family import Family


class SpeciesByKey:
    """The paper's rule: a species is the set of networks with equal keys, and networks mate within it."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def start(self, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
        """Founders spread evenly over a few species."""
        return with_species(self._config, family, ancestor=ancestor)

    def register(self, state: EcosystemState, *, generation: int) -> KeyRegister:
        """Species by their keys, with the limit in force."""
        refused = self._config.speciation.refused
        return KeyRegister(
            state,
            generation=generation,
            limit=sys.maxsize if refused == "nothing" else self._config.evolution.species_limit,
            strict=refused == "structural",
        )


class NoSpecies:
    """Every network is of species 0: any two may mate, the more readily the more alike they are."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def start(self, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
        """Founders that differ by one mutation each."""
        return without_species(self._config, family, ancestor=ancestor)

    def register(self, state: EcosystemState, *, generation: int) -> OpenRegister:
        """Nothing is founded, refused or extinct."""
        del generation
        return OpenRegister(state)


class OpenRegister:
    """A generation without species."""

    founded = 0
    extinct = 0
    species: tuple[Species, ...] = ()

    def __init__(self, state: EcosystemState) -> None:
        self.next_species = state.next_species
        self._members = len(state.networks)

    def members(self, species: int) -> int:
        """How many networks there are."""
        del species
        return self._members

    def affinity(self, family: Family[Any], one: Individual, other: Individual) -> float:
        """The overlap of their genomes; a network is always ready for itself."""
        return 1.0 if one.id == other.id else family.similarity(one.phenotype, other.phenotype)

    def birth(self, species: int, key: str) -> None:
        """A child was born."""
        del species, key
        self._members += 1

    def move(self, home: int, key: str) -> int:
        """It stays where it is."""
        del key
        return home


class KeyRegister:
    """The species within one generation: a working copy, so that no move rebuilds the state.

    A strict one lets nobody move at the limit, not even to a species that exists.
    """

    def __init__(self, state: EcosystemState, *, generation: int, limit: int, strict: bool = False) -> None:
        self._limit = limit
        self._strict = strict
        self._generation = generation
        self._species = {species.id: species for species in state.species}
        self._by_key = {species.key: species.id for species in state.species}
        self._members = Counter(network.species for network in state.networks)
        self.next_species = state.next_species
        self.founded = 0
        self.extinct = 0

    @property
    def species(self) -> tuple[Species, ...]:
        """Those that have members, in the order of their ids."""
        return tuple(self._species.values())

    def members(self, species: int) -> int:
        """How many networks a species has at this moment: newborn, arrived and failed ones too."""
        return self._members[species]

    def affinity(self, family: Family[Any], one: Individual, other: Individual) -> float:
        """Partners are of one species: their genes can be exchanged."""
        del family, one, other
        return 1.0

    def birth(self, species: int, key: str) -> None:
        """A child was born into its parents' species."""
        if key != self._species[species].key:
            raise VariationError(
                f"a child has the key {key!r}, not that of its species, {self._species[species].key!r}; "
                "correct the family's cross or clone"
            )
        self._members[species] += 1

    def move(self, home: int, key: str) -> int | None:
        """Take a changed network from its species to the one its key belongs to, and give that one's id.

        None means refused, and nothing has changed: the key is new and there is no free slot. The slot of a
        species that dies out with this very move counts as free.
        """
        target = self._by_key.get(key)
        if target == home:
            return home
        if (target is None or self._strict) and self._is_full(home):
            return None
        if target is None:
            target = self._found(key)
        self._members[target] += 1
        self._leave(home)
        return target

    def _is_full(self, home: int) -> bool:
        freed = 1 if self._members[home] == 1 else 0
        return len(self._species) - freed >= self._limit

    def _leave(self, home: int) -> None:
        self._members[home] -= 1
        if self._members[home] == 0:
            del self._by_key[self._species.pop(home).key]
            self.extinct += 1

    def _found(self, key: str) -> int:
        species = Species(id=self.next_species, key=key, founded=self._generation)
        self._species[species.id] = species
        self._by_key[key] = species.id
        self.next_species += 1
        self.founded += 1
        return species.id


def without_empty(
    species: tuple[Species, ...], networks: tuple[Individual, ...]
) -> tuple[tuple[Species, ...], int]:
    """The species that still have a member, and how many died out."""
    inhabited = {network.species for network in networks}
    left = tuple(one for one in species if one.id in inhabited)
    return left, len(species) - len(left)
