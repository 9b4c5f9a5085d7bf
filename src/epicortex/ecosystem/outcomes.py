"""Outcomes of training and scoring, checked and written into the state, in the order of the networks' ids.

A network that failed keeps its reason and has no fitness. Outcomes that do not answer what was asked are a
mistake of the caller's, and are refused before anything is taken over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from epicortex.ecosystem.jobs import Job, Outcome, Sums
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.errors import RunError
from epicortex.families.family import Family


def record(
    state: EcosystemState, jobs: Iterable[Job], outcomes: Iterable[Outcome], *, family: Family[Any]
) -> EcosystemState:
    """The state with this generation's fitness, and its trained weights; what it held before is gone."""
    asked = {one.network: one for one in jobs}
    answers = _by_network(asked, list(outcomes))
    networks = tuple(
        _evaluated(network, asked[network.id], answers[network.id], family) for network in state.networks
    )
    if all(network.failed for network in networks):
        raise RunError(_all_failed(networks, state.generation + 1))
    added = [answers[network.id].sums for network in state.networks]
    sums = summed((state.sums, *added)) if any(added) else state.sums
    return replace(state, generation=state.generation + 1, networks=networks, tally=None, sums=sums)


def summed(given: Iterable[Sums]) -> Sums:
    """Sums by name, added up in their order, so that the same outcomes give the same bits.

    >>> summed([{}, {"seen": (1.0, 2.0)}, {"seen": (3.0, 4.0)}])
    {'seen': (4.0, 6.0)}
    """
    total: dict[str, tuple[float, ...]] = {}
    for sums in given:
        for name, values in sums.items():
            before = total.get(name, (0.0,) * len(values))
            if len(before) != len(values):
                raise RunError(f"the sums {name} have {len(values)} numbers where {len(before)} are known")
            total[name] = tuple(a + b for a, b in zip(before, values, strict=True))
    return total


def _evaluated(network: Individual, job: Job, outcome: Outcome, family: Family[Any]) -> Individual:
    before = outcome.fitness_before if job.newborn else None
    if job.newborn and before is None and not job.train:
        before = outcome.fitness
    unscored = replace(
        network,
        fitness=None,
        fitness_before=None,
        relative_fitness=None,
        relative_complexity=None,
        measures={},
        losses=None,
    )
    reason = outcome.failed or _not_a_number(outcome.fitness, before)
    if reason:
        return replace(unscored, failed=reason)
    if outcome.fitness is None or outcome.phenotype is None:
        missing = "fitness" if outcome.fitness is None else "phenotype (job.phenotype, if it was not trained)"
        raise RunError(f"the outcome of network {network.id} did not fail but has no {missing}; give it one")
    if job.newborn and before is None:
        raise RunError(
            f"network {network.id} is newborn, so its outcome needs fitness_before; score it before training"
        )
    if family.key(outcome.phenotype) != family.key(network.phenotype):
        raise RunError(
            f"the outcome of network {network.id} has another structure ({family.key(outcome.phenotype)}) "
            f"than its job ({family.key(network.phenotype)}); training may change weights only"
        )
    return replace(
        unscored,
        phenotype=outcome.phenotype,
        fitness=outcome.fitness,
        fitness_before=before,
        measures=outcome.measures,
        losses=outcome.losses,
    )


def _not_a_number(*values: float | None) -> str | None:
    odd = [value for value in values if value is not None and not math.isfinite(value)]
    return f"its fitness is {odd[0]}" if odd else None


def _by_network(asked: dict[int, Job], outcomes: list[Outcome]) -> dict[int, Outcome]:
    generation = next(iter(asked.values())).generation
    for outcome in outcomes:
        if outcome.generation != generation:
            raise RunError(
                f"the outcome of network {outcome.network} is of generation {outcome.generation}, but the "
                f"state waits for generation {generation}; tell it to the state that its job came from"
            )
    counts = Counter(outcome.network for outcome in outcomes)
    unknown = sorted(id for id in counts if id not in asked)
    if unknown:
        raise RunError(
            f"there is no network {_listed(unknown)} in generation {generation}; "
            "tell only outcomes of the jobs that ask gave"
        )
    twice = sorted(id for id, count in counts.items() if count > 1)
    if twice:
        raise RunError(f"network {_listed(twice)} has more than one outcome; tell each of them once")
    missing = sorted(id for id in asked if id not in counts)
    if missing:
        raise RunError(
            f"the outcome of network {_listed(missing)} is missing; tell all {len(asked)} outcomes at once, "
            "and Outcome(..., failed=reason) for a network that failed"
        )
    return {outcome.network: outcome for outcome in outcomes}


def _listed(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:5]))
    return shown if len(ids) <= 5 else f"{shown} (and {len(ids) - 5} more)"


def _all_failed(networks: tuple[Individual, ...], generation: int) -> str:
    reasons = Counter(str(network.failed) for network in networks).most_common(5)
    listed = "; ".join(f"{reason} ({count} times)" if count > 1 else reason for reason, count in reasons)
    return (
        f"all {len(networks)} networks of generation {generation} failed: {listed}; "
        "fix the cause and run it again"
    )
