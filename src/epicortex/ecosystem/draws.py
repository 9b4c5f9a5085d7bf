"""Draws by weight that stay cheap in large ecosystems: orders, and partners with replacement.

What the weights mean is left to the rules that draw.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

#: Stands in for a weight too small for floating point, so that every network can be drawn.
SMALLEST_WEIGHT = 1e-300


def order(weights: Sequence[float], rng: np.random.Generator) -> list[int]:
    """The places of the weights in the order in which draws without replacement would take them.

    An exponential variable divided by a weight is the smallest of all with a probability proportional to that
    weight, and again among the rest; so one sort stands for all the draws.

    >>> order([1e-12, 1.0, 1e-24], np.random.default_rng(1))
    [1, 0, 2]
    """
    safe = np.maximum(np.asarray(weights, dtype=np.float64), SMALLEST_WEIGHT)
    keys = rng.standard_exponential(len(safe)) / safe
    return [int(place) for place in np.argsort(keys, kind="stable")]


class Urn:
    """Draws ids by weight, with replacement, from a cumulative table; ids can be taken out for good.

    An id taken out is skipped when drawn, and the table is built anew once they hold half of its weight; so a
    draw takes two attempts on average at most.

    >>> urn = Urn({7: 0.5, 9: 0.25})
    >>> urn.remove(7)
    >>> urn.draw(np.random.default_rng(1))
    9
    """

    def __init__(self, weights: Mapping[int, float]) -> None:
        self._weights = {id: max(weight, SMALLEST_WEIGHT) for id, weight in weights.items()}
        self._build()

    def _build(self) -> None:
        self._ids = list(self._weights)
        self._table = list(accumulate(self._weights.values()))
        self._gone = 0.0

    def remove(self, id: int) -> None:
        """Take an id out: it is never drawn again."""
        self._gone += self._weights.pop(id)
        if self._weights and self._gone > self._table[-1] / 2:
            self._build()

    def draw(self, rng: np.random.Generator) -> int:
        """One id, with a probability proportional to its weight."""
        if not self._weights:
            raise ValueError("an empty urn has nothing to draw")
        while True:
            place = bisect_right(self._table, rng.random() * self._table[-1])
            id = self._ids[min(place, len(self._ids) - 1)]
            if id in self._weights:
                return id
