"""Who competes, and who is better: by the losses of the same samples, paired, so that small gains show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem.state import Individual
from epicortex.families.family import Family, HasSimplest

#: The network that is kept beside the leading one costs at most this part of it: the first, else the second.
_SMALLER: Final = (0.35, 0.7)
#: By how many standard errors the mean loss has to be lower.
_CLEARLY: Final = 1.0
#: And by how many it has to be lower than that of the simplest network: structure must pay.
_PAYS: Final = 2.0
_PAYS_BOUNDED: Final = 3.0


def challengers(config: Config, classes: int) -> int:
    """How many challengers the incumbent of a class has: enough for all siblings' places, at least one."""
    return max(1, (config.budget.siblings or 1) // max(1, classes) - 1)


def loss(network: Individual) -> float:
    """The mean loss of a scored network; of one without losses the part that it gets wrong."""
    if network.losses is not None:
        return float(np.mean(network.losses, dtype=np.float64))
    if network.fitness is None:
        raise ValueError(f"network {network.id} has not been scored")
    return 1.0 - network.fitness


def clearly_better(one: Individual, other: Individual, errors: float = _CLEARLY) -> bool:
    """Whether the first has a lower loss, by more than chance would give between samples.

    >>> from dataclasses import replace
    >>> other = Individual(1, None, (), 0, 0, fitness=0.5, losses=np.array([1, 2, 3, 4], np.float32))
    >>> better = replace(other, losses=np.array([0.9, 1.8, 2.8, 3.7], np.float32))
    >>> clearly_better(better, other), clearly_better(other, better), clearly_better(other, other)
    (True, False, False)
    """
    if one.losses is None or other.losses is None or len(one.losses) != len(other.losses):
        return loss(one) < loss(other)
    gains = other.losses.astype(np.float64) - one.losses
    gain = float(gains.mean())
    error = float(gains.std()) / math.sqrt(len(gains))
    return gain > 0 and gain >= errors * error


def leading(networks: Sequence[Individual], family: Family[Any]) -> Individual:
    """Of the best of each class the one to train to the end: the dearest that no cheaper one clearly beats.

    Cheap networks learn faster at first, so that a tie goes to the dearer. Where none was scored yet, it is
    the one in the middle.
    """
    order = sorted(networks, key=lambda one: (-family.cost(one.phenotype), one.id))
    scored = [one for one in order if one.fitness is not None]
    if not scored:
        return order[len(order) // 2]
    lead = scored[0]
    for cheaper in scored[1:]:
        if clearly_better(cheaper, lead):
            lead = cheaper
    return lead


def preferred(best: Individual, networks: Sequence[Individual], family: Family[Any]) -> Individual:
    """The best of some networks, or the simplest that the family knows, unless more clearly pays."""
    if is_simplest(best, family):
        return best
    simple = [one for one in networks if one.fitness is not None and is_simplest(one, family)]
    first = min(simple, key=lambda one: (loss(one), one.id), default=best)
    pays = clearly_better(best, first, _PAYS) or clearly_better(
        _bounded(best), _bounded(first), _PAYS_BOUNDED
    )
    return best if pays else first


def _bounded(network: Individual) -> Individual:
    """With losses from 0 to 1: for classes the probability that went to others. No sample weighs much."""
    if network.losses is None:
        return network
    # rounded from double precision, since exponentials of CPUs differ in the last digit
    lost = -np.expm1(-network.losses.astype(np.float64))
    return replace(network, losses=lost.astype(np.float32))


def is_simplest(network: Individual, family: Family[Any]) -> bool:
    """Whether a network has the structure of the simplest that its family knows."""
    return isinstance(family, HasSimplest) and family.is_simplest(network.phenotype)


def beside(networks: Sequence[Individual], lead: Individual, family: Family[Any]) -> Individual | None:
    """The smaller network that is kept with the leading one, if there is any: the simplest, or another."""
    simple = [one for one in networks if one.id != lead.id and is_simplest(one, family)]
    if simple:
        return simple[0]
    cost = family.cost(lead.phenotype)
    for part in _SMALLER:
        smaller = [one for one in networks if family.cost(one.phenotype) <= part * cost]
        if smaller:
            return max(smaller, key=lambda one: (family.cost(one.phenotype), -one.id))
    return None


def behind(networks: Sequence[Individual], family: Family[Any]) -> set[int]:
    """The classes that need not go on: a dearer one is clearly better, and the run has a small network."""
    lead = leading(networks, family)
    kept = beside(networks, lead, family)
    return {
        one.species
        for one in networks
        if one.id not in (lead.id, kept.id if kept else None)
        and family.cost(one.phenotype) < family.cost(lead.phenotype)
        and clearly_better(lead, one)
    }
