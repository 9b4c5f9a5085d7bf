"""The statistics against values worked out by other means: by hand, and by trying everything."""

from __future__ import annotations

import math
from itertools import combinations, product
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from epicortex.paper.statistics import (
    bootstrap,
    cannot_tell,
    cannot_tell_together,
    difference,
    holm,
    least_p,
    mann_whitney,
    summary,
    trend,
    vargha_delaney,
)

#: Whole numbers, so that there are ties and no rounding.
FIGURES = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=4)
DIFFERENT = st.lists(st.integers(0, 1000), min_size=2, max_size=9, unique=True)


def wins(first: list[float], second: list[float]) -> float:
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(first, second))


def brute_force(first: list[float], second: list[float]) -> float:
    """The two-sided p: over all ways to share out the figures, how many are as extreme on the nearer side."""
    everything = first + second
    own = wins(first, second)
    lower = higher = ways = 0
    for chosen in combinations(range(len(everything)), len(first)):
        one = [everything[place] for place in chosen]
        other = [value for place, value in enumerate(everything) if place not in chosen]
        u = wins(one, other)
        lower, higher, ways = lower + (u <= own), higher + (u >= own), ways + 1
    return min(1.0, 2 * min(lower, higher) / ways)


@given(FIGURES, FIGURES)
def test_mann_whitney_is_what_trying_all_ways_gives_ties_or_not(
    first: list[float], second: list[float]
) -> None:
    u, p, method = mann_whitney(first, second)
    assert u == pytest.approx(wins(first, second))
    assert p == pytest.approx(brute_force(first, second))
    assert method == "exact"


@given(DIFFERENT, st.data())
def test_without_ties_too(figures: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(figures) - 1))
    first, second = ([float(value) for value in part] for part in (figures[:cut], figures[cut:]))
    assert mann_whitney(first, second)[1] == pytest.approx(brute_force(first, second))


def test_mann_whitney_by_hand() -> None:
    # 5 and 5 figures that do not overlap: one way of 252 on either side.
    u, p, _ = mann_whitney([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert u == 25
    assert p == pytest.approx(2 / 252)
    # The table of Mann and Whitney: for 4 and 4, U ≤ 1 has a probability of .029 on one side.
    assert mann_whitney([1, 2, 3, 5], [4, 6, 7, 8])[1] == pytest.approx(2 * 2 / 70)
    assert mann_whitney([1.0], [1.0])[:2] == (0.5, 1.0)


def test_many_figures_with_ties_are_tested_by_approximation_and_that_is_said() -> None:
    first, second = [float(i % 7) for i in range(30)], [float(i % 5) for i in range(30)]
    u, p, method = mann_whitney(first, second)
    # The normal approximation with the correction for ties and for continuity, worked out here.
    together = first + second
    ties = sum(count**3 - count for count in (together.count(value) for value in set(together)))
    n = m = 30
    deviation = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    z = (abs(u - n * m / 2) - 0.5) / deviation
    assert method == "normal approximation"
    assert p == pytest.approx(2 * stats.norm.sf(z))
    same = mann_whitney([1.0] * 30, [1.0] * 30)
    assert same[:2] == (450, 1.0)


@given(FIGURES, FIGURES)
def test_effect_size_is_the_chance_to_be_higher_and_turns_round_with_the_sets(
    first: list[float], second: list[float]
) -> None:
    a = vargha_delaney(first, second)
    assert a == pytest.approx(wins(first, second) / (len(first) * len(second)))
    assert vargha_delaney(second, first) == pytest.approx(1 - a)
    assert mann_whitney(first, second)[1] == pytest.approx(mann_whitney(second, first)[1])


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], "negligible"),
        ([2.5, 3.5, 1.5, 4.5], [1, 2, 3, 4], "small"),
        ([9, 9], [1, 1], "large"),
        ([1, 1], [9, 9], "large"),
    ],
)
def test_effects_have_the_words_of_vargha_and_delaney(
    first: list[float], second: list[float], word: str
) -> None:
    found = difference(first, second)
    assert found is not None
    assert found.effect == word


