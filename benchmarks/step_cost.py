"""What a generation costs besides training: a network's share of ask and tell, at 100 and at 10,000 networks.

Fitness is synthetic. Run it with `python -m benchmarks.step_cost`; it fails if the larger ecosystem costs
more than 1.5 times as much per network.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

from benchmarks.measure import row
from epicortex.config import Config, changed
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.state import EcosystemState
from epicortex.evolution import Evolution
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily

SMALL, LARGE = 100, 10_000
ALLOWED = 1.5

Generation = tuple[EcosystemState, list[Outcome]]


def outcomes(jobs: tuple[Job, ...]) -> list[Outcome]:
    """Fitness spread evenly from 0 to 1: its mean never moves, so as many mutate at either size."""
    scores = np.random.default_rng(jobs[0].generation).permutation(np.linspace(0, 1, len(jobs)))
    return [
        Outcome(
            job.network,
            job.generation,
            job.phenotype,
            fitness=float(score),
            fitness_before=0.5 if job.newborn else None,
        )
        for job, score in zip(jobs, scores, strict=True)
    ]


def evolution(networks: int, species: int, *, speciation: bool) -> Evolution:
    config = changed(
        Config(),
        evolution={
            "speciation": "key" if speciation else "none",
            "initial_networks": networks,
            "max_networks": networks,
            "initial_species": species // 4,
            "max_species": species,
        },
    )
    return Evolution(config, LayeredFamily.from_config(config, Problem((1, 8, 8), 10)))


def generations(evolution: Evolution, *, first: int, count: int) -> list[Generation]:
    """States with their outcomes, from generation `first` on, when the ecosystem is full and mixed."""
    state, found = evolution.start(), []
    for generation in range(1, first + count):
        told = outcomes(evolution.ask(state))
        if generation >= first:
            found.append((state, told))
        state = evolution.tell(state, told).state
    return found


def cost(evolution: Evolution, known: list[Generation]) -> float:
    """The seconds that ask and tell take over these generations."""
    start = time.process_time()
    for state, told in known:
        evolution.ask(state)
        evolution.tell(state, told)
    return time.process_time() - start


def ratio(name: str, *, species: tuple[int, int], speciation: bool = True, rounds: int) -> float:
    small = evolution(SMALL, species[0], speciation=speciation)
    large = evolution(LARGE, species[1], speciation=speciation)
    many = generations(small, first=3, count=LARGE // SMALL // 2)
    one = generations(large, first=3, count=1)
    counts = [sum(len(state.networks) for state, _ in known) for known in (one, many)]
    # Processor time of this one thread, turn and turn about: the machine may be busy with other things.
    pairs = [(cost(large, one) / counts[0], cost(small, many) / counts[1]) for _ in range(rounds)]
    per_network = [statistics.median(side) for side in zip(*pairs, strict=True)]
    quotient = statistics.median(ours / theirs for ours, theirs in pairs)
    seen = f"{per_network[0] * 1e6:.0f} µs / {per_network[1] * 1e6:.0f} µs = {quotient:.2f}"
    row(f"a generation's own work for each network, {LARGE:,} / {SMALL} networks, {name}", seen)
    return quotient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often both are measured")
    rounds = parser.parse_args().rounds
    ratios = [
        ratio("16 species", species=(16, 16), rounds=rounds),
        ratio("species in proportion", species=(16, 400), rounds=rounds),
        ratio("no speciation", species=(16, 16), speciation=False, rounds=rounds),
    ]
    if max(ratios) > ALLOWED:
        sys.exit(f"the cost per network grows by {max(ratios):.2f}, more than {ALLOWED}")


if __name__ == "__main__":
    main()
