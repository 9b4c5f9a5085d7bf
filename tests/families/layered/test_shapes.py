"""New kernels and strides are drawn with weight exp(−w·h / temperature) over all allowed shapes."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from epicortex.families.family import Shape
from epicortex.families.layered import Rules, draw_kernels, draw_stride
from tests.families.layered.odds import follows
from tests.strategies import odd_sizes, strides

DRAWS = 20_000


@pytest.mark.parametrize("spatial", [(28, 28), (8, 8), (5, 64), (128,), (8, 8, 8), (1, 1), (3, 2)])
@pytest.mark.parametrize("temperature", [1.0, 8.0, 100.0])
@pytest.mark.parametrize("reading", ["area", "perimeter"])
def test_kernel_shapes_follow_the_exponential_of_their_size(
    spatial: Shape, temperature: float, reading: str
) -> None:
    rules = Rules(kernel_temperature=temperature, kernel_start="area" if reading == "area" else "perimeter")
    drawn = Counter(draw_kernels(spatial, DRAWS, rules=rules, rng=np.random.default_rng(1)))
    size = math.prod if reading == "area" else sum
    odds = {shape: math.exp(-size(shape) / temperature) for shape in product(*map(odd_sizes, spatial))}
    assert follows(drawn, odds)


@pytest.mark.parametrize("spatial", [(28, 28), (5, 64), (128,), (8, 8, 8), (1, 1)])
@pytest.mark.parametrize("reading", ["area", "perimeter"])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_strides_follow_the_exponential_of_their_size(
    spatial: Shape, reading: str, temperature: float
) -> None:
    rules = Rules(stride_temperature=temperature, kernel_start="area" if reading == "area" else "perimeter")
    rng = np.random.default_rng(2)
    drawn = Counter(draw_stride(spatial, rules=rules, rng=rng) for _ in range(DRAWS // 4))
    size = math.prod if reading == "area" else sum
    odds = {shape: math.exp(-size(shape) / temperature) for shape in product(*map(strides, spatial))}
    assert follows(drawn, odds)


def test_the_papers_odds_worked_by_hand() -> None:
    """Over 8×8: kernels 1×1 e⁻¹, 1×3 and 3×1 e⁻³ each, 3×3 e⁻⁹."""
    drawn = Counter(draw_kernels((8, 8), 100_000, rules=Rules(), rng=np.random.default_rng(3)))
    odds: dict[Shape, float] = {(1, 1): 0.36788, (1, 3): 0.049787, (3, 1): 0.049787, (3, 3): 0.00012341}
    assert follows(drawn, odds)
    assert 10 <= drawn[3, 3] <= 50  # about one in four thousand


def test_the_temperature_of_strides_and_that_of_kernels_are_two_settings() -> None:
    warm = Rules(kernel_temperature=1e6)
    assert draw_stride((200,), rules=Rules(stride_temperature=1e-3), rng=np.random.default_rng(1)) == (1,)
    assert len(set(draw_kernels((28, 28), 500, rules=warm, rng=np.random.default_rng(1)))) > 40
    cold = Rules(kernel_temperature=1e-3, stride_temperature=1e6)
    assert set(draw_kernels((28, 28), 500, rules=cold, rng=np.random.default_rng(1))) == {(1, 1)}
    assert len({draw_stride((200,), rules=cold, rng=np.random.default_rng(s)) for s in range(50)}) > 20


def test_shapes_are_plain_numbers() -> None:
    (kernel,) = draw_kernels((28, 28), 1, rules=Rules(), rng=np.random.default_rng(1))
    stride = draw_stride((28, 28), rules=Rules(), rng=np.random.default_rng(1))
    assert {type(size) for size in (*kernel, *stride)} == {int}
