"""Crossover of unstructured networks: figure 3 of the paper, and the rule behind it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.families.family import Problem
from epicortex.families.unstructured import Phenotype, UnstructuredFamily, UnstructuredOptions
from epicortex.families.unstructured.crossover import cross
from tests.families.unstructured.world import BLACK, FIRST, RED, SECOND, parent
from tests.strategies import seeds


class Drawn:
    """A generator that draws what it is told to."""

    def __init__(self, first: list[bool]) -> None:
        self._first = first

    def random(self, count: int) -> Any:
        assert count == len(self._first)
        return np.where(self._first, 0.0, 1.0)


def test_the_offspring_of_figure_3_is_what_these_draws_give() -> None:
    one, other = parent(FIRST, 1), parent(SECOND, -9)
    union = sorted({*one.genes, *other.genes})
    # A gene that the child has is drawn from the parent of its colour; one that it lacks from the other.
    first = [pair in BLACK or (pair not in RED and pair in other.genes) for pair in union]
    child = cross(one, other, share=0.5, rng=cast(Any, Drawn(first)))
    assert child.genome.inward == {5: (7, 8), 6: (1, 3, 8, 9), 7: (1, 3, 4), 8: (1, 2), 9: (2, 4)}
    assert {pair for pair, weight in child.genes.items() if weight > 0} == BLACK
    assert {pair for pair, weight in child.genes.items() if weight < 0} == RED


@given(seeds, st.floats(0.01, 0.99), st.booleans())
@settings(max_examples=50)
def test_a_child_has_only_genes_of_its_parents_and_keeps_what_both_have(
    seed: int, share: float, recurrent: bool
) -> None:
    options = UnstructuredOptions(recurrent=recurrent, node_rate=0.3, connection_rate=0.5)
    family, rng = UnstructuredFamily(Problem((3,), 2), options), np.random.default_rng(seed)
    one, other = (grown(family, rng) for _ in range(2))
    child = family.cross(one, other, share=share, rng=rng)
    for pair, weight in child.genes.items():
        assert weight in (one.genes.get(pair), other.genes.get(pair))
    nodes = child.genome.nodes
    assert nodes in (one.genome.nodes, other.genome.nodes)
    both = {pair for pair in {*one.genes} & {*other.genes} if max(pair) <= nodes}
    assert both <= set(child.genes)
    assert np.isfinite(family.build(child).act([0.5, -1.0, 2.0])).all()


def grown(family: UnstructuredFamily, rng: np.random.Generator) -> Phenotype:
    phenotype = family.minimal(rng)
    for _ in range(8):
        done = family.mutate(phenotype, grow=0.7, relative_fitness=0.5, rng=rng)
        phenotype = done.phenotype or phenotype
    return phenotype


def test_genes_come_by_the_parents_part_of_fitness() -> None:
    one, other, rng = parent(FIRST, 1), parent(SECOND, -9), np.random.default_rng(3)
    children = [cross(one, other, share=0.8, rng=rng) for _ in range(2000)]
    # both parents have 5 ← 7; only the first has 5 ← 8, and only the second 8 ← 2
    assert np.mean([child.genes[5, 7] > 0 for child in children]) == pytest.approx(0.8, abs=0.04)
    assert np.mean([(5, 8) in child.genes for child in children]) == pytest.approx(0.8, abs=0.04)
    assert np.mean([(8, 2) in child.genes for child in children]) == pytest.approx(0.2, abs=0.04)


def test_parents_that_share_nothing_still_have_a_child_that_computes() -> None:
    one, other = parent({5: (1,), 6: ()}, 1), parent({5: (), 6: (2,)}, -9)
    rng = np.random.default_rng(1)
    children = [cross(one, other, share=0.5, rng=rng) for _ in range(200)]
    assert {len(child.genes) for child in children} == {1, 2}
