"""Culling for ecosystems without a species limit: species that improve least lose their places first.

Where nothing limits the number of species (`speciation.refused = "nothing"`), it follows from the networks
there are and from how species fare; no setting says it. Who goes within a species is the paper's rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem import averages, census, culling
from epicortex.ecosystem.calibration import mean_fitness, relative
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.ecosystem.strategies import Culled
from epicortex.families.family import Family


class ImprovementCulling:
    """The paper's weight, age/(f_r·c_r), over how the species improves compared with the others.

    Newborns, networks that founded a species just now, and the champions of the ecosystem and of all species
    that improve at least as much as the average are never drawn. A species that does not may lose its last
    network. Without species this is the paper's rule.
    """

    def __init__(self, config: Config) -> None:
        self._config = config

    def cull(
        self, state: EcosystemState, *, generation: int, family: Family[Any], rng: np.random.Generator
    ) -> Culled:
        """Remove the failed, then draw while there are more than `max_networks`."""
        improving = improvements(state)
        networks = tuple(network for network in state.networks if network.failed is None)
        new = {species.id for species in state.species if species.founded == generation}
        safe = culling.protected(networks, generation=generation, family=family, spared="ecosystem")
        safe |= {network.id for network in networks if network.species in new}
        safe |= {
            best.id
            for species, best in census.champions(networks, family).items()
            if improving.get(species, 0.0) >= _AVERAGE
        }

        def weight(network: Individual) -> float:
            return culling.weight(network) / improving.get(network.species, _AVERAGE)

        most = self._config.evolution.max_networks
        return culling.drawn_out(state, weight, safe, most=most, generation=generation, rng=rng)


#: What a species has that improves as much as the mean of all.
_AVERAGE = 0.5


def improvements(state: EcosystemState) -> dict[int, float]:
    """How each species improves, from 0 to 1: the standing of its fitness in its own moving average.

    That is made relative over all species, so that 0.5 is average. One that has no average yet stands at it.
    """
    groups = census.by_species(census.evaluated(state.networks))
    known = [species for species in state.species if species.id in groups]
    standings = [averages.standing(species.average, mean_fitness(groups[species.id])) for species in known]
    return {species.id: value for species, value in zip(known, relative(standings), strict=True)}
