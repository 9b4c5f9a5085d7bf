"""Culling: the failed go, then networks drawn by age, unfitness and size until the ecosystem fits its limit.

Newborns and champions are never drawn. Which species that empties is found out here too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem import census, draws, speciation
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.ecosystem.strategies import Culled
from epicortex.families.family import Family


class PaperCulling:
    """The paper's rule."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """Remove the failed, then draw while there are more than `max_networks`."""
        networks = tuple(network for network in state.networks if network.failed is None)
        spared = self._config.culling.spared
        safe = protected(networks, generation=generation, family=family, spared=spared)
        return drawn_out(
            state, weight, safe, most=self._config.evolution.max_networks, generation=generation, rng=rng
        )


class AgeCulling:
    """For controls: the old go, whatever their fitness and size. Only newborns are safe."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """Remove the failed, then draw by age while there are more than `max_networks`."""
        del family
        newborns = {network.id for network in state.networks if network.birth == generation}
        most = self._config.evolution.max_networks
        return drawn_out(
            state, lambda network: network.age, newborns, most=most, generation=generation, rng=rng
        )


def drawn_out(
    state: EcosystemState,
    weight: Callable[[Individual], float],
    safe: Collection[int],
    *,
    most: int,
    generation: int,
    rng: np.random.Generator,
) -> Culled:
    """The state without the failed, and without as many others, drawn by weight, as there are too many."""
    networks = tuple(network for network in state.networks if network.failed is None)
    surplus = max(0, len(networks) - most)
    candidates = [network for network in networks if network.id not in safe] if surplus else []
    places = draws.order([weight(network) for network in candidates], rng) if candidates else []
    drawn = {candidates[place].id for place in places[:surplus]}
    warnings: tuple[str, ...] = ()
    if surplus > len(candidates):
        warnings = (
            f"{len(networks) - len(drawn)} networks stay, more than max_networks "
            f"({most}), since all of them are newborns or champions",
        )
    survivors = tuple(network for network in networks if network.id not in drawn)
    species, extinct = speciation.without_empty(state.species, survivors)
    return Culled(replace(state, networks=survivors, species=species), len(drawn), extinct, warnings)


def weight(network: Individual) -> float:
    """How likely a network is drawn, relative to others: old, unfit and complex ones go first (eq. 9)."""
    if network.relative_fitness is None or network.relative_complexity is None:
        raise ValueError(f"network {network.id} is not calibrated, so it cannot be drawn in culling")
    worth = network.relative_fitness * network.relative_complexity
    return network.age / max(worth, draws.SMALLEST_WEIGHT)


def protected(
    networks: tuple[Individual, ...], *, generation: int, family: Family[Any], spared: str
) -> set[int]:
    """The ids that culling never draws: newborns and champions, found after all moves."""
    newborns = {network.id for network in networks if network.birth == generation}
    if spared == "species":
        return newborns | {best.id for best in census.champions(networks, family).values()}
    best = census.champion(networks, family)
    return newborns | ({best.id} if best else set())
