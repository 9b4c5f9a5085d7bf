"""Speciation: which species a network belongs to while networks are born and change, and the species limit.

A species is the set of networks with one key. It exists while it has a member; then its slot is free.
"""

from __future__ import annotations

from collections import Counter

from epicortex.config import EvolutionConfig
from epicortex.ecosystem.state import EcosystemState, Individual, Species


class Register:
    """The species within one generation: a working copy of the state's, so that no move rebuilds the state.

    Without speciation every network is of species 0, and nothing is founded, refused or extinct.
    """

    def __init__(self, state: EcosystemState, *, generation: int, settings: EvolutionConfig) -> None:
        self._speciation = settings.speciation
        self._limit = settings.species_limit
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

    def key(self, species: int) -> str:
        """The key of a species."""
        return self._species[species].key

    def birth(self, species: int) -> None:
        """A child was born into its parents' species."""
        self._members[species] += 1

    def move(self, home: int, key: str) -> int | None:
        """Take a changed network from its species to the one its key belongs to, and give that one's id.

        None means refused, and nothing has changed: the key is new and there is no free slot. The slot of a
        species that dies out with this very move counts as free.
        """
        target = self._by_key.get(key)
        if target == home or not self._speciation:
            return home
        if target is None:
            freed = 1 if self._members[home] == 1 else 0
            if len(self._species) - freed >= self._limit:
                return None
            target = self._found(key)
        self._members[target] += 1
        self._leave(home)
        return target

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
