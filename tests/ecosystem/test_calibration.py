"""Relative fitness and complexity, recomputed with scipy and statistics from the published formulas."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import zscore

from epicortex.ecosystem.calibration import calibrate, logistic, relative, running_variance
from epicortex.ecosystem.state import Individual, MovingAverage
from tests.ecosystem.world import BeadFamily, network, settings, state

fitness = st.integers(0, 10_000).map(lambda hits: hits / 10_000)


@st.composite
def ecosystems(draw: st.DrawFn) -> list[Individual]:
    members = draw(
        st.lists(
            st.tuples(st.sampled_from(["o", "oa", "oab"]), fitness, st.integers(1, 500), st.booleans()),
            min_size=1,
            max_size=12,
        )
    )
    networks = []
    for id, (colours, value, size, fails) in enumerate(members, 1):
        one = network(id, colours, fitness=value, sizes=(size,) * len(colours), average=None)
        networks.append(replace(one, fitness=None, failed="it ran out of memory") if fails else one)
    return networks


def expected(values: list[float]) -> list[float]:
    if statistics.pstdev(values) <= 1e-9 * max(1, abs(statistics.fmean(values))):
        return [0.5] * len(values)
    return [float(expit(z)) for z in zscore(values)]


@given(st.lists(fitness, min_size=1, max_size=20))
def test_the_published_codes_deviation_is_too_large_but_right_for_two(values: list[float]) -> None:
    """Recomputed from its definition with exact means: every step adds its part of the squares, over n."""
    own = 0.0
    for n in range(2, len(values) + 1):
        before, now = statistics.fmean(values[: n - 1]), statistics.fmean(values[:n])
        own += (values[n - 1] - before) * (values[n - 1] - now) / n
    assert running_variance(values) == pytest.approx(own, abs=1e-12)
    assert running_variance(values) >= statistics.pvariance(values) - 1e-12
    assert running_variance(values[:2]) == pytest.approx(statistics.pvariance(values[:2]), abs=1e-12)
    members = [network(id, fitness=value) for id, value in enumerate(values, 1)]
    after = calibrate(
        state(members), family=BeadFamily(), config=settings(**{"selection.deviation": "running"})
    ).networks
    mean, deviation = statistics.fmean(values), math.sqrt(own)
    for one, value in zip(after, values, strict=True):
        z = (value - mean) / deviation if deviation > 1e-9 else 0.0
        assert one.relative_fitness == pytest.approx(float(expit(z)), abs=1e-6)


@given(ecosystems(), st.booleans(), st.sampled_from(["falls", "rises"]))
def test_figures_equal_an_independent_recomputation(
    networks: list[Individual], speciation: bool, complexity: str
) -> None:
    before = state(networks, speciation=speciation)
    rules = settings(speciation=speciation, complexity=complexity)

    after = {one.id: one for one in calibrate(before, family=BeadFamily(), config=rules).networks}

    fit = [one for one in before.networks if one.failed is None]
    for one in fit:
        peers = [peer for peer in fit if peer.species == one.species]
        f_r = dict(zip([p.id for p in peers], expected([p.fitness or 0.0 for p in peers]), strict=True))
        sizes = expected([float(sum(p.phenotype.sizes)) for p in fit])
        rising = dict(zip([p.id for p in fit], sizes, strict=True))[one.id]
        assert after[one.id].relative_fitness == pytest.approx(f_r[one.id], abs=1e-9)
        assert after[one.id].relative_complexity == pytest.approx(
            rising if complexity == "rises" else 1 - rising, abs=1e-9
        )
    for one in before.networks:
        if one.failed is not None:
            assert after[one.id] is one


def test_of_two_equally_fit_networks_the_smaller_is_worth_more() -> None:
    before = state([network(1, sizes=(1,)), network(2, sizes=(9,))])
    small, large = calibrate(before, family=BeadFamily(), config=settings()).networks
    assert small.relative_complexity == pytest.approx(float(expit(1)))
    assert large.relative_complexity == pytest.approx(float(expit(-1)))
    small, large = calibrate(before, family=BeadFamily(), config=settings(complexity="rises")).networks
    assert small.relative_complexity == pytest.approx(float(expit(-1)))
    assert large.relative_complexity == pytest.approx(float(expit(1)))


def test_complexity_is_relative_to_the_ecosystem_and_fitness_to_the_species() -> None:
    networks = [network(1, "o", fitness=0.9, sizes=(1,)), network(2, "oa", fitness=0.1, sizes=(5, 5))]
    one, two = calibrate(state(networks), family=BeadFamily(), config=settings()).networks
    assert (one.relative_fitness, two.relative_fitness) == (0.5, 0.5)
    assert one.relative_complexity == pytest.approx(float(expit(1)))
    assert two.relative_complexity == pytest.approx(float(expit(-1)))


def test_the_deviation_is_that_of_the_whole_population_not_of_a_sample() -> None:
    assert relative([0.0, 2.0]) == pytest.approx([float(expit(-1)), float(expit(1))])


@pytest.mark.parametrize("centre", [0.5, 1e6, -1e6])
def test_deviations_that_are_rounding_count_as_none(centre: float) -> None:
    scale = max(1.0, abs(centre))
    assert relative([centre, centre + 1e-10 * scale]) == [0.5, 0.5]
    assert relative([centre, centre + 1e-8 * scale]) != [0.5, 0.5]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_relative_values_lie_strictly_between_0_and_1_and_keep_the_order(values: list[float]) -> None:
    scaled = relative(values)
    assert all(0 < value < 1 for value in scaled)
    pairs = sorted(zip(values, scaled, strict=True))
    assert [value for _, value in pairs] == sorted(scaled)


@given(st.floats(-1e6, 1e6))
def test_the_logistic_function_never_overflows(x: float) -> None:
    assert logistic(x) == pytest.approx(float(expit(x)), rel=1e-12, abs=1e-300)


def test_averages_follow_the_fitness_of_networks_and_the_mean_of_species() -> None:
    networks = [
        network(1, "o", fitness=0.4, average=None),
        network(2, "o", fitness=0.8, average=MovingAverage(0.6, 0.0)),
        network(3, "oa", fitness=None, average=MovingAverage(0.3, 0.2), failed="too long"),
    ]
    before = state(networks, average=MovingAverage(0.5, 0.0))
    after = calibrate(before, family=BeadFamily(), config=settings(average_rate=0.25))

    first, second, failed = after.networks
    assert first.average == MovingAverage(0.4, 0.0)
    assert second.average is not None
    assert second.average.mean == pytest.approx(0.65)
    assert second.average.variance == pytest.approx(0.75 * 0.25 * 0.04)
    assert failed.average == MovingAverage(0.3, 0.2)
    assert after.species[0].average is not None
    assert after.species[0].average.mean == pytest.approx(0.525)
    assert after.species[1].average == MovingAverage(0.5, 0.0), "a species that failed whole has no mean"
    assert after.average is None


def test_without_speciation_the_ecosystem_keeps_the_average_of_the_mean() -> None:
    networks = [network(1, "o", fitness=0.4), network(2, "oa", fitness=0.8)]
    before = state(networks, speciation=False, average=MovingAverage(0.5))
    after = calibrate(before, family=BeadFamily(), config=settings(speciation=False))
    assert after.average is not None
    assert after.average.mean == pytest.approx(0.55)
    assert math.isclose(after.average.variance, 0.0025)
