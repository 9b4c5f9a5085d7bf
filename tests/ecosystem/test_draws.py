"""Draws by weight have the probabilities they claim, and taking ids out leaves the rest as they were."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from epicortex.ecosystem.draws import Urn, order


def test_orders_come_with_the_probability_of_draws_without_replacement() -> None:
    weights = [0.1, 0.5, 0.3, 0.8]
    expected = {}
    for way in permutations(range(4)):
        probability, left = 1.0, sum(weights)
        for place in way:
            probability *= weights[place] / left
            left -= weights[place]
        expected[way] = probability
    rng = np.random.default_rng(1)

    seen = Counter(tuple(order(weights, rng)) for _ in range(20_000))

    observed = [seen[way] for way in expected]
    assert chisquare(observed, [20_000 * p for p in expected.values()]).pvalue > 1e-3


@given(st.lists(st.floats(0, 1e300), max_size=30), st.integers(0, 1000))
def test_an_order_holds_every_place_once_whatever_the_weights(weights: list[float], seed: int) -> None:
    assert sorted(order(weights, np.random.default_rng(seed))) == list(range(len(weights)))


@pytest.mark.parametrize("gone", [[], [3], [3, 0], [1, 2, 3]])
def test_an_urn_draws_the_ids_that_are_left_by_their_weights(gone: list[int]) -> None:
    weights = {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.8}
    urn = Urn(weights)
    for id in gone:
        urn.remove(id)
    rng = np.random.default_rng(2)

    seen = Counter(urn.draw(rng) for _ in range(20_000))

    left = {id: weight for id, weight in weights.items() if id not in gone}
    assert set(seen) == set(left)
    if len(left) > 1:
        expected = [20_000 * weight / sum(left.values()) for weight in left.values()]
        assert chisquare([seen[id] for id in left], expected).pvalue > 1e-3


def test_an_urn_stays_quick_when_all_but_the_least_likely_are_gone() -> None:
    urn = Urn(dict.fromkeys(range(1000), 0.9) | {1000: 1e-250})
    for id in range(1000):
        urn.remove(id)
    assert urn.draw(np.random.default_rng(3)) == 1000


def test_an_empty_urn_says_so() -> None:
    urn = Urn({1: 0.5})
    urn.remove(1)
    with pytest.raises(ValueError, match="empty"):
        urn.draw(np.random.default_rng(1))
