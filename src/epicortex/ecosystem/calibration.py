"""Calibration: absolute fitness and size become relative ones, between 0 and 1, and the averages follow.

Fitness is relative to the species, so that young species are not measured against old ones; complexity is
relative to the whole ecosystem. What the figures are used for is left to reproduction and culling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from epicortex.config import Config
from epicortex.ecosystem import averages, census
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.families.family import Family

#: A deviation this small, relative to the mean, is rounding: the values count as equal.
EQUAL = 1e-9


def logistic(x: float) -> float:
    """1/(1 + exp(−x)), without overflow.

    >>> logistic(0.0), logistic(-1000.0), round(logistic(1.0), 3)
    (0.5, 0.0, 0.731)
    """
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    small = math.exp(x)
    return small / (1 + small)


def standardised(values: Sequence[float], *, running: bool = False) -> list[float]:
    """(x − µ)/σ with the population's deviation; zeros where the values are as good as equal.

    A running deviation is the published code's: of two values it is right, of many too large.

    >>> standardised([1.0, 3.0]), standardised([0.1, 0.1, 0.1])
    ([-1.0, 1.0], [0.0, 0.0, 0.0])
    >>> standardised([1.0, 3.0], running=True), round(running_variance([1.0, 3.0, 1.0, 3.0]), 3)
    ([-1.0, 1.0], 1.556)
    """
    if not values:
        return []
    mean = math.fsum(values) / len(values)
    distances = [value - mean for value in values]
    variance = math.fsum(distance * distance for distance in distances) / len(values)
    deviation = math.sqrt(running_variance(values) if running else variance)
    if deviation <= EQUAL * max(1.0, abs(mean)):
        return [0.0] * len(values)
    return [distance / deviation for distance in distances]


def running_variance(values: Sequence[float]) -> float:
    """What the published code sums up: each value's part of Welford's sum over the count up to there.

    The whole sum over the whole count would be the variance. This grows with the logarithm of the count.
    """
    mean = total = 0.0
    for count, value in enumerate(values, 1):
        before, mean = mean, mean + (value - mean) / count
        total += (value - before) * (value - mean) / count if count > 1 else 0.0
    return total


def relative(values: Sequence[float], *, running: bool = False) -> list[float]:
    """The logistic of the standardised values: 0.5 is average, and all are 0.5 where the values are equal."""
    return [logistic(z) for z in standardised(values, running=running)]


def mean_fitness(networks: Sequence[Individual]) -> float:
    """The mean fitness of evaluated networks."""
    return math.fsum(census.fitness(network) for network in networks) / len(networks)


def calibrate(state: EcosystemState, *, family: Family[Any], config: Config) -> EcosystemState:
    """Give every evaluated network its f_r and c_r, and move the averages of networks and species on."""
    running = config.selection.deviation == "running"
    fit = census.evaluated(state.networks)
    groups = census.by_species(fit)

    # Equation 2: relative fitness, over the species, or over the ecosystem where that is the only group.
    f_r: dict[int, float] = {}
    for group in groups.values():
        values = relative([census.fitness(network) for network in group], running=running)
        f_r.update(zip((network.id for network in group), values, strict=True))

    sizes = standardised([float(family.parameters(network.phenotype)) for network in fit], running=running)
    sign = 1 if config.selection.complexity == "rises" else -1  # 1 − logistic(z) is logistic(−z)
    c_r = {network.id: logistic(sign * z) for network, z in zip(fit, sizes, strict=True)}

    start = 0.0 if config.selection.average_start == "zero" else None
    follow = partial(averages.follow, rate=config.evolution.average_rate, start=start)

    def with_figures(network: Individual) -> Individual:
        if network.fitness is None:
            return network
        return replace(
            network,
            average=follow(network.average, network.fitness),
            relative_fitness=f_r[network.id],
            relative_complexity=c_r[network.id],
        )

    moved = {
        species.id: follow(species.average, mean_fitness(groups[species.id]))
        for species in state.species
        if species.id in groups
    }
    average = state.average
    if fit and not state.species:
        average = follow(average, mean_fitness(fit))
    return replace(
        state,
        networks=tuple(with_figures(network) for network in state.networks),
        species=tuple(
            replace(species, average=moved.get(species.id, species.average)) for species in state.species
        ),
        average=average,
    )
