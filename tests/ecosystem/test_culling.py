"""Who is culled, who is spared, and how likely each is drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from epicortex.ecosystem.culling import weight
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.ecosystem.strategies import Culled
from tests.ecosystem.world import BeadFamily, cull, network, settings, state

GENERATION = 8
family = BeadFamily()


def culled(before: EcosystemState, *, seed: int = 1, **changes: object) -> Culled:
    return cull(
        before,
        generation=GENERATION,
        family=family,
        settings=settings(**changes),
        rng=np.random.default_rng(seed),
    )


def ids(result: Culled) -> set[int]:
    return {one.id for one in result.state.networks}


def newborn(id: int, colours: str = "o") -> Individual:
    plain = network(id, colours, birth=GENERATION, age=0)
    return replace(plain, fitness=None, relative_fitness=None, relative_complexity=None)


@given(st.integers(1, 500), st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_the_weight_is_age_over_fitness_times_complexity(age: int, f_r: float, c_r: float) -> None:
    exact = Fraction(age) / (Fraction(f_r) * Fraction(c_r))
    one = network(1, age=age, relative_fitness=f_r, relative_complexity=c_r)
    assert weight(one) == pytest.approx(float(exact), rel=1e-12)


def test_figures_too_small_for_floating_point_still_have_a_weight() -> None:
    assert weight(network(1, age=1000, relative_fitness=1e-200, relative_complexity=1e-200)) < float("inf")


def test_networks_go_as_if_drawn_one_by_one_by_their_weights() -> None:
    figures = [(1, 0.2, 0.5), (4, 0.8, 0.4), (2, 0.5, 0.9), (7, 0.3, 0.6)]
    networks = [network(9, fitness=0.99, relative_fitness=1e-9)]  # the champion, old and spared
    networks += [
        network(id, age=age, relative_fitness=f_r, relative_complexity=c_r)
        for id, (age, f_r, c_r) in enumerate(figures, 1)
    ]
    before = state(networks)
    times = 6000

    seen = Counter(
        frozenset({1, 2, 3, 4} - ids(culled(before, seed=seed, max_networks=3))) for seed in range(times)
    )

    weights = {id: age / (f_r * c_r) for id, (age, f_r, c_r) in enumerate(figures, 1)}
    expected = {}
    for pair in combinations(weights, 2):
        total = 0.0
        for first, second in permutations(pair):
            left = sum(weights.values())
            total += weights[first] / left * weights[second] / (left - weights[first])
        expected[frozenset(pair)] = total
    assert set(seen) <= set(expected)
    assert chisquare([seen[pair] for pair in expected], [times * p for p in expected.values()]).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_newborns_and_the_champions_of_all_species_are_never_drawn(seed: int) -> None:
    networks = [
        network(1, "o", fitness=0.9, age=1000, relative_fitness=1e-6),
        network(2, "o", fitness=0.1, age=1),
        network(3, "oa", fitness=0.2, age=1000, relative_fitness=1e-6),
        network(4, "oa", fitness=0.1, age=1),
        newborn(5, "oa"),
    ]
    result = culled(state(networks), seed=seed, max_networks=4)
    assert ids(result) >= {1, 3, 5}
    assert (len(result.state.networks), result.culled, result.warnings) == (4, 1, ())


def test_one_reading_spares_the_champion_of_the_ecosystem_only() -> None:
    networks = [
        network(1, "o", fitness=0.9, age=1, relative_fitness=0.9),
        network(2, "o", fitness=0.1, age=1, relative_fitness=0.9),
        network(3, "oa", fitness=0.2, age=10**9, relative_fitness=1e-6),
    ]
    all_spared = culled(state(networks), max_networks=2)
    assert ids(all_spared) == {1, 3}
    published = culled(state(networks), max_networks=2, spared="ecosystem")
    assert ids(published) == {1, 2}
    assert [one.id for one in published.state.species] == [1]
    assert published.extinct == 1


def test_without_speciation_only_the_ecosystems_champion_is_spared() -> None:
    networks = [
        network(1, "o", fitness=0.9, age=10**9, relative_fitness=1e-6),
        network(2, "oa", fitness=0.3, age=10**9, relative_fitness=1e-6),
        network(3, "ob", fitness=0.2, age=1),
    ]
    result = culled(state(networks, speciation=False), max_networks=2, speciation=False)
    assert ids(result) == {1, 3}


def test_within_the_limit_nobody_is_drawn() -> None:
    before = state([network(1), network(2), network(3)])
    assert ids(culled(before, max_networks=3)) == {1, 2, 3}


def test_the_failed_go_first_and_before_any_draw() -> None:
    failed = replace(network(3, "oa"), fitness=None, failed="too long", relative_fitness=None)
    result = culled(state([network(1), network(2), failed]), max_networks=2)
    assert ids(result) == {1, 2}
    assert result.culled == 0
    assert result.extinct == 1, "the species of the failed one alone is extinct"


def test_when_only_protected_networks_are_left_culling_ends_with_a_warning() -> None:
    networks = [network(1, fitness=0.9), network(2), newborn(3), newborn(4)]
    result = culled(state(networks), max_networks=2)
    assert ids(result) == {1, 3, 4}
    assert result.culled == 1
    assert len(result.warnings) == 1
    assert "max_networks (2)" in result.warnings[0]


def test_champions_are_those_after_the_moves() -> None:
    """Network 2 was champion where it came from; here network 1 is fitter, and network 2 is not spared."""
    networks = [
        network(1, "o", fitness=0.9),
        network(2, "o", fitness=0.8, age=10**9, relative_fitness=1e-6),
        network(3, "o", fitness=0.1, age=1),
    ]
    assert ids(culled(state(networks), max_networks=2)) == {1, 3}
