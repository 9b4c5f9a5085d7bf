"""Founders keep to their limits, nearly fill them, and differ."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.errors import ConfigError
from epicortex.families.family import Problem, Shape
from epicortex.families.residual import ResidualFamily, ResidualOptions, sized_founder
from epicortex.families.residual.network import Network
from tests.strategies import seeds

SHAPES: list[Shape] = [
    (1, 8, 8),
    (1, 28, 28),
    (3, 32, 32),
    (3, 64, 64),
    (3, 224, 224),
    (1, 128),
    (2, 5000),
    (30,),
]


@given(seeds, st.sampled_from(SHAPES), st.integers(300, 200_000), st.floats(0, 1))
def test_founders_keep_to_a_limit_of_parameters(seed: int, shape: Shape, limit: int, mix: float) -> None:
    rng = np.random.default_rng(seed)
    founder = sized_founder(Problem(shape, 5), rng, max_parameters=limit, kernel_mix=mix)
    assert founder.genome.parameters <= limit
    if not mix and len(shape) > 1 and limit >= 1_000:
        assert founder.genome.parameters >= limit / 3


@given(seeds, st.sampled_from(SHAPES[:5]), st.integers(18, 28))
def test_founders_keep_to_a_limit_of_cost(seed: int, shape: Shape, power: int) -> None:
    founder = sized_founder(Problem(shape, 5), np.random.default_rng(seed), max_cost=2**power)
    assert founder.genome.cost <= 2**power


def test_where_nothing_fits_the_smallest_network_is_given() -> None:
    founder = sized_founder(Problem((3, 32, 32), 10), np.random.default_rng(1), max_parameters=1)
    assert {stage.width for stage in founder.genome.stages} == {1}


def test_founders_within_the_same_limits_differ_in_kernels_only() -> None:
    kin = ResidualFamily(Problem((3, 32, 32), 10), ResidualOptions(kernel_mix=0.2))
    rng = np.random.default_rng(1)
    founders = [kin.founder(rng, max_cost=8_000_000) for _ in range(12)]
    depths = {tuple(len(stage.blocks) for stage in founder.genome.stages) for founder in founders}
    assert depths == {(0, 1, 1)}
    assert len({founder.genome.stages[0].kernels for founder in founders}) > 6
    shapes = [
        kernel for founder in founders for layer in founder.genome.layers[:-1] for kernel in layer.kernels
    ]
    assert 0.75 < shapes.count((3, 3)) / len(shapes) < 0.85


@pytest.mark.parametrize("shape", SHAPES)
def test_the_last_maps_are_small(shape: Shape) -> None:
    founder = sized_founder(Problem(shape, 5), np.random.default_rng(1), max_cost=2**22)
    if len(shape) == 3:
        assert 2 <= founder.genome.layers[-2].output[1] <= 8


def test_weights_are_drawn_at_the_size_of_their_own_kernel() -> None:
    rng = np.random.default_rng(1)
    founder = sized_founder(Problem((1, 28, 28), 10), rng, max_parameters=200_000, kernel_mix=0.5)
    layer, genes = list(founder.pairs())[-2]
    for shape in set(layer.kernels):
        rows = [node for node, kernel in enumerate(layer.kernels) if kernel == shape]
        inputs = layer.below[0] * np.prod(shape)
        drawn = genes.weight[rows][genes.weight[rows] != 0]
        assert drawn.std() == pytest.approx(np.sqrt(2 / inputs), rel=0.05)


@given(seeds)
@settings(max_examples=20)
def test_a_founder_for_a_table_begins_as_a_linear_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    founder = sized_founder(Problem((9,), 3), rng, max_parameters=2_000)
    one, other = rng.normal(size=(2, 30, 9)).astype(np.float32)
    network = Network(founder).eval()

    def answers(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(network(torch.from_numpy(x)))

    assert founder.genome.stages[0].blocks
    np.testing.assert_allclose(answers((one + other) / 2), (answers(one) + answers(other)) / 2, atol=1e-5)


def test_the_simplest_network_for_a_table_is_linear_and_others_have_none() -> None:
    rng = np.random.default_rng(1)
    simplest = ResidualFamily(Problem((9,), 3)).simplest(rng)
    assert simplest is not None
    assert str(simplest.genome) == "columns 9 → out 3"
    assert simplest.genome.parameters == 2 * 9 + 9 * 3 + 3
    assert ResidualFamily(Problem((9,), 3), ResidualOptions(max_parameters=40)).simplest(rng) is None
    assert ResidualFamily(Problem((1, 9), 3)).simplest(rng) is None


def test_where_a_table_has_too_many_columns_for_the_limit_few_nodes_look_at_them() -> None:
    founder = sized_founder(Problem((2_000,), 50), np.random.default_rng(1), max_parameters=30_000)
    assert founder.genome.parameters <= 30_000
    assert founder.genome.trunk == "relu"
    assert founder.genome.stages[0].width > 10


def test_where_parameters_are_scarce_and_cost_is_not_they_work_on_larger_maps() -> None:
    problem, rng = Problem((1, 28, 28), 10), np.random.default_rng(1)
    rich = sized_founder(problem, rng, max_cost=3_000_000).genome
    scarce = sized_founder(problem, rng, max_cost=30_000_000, max_parameters=rich.parameters).genome
    assert scarce.parameters <= rich.parameters
    assert scarce.cost > 1.5 * rich.cost


@pytest.mark.parametrize(
    ("shape", "parameters"), [((1, 28, 28), 80_000), ((3, 32, 32), 200_000), ((1, 128), 40_000)]
)
def test_a_founder_like_another_has_its_shape_at_half_the_size(shape: Shape, parameters: int) -> None:
    """Whatever it would be alone: of those of half the cost and parameters, all classes have one shape."""
    problem, rng = Problem(shape, 10), np.random.default_rng(1)
    whole = sized_founder(problem, rng, max_cost=32_000_000, max_parameters=parameters)
    half = sized_founder(
        problem, rng, max_cost=whole.genome.cost // 2, max_parameters=parameters // 2, like=whole
    )
    assert [stage.stride for stage in half.genome.stages] == [stage.stride for stage in whole.genome.stages]
    assert [len(stage.blocks) for stage in half.genome.stages] == [
        len(stage.blocks) for stage in whole.genome.stages
    ]
    assert 0.4 * whole.genome.parameters < half.genome.parameters <= parameters // 2
    assert 0.4 * whole.genome.cost < half.genome.cost <= 0.5 * whole.genome.cost
    ratios = [two.width / one.width for one, two in zip(whole.genome.stages, half.genome.stages, strict=True)]
    assert max(ratios) - min(ratios) < 0.15


def test_a_founder_that_would_be_too_thin_like_another_has_a_shape_of_its_own() -> None:
    problem, rng = Problem((3, 32, 32), 10), np.random.default_rng(1)
    whole = sized_founder(problem, rng, max_cost=2_000_000)
    tiny = sized_founder(problem, rng, max_cost=100_000, like=whole)
    assert tiny.genome.cost <= 100_000
    assert not any(stage.blocks for stage in tiny.genome.stages)


def test_weights_of_founders_decay_as_asked_but_for_tables() -> None:
    for shape, decay in (((3, 16, 16), 3.0), ((1, 40), 3.0), ((7,), 16.0)):
        family = ResidualFamily(Problem(shape, 3), ResidualOptions(start_decay=3.0))
        assert family.minimal(np.random.default_rng(1)).genome.recipe.decay == decay
    with pytest.raises(ConfigError, match="start_decay must be from 1/16 to 16, not 17"):
        ResidualOptions(start_decay=17.0)
