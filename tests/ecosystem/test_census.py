"""Who is champion."""

from __future__ import annotations

from dataclasses import replace

from epicortex.ecosystem.census import champion, champions
from tests.ecosystem.world import BeadFamily, network, state

family = BeadFamily()


def test_the_champion_is_the_fittest() -> None:
    networks = [network(1, fitness=0.3), network(2, fitness=0.9), network(3, fitness=0.5)]
    best = champion(networks, family)
    assert best is not None
    assert best.id == 2


def test_ties_go_to_fewer_parameters_then_to_the_lower_id() -> None:
    networks = [network(1, sizes=(5,)), network(2, sizes=(3,)), network(3, sizes=(3,))]
    for given in (networks, networks[::-1]):
        best = champion(given, family)
        assert best is not None
        assert best.id == 2


def test_the_failed_and_the_newborn_are_no_champions() -> None:
    failed = replace(network(1), fitness=None, failed="it ran out of memory")
    newborn = replace(network(2), fitness=None)
    assert champion([failed, newborn], family) is None
    best = champion([failed, newborn, network(3, fitness=0.01)], family)
    assert best is not None
    assert best.id == 3


def test_each_species_with_an_evaluated_member_has_its_champion() -> None:
    networks = [
        network(1, "o", fitness=0.3),
        network(2, "oa", fitness=0.9),
        network(3, "oa", fitness=0.95),
        replace(network(4, "ob"), fitness=None),
    ]
    found = champions(state(networks).networks, family)
    assert {species: best.id for species, best in found.items()} == {1: 1, 2: 3}
