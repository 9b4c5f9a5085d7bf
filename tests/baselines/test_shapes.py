"""The experiment on kernel shapes: equal depth, equal cost, other kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import arms, evolved, shapes

import epicortex
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily
from epicortex.families.residual.genome import Genome


@pytest.fixture(scope="module")
def founder() -> Genome:
    family = ResidualFamily(Problem((3, 32, 32), 10))
    return family.founder(np.random.default_rng(1), max_cost=6_000_000).genome


def _kernels(genome: Genome) -> Counter[tuple[int, ...]]:
    return Counter(kernel for layer in genome.layers[:-1] for kernel in layer.kernels)


@pytest.mark.parametrize("arm", shapes.KERNELS)
def test_arms_are_as_deep_and_as_dear_as_the_founder(founder: Genome, arm: str) -> None:
    made = shapes.structure(arm, founder, seed=1)
    assert [len(stage.blocks) for stage in made.stages] == [len(stage.blocks) for stage in founder.stages]
    most = founder.cost / shapes.LEFT if arm == "shape-shrunk" else founder.cost
    assert 0.93 * most < made.cost <= most
    assert shapes.structure(arm, founder, seed=1) == made
    counts = _kernels(made)
    assert set(counts) == set(shapes.KERNELS[arm])
    assert min(counts.values()) > 0.7 * counts.total() / len(counts)


def test_every_arm_on_shapes_is_known() -> None:
    assert set(arms.SHAPES) == set(shapes.KERNELS)


def test_kernels_shrink_where_they_lose_least(founder: Genome) -> None:
    made = shapes.structure("shape-shrunk", founder, seed=1)
    before = evolved.drawn(made.to_dict(), 1)
    genes = list(before.genes)
    weight = genes[0].weight.copy()
    weight[:, :, 0] = weight[:, :, 2] = 0  # the first layer loses nothing with its upper and lower rows
    genes[0] = genes[0].replace(weight=weight)
    after = shapes.shrunk(
        replace(before, genes=tuple(genes)), round(shapes.LEFT * made.cost), np.random.default_rng(1)
    )
    assert 0.9 * shapes.LEFT * made.cost < after.genome.cost <= shapes.LEFT * made.cost
    assert set(after.genome.layers[0].kernels) == {(1, 3)}
    assert len(_kernels(after.genome)) == 3
    assert [stage.ids for stage in after.genome.stages] == [stage.ids for stage in before.genome.stages]


def test_siblings_shrink_once_on_their_way(founder: Genome) -> None:
    like = ResidualFamily(Problem((1, 8, 8), 10)).founder(np.random.default_rng(1), max_parameters=1500)
    made = shapes.structure("shape-shrunk", like.genome, seed=1)
    config = epicortex.configure(
        changes={
            "evolution.generations": 8,
            "evolution.minutes": None,
            "training.engine": "serial",
            "budget.steps": 3,
            "budget.search": 0.0,
            "residual.start_cost": made.cost,
            "residual.start_parameters": made.parameters,
        }
    )
    result = epicortex.evolve("digits", config, ancestor=evolved.drawn(made.to_dict(), 1), parts=shapes.PARTS)
    assert result.champion is not None
    genome = result.champion.phenotype.genome
    assert genome.cost <= shapes.LEFT * made.cost
    assert len(_kernels(genome)) > 1
    assert len({network.phenotype.genome for network in result.state.networks}) == 1
