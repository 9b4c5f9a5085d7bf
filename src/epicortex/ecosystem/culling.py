"""Culling: the failed go, then networks drawn by age, unfitness and size until the ecosystem fits its limit.

Newborns and champions are never drawn. Which species that empties is found out here too.
"""

from __future__ import annotations

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
        most = self._config.evolution.max_networks
        networks = tuple(network for network in state.networks if network.failed is None)
        surplus = max(0, len(networks) - most)
        drawn: set[int] = set()
        warnings: tuple[str, ...] = ()
        if surplus:
            safe = protected(
                networks, generation=generation, family=family, spared=self._config.culling.spared
            )
            candidates = [network for network in networks if network.id not in safe]
            places = draws.order([weight(network) for network in candidates], rng)
            drawn = {candidates[place].id for place in places[:surplus]}
            if surplus > len(candidates):
                left = len(networks) - len(drawn)
                warnings = (
                    f"{left} networks stay, more than max_networks "
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
