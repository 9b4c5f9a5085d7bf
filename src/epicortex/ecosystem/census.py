"""Questions about who lives in an ecosystem: the fit, who belongs to which species, who is champion.

Nothing is decided or changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from epicortex.ecosystem.state import Individual
from epicortex.families.family import Family


def evaluated(networks: Iterable[Individual]) -> list[Individual]:
    """The networks that have a fitness: neither failed in this generation nor born in it."""
    return [network for network in networks if network.fitness is not None]


def by_species(networks: Iterable[Individual]) -> dict[int, list[Individual]]:
    """The networks of each species, under its id; without speciation all of them, under 0."""
    groups: dict[int, list[Individual]] = {}
    for network in networks:
        groups.setdefault(network.species, []).append(network)
    return groups


def fitness(network: Individual) -> float:
    """The absolute fitness of an evaluated network."""
    if network.fitness is None:
        raise ValueError(f"network {network.id} has no fitness yet")
    return network.fitness


def champion(networks: Sequence[Individual], family: Family[Any]) -> Individual | None:
    """The fittest; ties go to fewer parameters, then to the lower id. None where nobody has a fitness."""
    candidates = evaluated(networks)
    if not candidates:
        return None
    highest = max(fitness(network) for network in candidates)
    ties = [network for network in candidates if network.fitness == highest]
    return min(ties, key=lambda network: (family.parameters(network.phenotype), network.id))


def champions(networks: Iterable[Individual], family: Family[Any]) -> dict[int, Individual]:
    """The champion of each species that has an evaluated member."""
    found = {species: champion(group, family) for species, group in by_species(networks).items()}
    return {species: best for species, best in found.items() if best is not None}
