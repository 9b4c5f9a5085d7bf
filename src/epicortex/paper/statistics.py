"""What can be said of two small sets of figures: rank test, effect size, interval, and what cannot be said.

The rank test is exact wherever that can be computed; all randomness comes from one seeded generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from epicortex.randomness import generator

SIGNIFICANT: Final = 0.05
CONFIDENCE: Final = 0.95
RESAMPLES: Final = 10_000
#: Up to so many ways to share out the figures, ties are dealt with by trying them all.
_MOST_WAYS: Final = 200_000
#: What Vargha and Delaney call small, medium and large; below the first is negligible.
_EFFECTS: Final = ((0.71, "large"), (0.64, "medium"), (0.56, "small"))


@dataclass(frozen=True, slots=True)
class Summary:
    """Some figures in short."""

    count: int
    best: float
    """The highest."""
    mean: float
    deviation: float | None
    """The standard deviation with n − 1; None of a single figure."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How two sets of figures differ: the first less the second."""

    first: Summary
    second: Summary
    difference: float
    """Of the means."""
    low: float | None
    """The lower end of the bootstrap interval; None where a set has a single figure."""
    high: float | None
    u: float
    p: float
    method: str
    """How p was found: exact, or by the normal approximation."""
    a: float
    """Vargha and Delaney's A: the chance that a figure of the first set is higher."""

    @property
    def effect(self) -> str:
        """How large the effect is, in their words."""
        return next((word for least, word in _EFFECTS if max(self.a, 1 - self.a) >= least), "negligible")


def summary(values: Sequence[float]) -> Summary | None:
    """Some figures in short; None where there are none.

    >>> summary([0.5, 0.7])
    Summary(count=2, best=0.7, mean=0.6, deviation=0.14142135623730948)
    """
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    deviation = None
    if len(values) > 1:
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return Summary(len(values), max(values), mean, deviation)


def difference(first: Sequence[float], second: Sequence[float]) -> Difference | None:
    """How two sets differ; None where one of them is empty."""
    one, other = summary(first), summary(second)
    if one is None or other is None:
        return None
    low, high = bootstrap(first, second) or (None, None)
    u, p, method = mann_whitney(first, second)
    a = vargha_delaney(first, second)
    return Difference(one, other, one.mean - other.mean, low, high, u, p, method, a)


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, str]:
    """U of the first set, the two-sided p, and how that was found.

    >>> mann_whitney([3.0, 4.0], [1.0, 2.0])
    (4.0, 0.3333333333333333, 'exact')
    """
    from scipy import stats

    n, m = len(first), len(second)
    u = vargha_delaney(first, second) * n * m
    if len({*first, *second}) == n + m:
        p = stats.mannwhitneyu(first, second, alternative="two-sided", method="exact").pvalue
        return u, float(p), "exact"
    if math.comb(n + m, n) > _MOST_WAYS:
        p = stats.mannwhitneyu(first, second, alternative="two-sided", method="asymptotic").pvalue
        return u, 1.0 if math.isnan(p) else float(p), "normal approximation"
    return u, _with_ties(first, second), "exact"


def _with_ties(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p over all ways to share out the figures, tied ones with their mean rank."""
    from itertools import combinations

    from scipy import stats

    n, m = len(first), len(second)
    # Twice the ranks are whole numbers, so that sums are compared exactly.
    ranks = np.rint(2 * stats.rankdata([*first, *second])).astype(np.int64)
    ways = np.fromiter(combinations(range(n + m), n), dtype=np.dtype((np.int64, n)))
    sums, own = ranks[ways].sum(axis=1), ranks[:n].sum()
    tail = min(np.count_nonzero(sums <= own), np.count_nonzero(sums >= own)) / len(sums)
    return min(1.0, 2 * float(tail))


def vargha_delaney(first: Sequence[float], second: Sequence[float]) -> float:
    """The chance that a figure of the first set is higher than one of the second; ties count half.

    >>> vargha_delaney([1.0, 2.0, 3.0], [2.0])
    0.5
    """
    one, other = np.asarray(first)[:, None], np.asarray(second)[None, :]
    wins = np.count_nonzero(one > other) + 0.5 * np.count_nonzero(one == other)
    return float(wins / (len(first) * len(second)))


def bootstrap(first: Sequence[float], second: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """The interval that holds 95 % of the differences of means of sets drawn anew from these figures.

    None where a set has a single figure: drawing it anew tells nothing.

    >>> bootstrap([2.0, 2.0], [1.0, 1.0])
    (1.0, 1.0)
    """
    if min(len(first), len(second)) < 2:
        return None
    rng = generator(seed, "bootstrap")
    one, other = (
        np.asarray(values)[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
        for values in (first, second)
    )
    low, high = np.quantile(one - other, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def least_p(n: int, m: int) -> float:
    """The smallest two-sided p of the rank test: when all figures of one set are above the other's.

    >>> least_p(3, 3), least_p(1, 1)
    (0.1, 1.0)
    """
    return min(1.0, 2 / math.comb(n + m, n))


def holm(values: Sequence[float]) -> list[float]:
    """The p of several tests, raised so that together they err no more often than one would (Holm).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted


def trend(values: Sequence[float | None]) -> float | None:
    """Spearman's ρ of figures with their places: 1 where they only rise; None of fewer than three.

    >>> trend([0.1, None, 0.2, 0.3]), trend([0.3, 0.2, 0.1]), trend([0.5, 0.5, 0.5])
    (1.0, -1.0, 0.0)
    """
    from scipy import stats

    known = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(known) < 3:
        return None
    places, figures = zip(*known, strict=True)
    if len(set(figures)) == 1:
        return 0.0
    return round(float(stats.spearmanr(places, figures).statistic), 12)


def cannot_tell(n: int, m: int) -> str | None:
    """What sets of this size can never show, in a sentence; None where they can show a difference.

    >>> cannot_tell(4, 4) is None
    True
    >>> print(cannot_tell(3, 2))
    With 3 and 2 runs no p below 0.2 can be reached: no difference, however large, can be significant at 0.05.
    """
    least = least_p(n, m)
    if least < SIGNIFICANT:
        return None
    runs = "run" if n == m == 1 else "runs"
    return (
        f"With {n} and {m} {runs} no p below {least:.2g} can be reached: no difference, however large, can "
        f"be significant at {SIGNIFICANT:g}."
    )


def cannot_tell_together(tests: int, least: float) -> str | None:
    """What so many tests, each with `least` for its smallest p, can never show together; None if they can.

    >>> cannot_tell_together(5, least_p(5, 5)) is None
    True
    >>> print(cannot_tell_together(10, least_p(5, 5)))
    Of 10 tests the clearest can have a p (Holm) of 0.079 at best.
    """
    best = min(1.0, tests * least)
    if best < SIGNIFICANT:
        return None
    return f"Of {tests} tests the clearest can have a p (Holm) of {best:.2g} at best."
