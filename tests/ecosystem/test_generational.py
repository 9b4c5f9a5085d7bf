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


def told(config: Config, generations: int, *, same: bool = False) -> list[EcosystemState]:
    """States of a run: the nearer its first weight is to 3, the fitter a network; or all are the same."""
    family = UnstructuredFamily.from_config(config, Problem((2,), 1))
    evolution = Evolution(config, family)
    states = [evolution.start()]
    for _ in range(generations):
        outcomes = []
        for job in evolution.ask(states[-1]):
            fitness = 1.0 if same else -abs(float(job.phenotype.weights[0]) - 3)
            outcomes.append(Outcome(job.network, job.generation, job.phenotype, fitness, fitness))
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


def test_a_population_that_is_stuck_begins_anew() -> None:
    # of equals the smallest is the best: nobody may become smaller
    alike = {"unstructured__node_rate": 0.0, "unstructured__connection_rate": 0.0}
    states = told(settings(selection__patience=3, **alike), 9, same=True)
    fresh = [
        state.generation
        for state in states[1:]
        if all(not network.parents and network.birth == state.generation for network in state.networks)
    ]
    # the first network is the best from generation 1 on, and is 4 generations old after the fourth
    assert fresh == [4, 8]
    assert all(len(state.networks) == 30 for state in states)
    assert len(states[4].species) == 3
    assert states[-1].champion is not None
    patient = told(settings(selection__patience=None, **alike), 9, same=True)[-1]
    assert min(network.birth for network in patient.networks) == 0
