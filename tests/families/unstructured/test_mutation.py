"""Mutations of unstructured networks, type by type."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.families.family import Problem
from epicortex.families.unstructured import Phenotype, UnstructuredFamily, UnstructuredOptions
from epicortex.families.unstructured import mutation as m
from tests.families.unstructured.world import FIRST, parent
from tests.strategies import seeds

OPTIONS = UnstructuredOptions()


def test_a_removed_node_takes_its_connections_along_and_the_others_close_up() -> None:
    before = parent(FIRST, 1)
    found = set()
    for seed in range(20):
        after = m.remove_node(before, OPTIONS, np.random.default_rng(seed))
        assert after is not None
        assert after.genome.nodes == 8
        found.add(tuple(after.genome.inward.items()))
    # whichever of 7, 8 and 9 goes, the connections among all others stay as they were
    assert found == {
        ((5, (7,)), (6, (1, 3, 7, 8)), (7, (1,)), (8, (2, 4))),
        ((5, (7,)), (6, (1, 3, 8)), (7, (1, 2, 3, 4)), (8, (2, 4))),
        ((5, (7, 8)), (6, (1, 3, 8)), (7, (1, 2, 3, 4)), (8, (1,))),
    }


@given(seeds, st.booleans())
@settings(max_examples=30)
def test_a_new_node_is_the_last_and_leaves_all_others_as_they_were(seed: int, split: bool) -> None:
    before, options = parent(FIRST, 1), UnstructuredOptions(node_start="split" if split else "full")
    after = m.add_node(before, options, np.random.default_rng(seed))
    assert after is not None
    assert after.genome.nodes == 10
    new = {pair for pair in after.genes if 10 in pair}
    gone = set(before.genes) - set(after.genes)
    kept = {pair: weight for pair, weight in after.genes.items() if pair not in new}
    assert kept == {pair: weight for pair, weight in before.genes.items() if pair not in gone}
    if split:
        ((target, source),) = gone
        assert target in (5, 6)
        assert new == {(10, source), (target, 10)}
        assert after.genes[target, 10] == before.genes[target, source]
    else:
        assert not gone
        assert new == {(10, 0), (10, 1), (10, 2), (10, 3), (10, 4), (5, 10), (6, 10)}


def test_connections_are_added_until_there_are_all_and_removed_until_there_is_one() -> None:
    rng, phenotype = np.random.default_rng(1), parent(FIRST, 1)
    # to each output the bias, four inputs and three hidden nodes; to 7, 8 and 9 five, six and seven
    while (more := m.add_connection(phenotype, OPTIONS, rng)) is not None:
        assert len(more.genes) == len(phenotype.genes) + 1
        phenotype = more
    assert len(phenotype.genes) == 2 * 8 + 5 + 6 + 7
    while (fewer := m.remove_connection(phenotype, OPTIONS, rng)) is not None:
        assert set(fewer.genes) < set(phenotype.genes)
        phenotype = fewer
    assert len(phenotype.genes) == 1


def test_perturbing_moves_weights_and_nothing_else() -> None:
    before, rng = parent(FIRST, 1), np.random.default_rng(2)
    some = UnstructuredOptions(perturb_share=0.0)
    after = m.perturb(before, some, rng)
    assert (after.weights != before.weights).sum() == 1
    assert after.genome is before.genome
    moved = [m.perturb(before, UnstructuredOptions(perturb_share=1.0), rng).weights for _ in range(500)]
    assert np.std(np.array(moved) - before.weights) == pytest.approx(0.5, rel=0.05)
    wild = UnstructuredOptions(perturb_tail="cauchy", weight_limit=2.0)
    assert max(np.abs(m.perturb(before, wild, rng).weights).max() for _ in range(200)) == 2.0


def test_types_are_drawn_by_their_rates_and_most_move_weights() -> None:
    family, rng = UnstructuredFamily(Problem((4,), 2)), np.random.default_rng(5)
    before = parent(FIRST, 1)
    kinds = Counter(family.mutate(before, grow=0.5, relative_fitness=0.5, rng=rng).type for _ in range(4000))
    rates = {"node": 0.03, "connection": 0.05, "redraw": 0.05}
    for kind, rate in rates.items():
        assert kinds[kind] / 4000 == pytest.approx(rate, abs=0.015)
    assert kinds["weights"] / 4000 > 0.8
    assert kinds["activation"] == 0


def test_activations_change_where_there_is_a_choice() -> None:
    options = UnstructuredOptions(activations=("tanh", "sine"))
    seen: Counter[tuple[str, ...]] = Counter()
    for seed in range(40):
        after = m.change_activation(parent(FIRST, 1), options, np.random.default_rng(seed))
        assert isinstance(after, Phenotype)
        seen[after.genome.activations[2:]] += 1
        assert after.genome.activations[:2] == ("tanh", "tanh")
    assert set(seen) == {("sine", "tanh", "tanh"), ("tanh", "sine", "tanh"), ("tanh", "tanh", "sine")}
