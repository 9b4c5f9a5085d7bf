"""Whether counts of draws agree with the odds they should follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from scipy.stats import chisquare

_Key = TypeVar("_Key", bound=Hashable)


def follows(counts: Counter[_Key], odds: Mapping[_Key, float]) -> bool:
    """Whether a chi-square test finds nothing against the odds; draws are seeded, so the answer is fixed.

    What should come up less than ten times is looked at together.
    """
    surplus = set(counts) - {key for key, weight in odds.items() if weight > 0}
    assert not surplus, f"drawn, but impossible: {surplus}"
    total, scale = sum(counts.values()), sum(odds.values())
    expected = {key: total * weight / scale for key, weight in odds.items() if weight > 0}
    seen = [(counts[key], value) for key, value in expected.items() if value >= 10]
    rare = [(counts[key], value) for key, value in expected.items() if value < 10]
    if rare:
        seen.append((sum(count for count, _ in rare), sum(value for _, value in rare)))
    if len(seen) > 1 and seen[-1][1] < 5:  # too few to say anything on their own
        last = seen.pop()
        seen[-1] = (seen[-1][0] + last[0], seen[-1][1] + last[1])
    if len(seen) < 2:
        return True
    p = chisquare([count for count, _ in seen], [value for _, value in seen]).pvalue
    return bool(p > 1e-5)
