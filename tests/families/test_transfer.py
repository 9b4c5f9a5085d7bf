"""Networks for other classes, channels and sizes: what is kept computes what it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from epicortex.errors import GenomeError
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.residual import ResidualFamily

HIDDEN = (ConvLayer(((3, 3), (1, 5), (5, 1)), (2, 2)), FullLayer(6))


def families(shape: tuple[int, ...], outputs: int) -> dict[str, Any]:
    problem = Problem(shape, outputs)
    return {"layered": LayeredFamily(problem), "residual": ResidualFamily(problem)}


def network(name: str, shape: tuple[int, ...], outputs: int) -> Any:
    rng = np.random.default_rng(1)
    if name == "layered":
        return draw_phenotype(Genome(shape, HIDDEN, outputs), rng=rng)
    return families(shape, outputs)[name].founder(rng, max_cost=200_000)


def answers(family: Any, phenotype: Any, x: torch.Tensor) -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(family.build(phenotype).eval()(x).numpy())


@pytest.mark.parametrize("name", ["layered", "residual"])
def test_known_classes_keep_their_answers_and_new_ones_are_drawn(name: str) -> None:
    old, new = families((1, 12, 12), 3)[name], families((1, 12, 12), 4)[name]
    before = network(name, (1, 12, 12), 3)
    after, kept = new.adapted(before, [2, None, 0, None], np.random.default_rng(2))
    assert kept == len(list(getattr(after, "genes", None) or after.weights)) - 1
    x = torch.randn(5, 1, 12, 12)
    one, other = answers(old, before, x), answers(new, after, x)
    np.testing.assert_allclose(other[:, [0, 2]], one[:, [2, 0]], rtol=1e-5, atol=1e-6)
    assert np.abs(other[:, [1, 3]] - one[:, [1, 1]]).min() > 0
    again, _ = new.adapted(before, [2, None, 0, None], np.random.default_rng(2))
    assert again.same_bits(after)


@pytest.mark.parametrize("name", ["layered", "residual"])
def test_gray_becomes_colour_and_colour_gray_with_the_same_answers(name: str) -> None:
    gray, colour = (families((channels, 12, 12), 3)[name] for channels in (1, 3))
    x = torch.randn(5, 1, 12, 12)
    before = network(name, (1, 12, 12), 3)
    after, _ = colour.adapted(before, [0, 1, 2], np.random.default_rng(2))
    expected = answers(gray, before, x)
    np.testing.assert_allclose(answers(colour, after, x.repeat(1, 3, 1, 1)), expected, rtol=1e-4, atol=1e-5)
    back, _ = gray.adapted(after, [0, 1, 2], np.random.default_rng(3))
    np.testing.assert_allclose(answers(gray, back, x), expected, rtol=1e-4, atol=1e-5)


def test_other_sizes_keep_every_residual_layer_and_the_convolutions_of_layered_ones() -> None:
    rows = [0, 1, 2]
    residual = families((1, 20, 16), 3)["residual"]
    before = network("residual", (1, 12, 12), 3)
    after, kept = residual.adapted(before, rows, np.random.default_rng(2))
    assert kept == len(before.genes) - 1
    assert answers(residual, after, torch.randn(2, 1, 20, 16)).shape == (2, 3)
    layered = families((1, 20, 16), 3)["layered"]
    old = network("layered", (1, 12, 12), 3)
    grown, kept = layered.adapted(old, rows, np.random.default_rng(2))
    assert kept == 1
    assert np.array_equal(grown.weights[0].weight, old.weights[0].weight)
    with pytest.raises(GenomeError, match="cannot be fitted"):
        families((5,), 3)["layered"].adapted(old, rows, np.random.default_rng(2))