def test_the_bootstrap_interval_is_that_of_all_ways_to_draw_anew() -> None:
    first, second = [0.91, 0.95, 0.97], [0.80, 0.90]
    every = [
        fmean(one) - fmean(other)
        for one in product(first, repeat=len(first))
        for other in product(second, repeat=len(second))
    ]
    found = bootstrap(first, second)
    assert found is not None
    # Among 108 equally likely ways the quantiles fall on steps, which 10,000 draws hit.
    assert found[0] == pytest.approx(np.quantile(every, 0.025), abs=0.012)
    assert found[1] == pytest.approx(np.quantile(every, 0.975), abs=0.012)
    assert bootstrap(first, second) == found
    assert bootstrap([0.5], [0.4, 0.3]) is None


@given(FIGURES, FIGURES)
def test_an_interval_turns_round_with_the_sets_within_their_range(
    first: list[float], second: list[float]
) -> None:
    found = bootstrap(first, second)
    if min(len(first), len(second)) < 2:
        assert found is None
    else:
        assert found is not None
        assert min(first) - max(second) <= found[0] <= found[1] <= max(first) - min(second)


def test_a_shift_moves_difference_and_interval_with_it() -> None:
    first, second = [0.1, 0.4, 0.2], [0.3, 0.6, 0.5]
    plain, moved = difference(first, second), difference([value + 1 for value in first], second)
    assert plain is not None
    assert moved is not None
    assert moved.difference == pytest.approx(plain.difference + 1)
    assert plain.low is not None
    assert moved.low == pytest.approx(plain.low + 1)


@pytest.mark.parametrize("n", range(1, 6))
@pytest.mark.parametrize("m", range(1, 6))
def test_the_least_p_is_what_sets_apart_give(n: int, m: int) -> None:
    apart = mann_whitney([float(i) for i in range(n)], [float(100 + i) for i in range(m)])[1]
    assert least_p(n, m) == pytest.approx(apart)
    assert (cannot_tell(n, m) is None) == (apart < 0.05)


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
def test_tests_together_can_tell_where_holm_lets_the_clearest_pass(tests: int, n: int, m: int) -> None:
    clearest = min(holm([least_p(n, m)] * tests))
    sentence = cannot_tell_together(tests, least_p(n, m))
    assert (sentence is None) == (clearest < 0.05)
    assert sentence is None or f"{clearest:.2g} at best" in sentence


def test_holm_by_hand_and_in_any_order() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(1, 100))
def test_holm_rejects_what_his_procedure_rejects_step_by_step(parts: list[int], limit: int) -> None:
    # In parts of a power of two nothing is rounded.
    rejected = 0
    for rank, value in enumerate(sorted(parts)):
        if (len(parts) - rank) * value > limit:
            break
        rejected += 1
    adjusted = holm([value / 128 for value in parts])
    assert sum(value <= limit / 128 for value in adjusted) == rejected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_summary_is_what_the_standard_library_says(values: list[float]) -> None:
    found = summary(values)
    assert found is not None
    assert (found.count, found.best) == (len(values), max(values))
    assert found.mean == pytest.approx(fmean(values))
    if len(values) == 1:
        assert found.deviation is None
    else:
        assert found.deviation == pytest.approx(stdev(values), abs=1e-12)
    assert summary([]) is None
    assert difference([], values) is None


def test_a_trend_by_hand() -> None:
    # Ranks 1 2 3 4 against 1 3 2 4: 1 − 6·2/(4·15).
    assert trend([0.1, 0.3, 0.2, 0.4]) == pytest.approx(0.8)
    assert trend([0.1, None, 0.3, 0.2, 0.4]) == pytest.approx(0.8)
    assert trend([0.1, 0.2]) is None
