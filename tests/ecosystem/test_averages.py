"""Moving averages, against exact rational arithmetic and hand-computed values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.ecosystem.averages import follow, standing
from epicortex.ecosystem.state import MovingAverage

fitness = st.floats(0, 1)


def run(values: list[float], rate: float = 0.5) -> MovingAverage:
    average = None
    for value in values:
        average = follow(average, value, rate=rate)
    assert average is not None
    return average


@given(st.floats(0.01, 1))
def test_one_that_starts_at_zero_stands_one_deviation_below_its_first_value(value: float) -> None:
    average = follow(None, value, rate=0.5, start=0.0)
    assert average.mean == value / 2
    assert standing(average, value) == pytest.approx(1)
    assert standing(follow(None, 0.0, rate=0.5, start=0.0), 0.0) == 0


@given(st.lists(fitness, min_size=1, max_size=12), st.sampled_from([0.25, 0.5, 0.9]))
def test_it_is_the_exponentially_weighted_mean_and_variance_of_all_values(
    values: list[float], rate: float
) -> None:
    """Every value has its weight in closed form; mean and variance follow from those weights, exactly."""
    a = Fraction(rate)
    weights = [(1 - a) ** (len(values) - 1)]
    weights += [a * (1 - a) ** (len(values) - 1 - place) for place in range(1, len(values))]
    assert sum(weights) == 1
    mean = sum(w * Fraction(x) for w, x in zip(weights, values, strict=True))
    variance = sum(w * (Fraction(x) - mean) ** 2 for w, x in zip(weights, values, strict=True))

    average = run(values, rate)

    assert average.mean == pytest.approx(float(mean), abs=1e-12)
    assert average.variance == pytest.approx(float(variance), abs=1e-12)


def test_it_starts_at_the_first_value_without_variance() -> None:
    assert run([0.7]) == MovingAverage(0.7, 0.0)


def test_two_steps_by_hand() -> None:
    average = run([0.5, 0.7, 0.4])
    assert average.mean == pytest.approx(0.5)
    assert average.variance == pytest.approx(0.5 * (0.01 + 0.5 * 0.04))
    assert standing(average, 0.4) == pytest.approx(-0.1 / math.sqrt(0.015))


@given(fitness, fitness)
def test_after_the_second_value_it_stands_exactly_one_deviation_away(first: float, second: float) -> None:
    z = standing(run([first, second]), second)
    if (second - first) ** 2 > 1e-200:
        assert z == pytest.approx(math.copysign(1, second - first))


@given(fitness, st.integers(1, 10))
def test_without_variance_it_stands_at_zero(value: float, times: int) -> None:
    assert standing(run([value] * times), value) == 0.0


def test_before_the_first_value_it_stands_at_zero() -> None:
    assert standing(None, 0.3) == 0.0
