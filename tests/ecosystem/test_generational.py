"""The selection `generational`: who has children, how many, and who lives on."""

from __future__ import annotations

import numpy as np

from epicortex.config import Config
from epicortex.config.resolving import resolve
from epicortex.ecosystem.jobs import Outcome
from epicortex.ecosystem.state import EcosystemState
from epicortex.evolution import Evolution
from epicortex.families.family import Problem
from epicortex.families.unstructured import UnstructuredFamily


def settings(**changes: object) -> Config:
    small = {"evolution.initial_networks": 30, "evolution.max_networks": 30}
    return resolve("task", {**small, **{name.replace("__", "."): value for name, value in changes.items()}})


def told(config: Config, generations: int) -> list[EcosystemState]:
    """States of a run in which a network is the fitter, the nearer its first weight is to 3."""
    family = UnstructuredFamily.from_config(config, Problem((2,), 1))
    evolution = Evolution(config, family)
    states = [evolution.start()]
    for _ in range(generations):
        outcomes = [
            Outcome(
                job.network, job.generation, job.phenotype, *[-abs(float(job.phenotype.weights[0]) - 3)] * 2
            )
            for job in evolution.ask(states[-1])
        ]
        states.append(evolution.tell(states[-1], outcomes).state)
    return states


def test_the_ecosystem_keeps_its_size_and_only_champions_live_on() -> None:
    for state in told(settings(), 5)[1:]:
        assert len(state.networks) == 30
        old = [network for network in state.networks if network.birth < state.generation]
        assert len({network.species for network in old}) == len(old)


def test_children_come_from_the_fittest_part_of_their_species() -> None:
    before, after = told(settings(selection__survivors=0.2), 1)
    value = {network.id: -abs(float(network.phenotype.weights[0]) - 3) for network in before.networks}
    home = {network.id: network.species for network in before.networks}
    for child in after.networks:
        for parent in child.parents:
            rivals = [id for id in value if home[id] == home[parent]]
            better = sum(value[id] > value[parent] for id in rivals)
            assert better < max(2, round(0.2 * len(rivals)))


def test_fitness_rises_and_the_same_seed_gives_the_same_bits() -> None:
    one, two = (told(settings(), 12)[-1] for _ in range(2))
    assert one.champion is not None
    assert one.champion.fitness is not None
    assert one.champion.fitness > -0.1
    pairs = zip(one.networks, two.networks, strict=True)
    assert all(np.array_equal(a.phenotype.weights, b.phenotype.weights) for a, b in pairs)


def test_without_evolution_nobody_is_born() -> None:
    states = told(settings(evolution__evolve=False), 2)
    assert {network.id for network in states[-1].networks} == {network.id for network in states[0].networks}
