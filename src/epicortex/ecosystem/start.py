"""The start: founders spread over a few species, or all minimal with one mutation each without speciation.

Where the settings ask for founders that are alike, all have the structure to start from.

How a minimal network looks and grows is left to the family.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicortex.config import Config, EvolutionConfig
from epicortex.ecosystem.state import EcosystemState, Individual, Species
from epicortex.errors import ConfigError
from epicortex.families.family import Family
from epicortex.randomness import generator

#: How often founders are drawn anew before a setting is declared impossible.
TRIES = 1000


def with_species(config: Config, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
    """Founders of several species, or of one where all are to be alike."""
    settings = config.evolution
    first = _first(settings, family, ancestor)
    if config.speciation.founders == "alike":
        prototypes = [first]
        homes = [1] * settings.initial_networks
        others = [family.minimal(_rng(settings, network=id)) for id in range(2, len(homes) + 1)]
    else:
        chained = config.speciation.grown_from == "previous"
        prototypes = _prototypes(first, settings, family, chained=chained)
        counts = shares(settings.initial_networks, len(prototypes))
        homes = [species for species, count in enumerate(counts, 1) for _ in range(count)]
        others = [_member(id, prototypes[home - 1], settings, family) for id, home in enumerate(homes[1:], 2)]
    species = tuple(
        Species(id=id, key=family.key(prototype), founded=0) for id, prototype in enumerate(prototypes, 1)
    )
    return _state([first, *others], homes, species)


def without_species(config: Config, family: Family[Any], *, ancestor: Any | None = None) -> EcosystemState:
    """Founders that are minimal with one growing mutation each, or all alike."""
    settings = config.evolution
    first = _first(settings, family, ancestor)
    numbers = range(1, settings.initial_networks + 1)
    if config.speciation.founders == "alike":
        phenotypes = [first, *(family.minimal(_rng(settings, network=id)) for id in numbers[1:])]
    else:
        phenotypes = [_mutant(id, settings, family) for id in numbers]
        if ancestor is not None:
            phenotypes[0] = ancestor
    return _state(phenotypes, [0] * len(phenotypes), ())


def _first(settings: EvolutionConfig, family: Family[Any], ancestor: Any | None) -> Any:
    """The network to start from. An ancestor becomes network 1 as it is, weights and all."""
    first = family.minimal(_rng(settings, network=1)) if ancestor is None else ancestor
    if not _fits(first, settings, family):
        raise ConfigError(
            f"evolution.max_parameters = {settings.max_parameters}: the network to start from already has "
            f"{family.parameters(first)} parameters; raise max_parameters"
        )
    return first


def _state(phenotypes: list[Any], homes: list[int], species: tuple[Species, ...]) -> EcosystemState:
    return EcosystemState(
        generation=0,
        networks=tuple(
            Individual(id=id, phenotype=phenotype, parents=(), birth=0, species=home)
            for id, (phenotype, home) in enumerate(zip(phenotypes, homes, strict=True), 1)
        ),
        species=species,
        next_network=len(phenotypes) + 1,
        next_species=len(species) + 1,
    )


def shares(networks: int, species: int) -> list[int]:
    """How many networks each species gets: evenly, a remainder one each to the first.

    >>> shares(64, 8), shares(11, 4)
    ([8, 8, 8, 8, 8, 8, 8, 8], [3, 3, 3, 2])
    """
    each, remainder = divmod(networks, species)
    return [each + (place < remainder) for place in range(species)]


def _prototypes(first: Any, settings: EvolutionConfig, family: Family[Any], *, chained: bool) -> list[Any]:
    """One network of each initial species; only the first is an inhabitant, the others give their key."""
    prototypes, known = [first], {family.key(first)}
    for id in range(2, settings.initial_species + 1):
        before = prototypes[-1] if chained else None
        prototypes.append(_prototype(id, known, settings, family, before))
        known.add(family.key(prototypes[-1]))
    return prototypes


def _prototype(
    id: int, known: set[str], settings: EvolutionConfig, family: Family[Any], before: Any | None
) -> Any:
    """A network grown from the minimal one until its key is new, or from another of the species before.

    Too large a step starts from there again.
    """
    rng = generator(settings.seed, "founding a species", network=id)

    def seed() -> Any:
        return family.minimal(rng) if before is None else family.redraw(before, rng)

    phenotype = seed()
    for _ in range(TRIES):
        phenotype = family.grow(phenotype, rng)
        if not _fits(phenotype, settings, family):
            phenotype = seed()
        elif family.key(phenotype) not in known:
            return phenotype
    limit = "" if settings.max_parameters is None else f" within max_parameters ({settings.max_parameters})"
    raise ConfigError(
        f"evolution.initial_species = {settings.initial_species}: only {id - 1} different species could be "
        f"grown{limit} in {TRIES} tries; lower initial_species"
    )


def _member(id: int, prototype: Any, settings: EvolutionConfig, family: Family[Any]) -> Any:
    """A network of the prototype's species with shapes and weights of its own."""
    rng = _rng(settings, network=id)
    for _ in range(TRIES):
        phenotype = family.redraw(prototype, rng)
        if _fits(phenotype, settings, family):
            return phenotype
    raise ConfigError(
        f"evolution.max_parameters = {settings.max_parameters}: none of {TRIES} founders drawn for one "
        "species was so small; raise max_parameters"
    )


def _mutant(id: int, settings: EvolutionConfig, family: Family[Any]) -> Any:
    """A minimal network with one growing mutation, unless that makes it too large."""
    rng = _rng(settings, network=id)
    minimal = family.minimal(rng)
    grown = family.grow(minimal, rng)
    return grown if _fits(grown, settings, family) else minimal


def _fits(phenotype: Any, settings: EvolutionConfig, family: Family[Any]) -> bool:
    return settings.max_parameters is None or family.parameters(phenotype) <= settings.max_parameters


def _rng(settings: EvolutionConfig, *, network: int) -> np.random.Generator:
    return generator(settings.seed, "founding", network=network)
