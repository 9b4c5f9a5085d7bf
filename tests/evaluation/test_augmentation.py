"""How training samples are changed, beside independent ways to do the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import epicortex
from epicortex import native
from epicortex.data import Scaling
from epicortex.ecosystem.jobs import Course, Job
from epicortex.errors import ConfigError
from epicortex.evaluation.augmentation import SUITABLE, Augmenter, warped
from tests.contracts.world import network
from tests.evaluation.test_compiled import both, distance

SCALING = Scaling(255.0, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3))
IMAGES = np.random.default_rng(5).integers(0, 256, (12, 3, 10, 14), dtype=np.uint8)


def changed(*names: str, seed: int = 1, raw: np.ndarray = IMAGES, scaling: Scaling = SCALING) -> np.ndarray:
    return Augmenter(names, scaling, np.random.default_rng(seed))(raw)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-1.5, 1.5), min_size=4, max_size=4), st.integers(0, 2**32 - 1))
def test_turning_and_scaling_is_what_scipy_makes_of_the_matrix(entries: list[float], seed: int) -> None:
    images = np.random.default_rng(seed).random((2, 2, 5, 7)).astype(np.float32)
    matrix = np.array(entries).reshape(2, 2)
    made = warped(images, np.stack([matrix, np.eye(2)]))
    centre = (np.array([5, 7]) - 1) / 2
    for channel in range(2):
        reference = ndimage.affine_transform(
            images[0, channel].astype(np.float64), matrix, centre - matrix @ centre, order=1, mode="nearest"
        )
        np.testing.assert_allclose(made[0, channel], reference, atol=1e-4)
    np.testing.assert_array_equal(made[1], images[1])


def test_a_quarter_turn_is_exact() -> None:
    images = IMAGES[..., :10].astype(np.float32)
    quarter = np.tile(np.array([[0.0, 1.0], [-1.0, 0.0]]), (len(images), 1, 1))
    np.testing.assert_array_equal(warped(images, quarter), np.rot90(images, axes=(2, 3)))


def test_signals_are_stretched_about_their_middle() -> None:
    line = np.linspace(0, 1, 21, dtype=np.float32)[None, None]
    np.testing.assert_allclose(
        warped(line, np.full((1, 1, 1), 0.5))[0, 0], np.linspace(0.25, 0.75, 21), atol=1e-6
    )


def test_colour_changes_each_channel_of_a_sample_on_one_line_about_its_mean() -> None:
    for before, after in zip(IMAGES, changed("colour"), strict=True):
        slopes = []
        for channel in range(3):
            slope, offset = np.polyfit(before[channel].ravel().astype(float), after[channel].ravel(), 1)
            np.testing.assert_allclose(after[channel], slope * before[channel] + offset, atol=1e-2)
            mean, std = 255 * SCALING.mean[channel], 255 * SCALING.std[channel]
            assert abs(slope * mean + offset - mean) <= 0.4 * std + 0.01
            slopes.append(slope)
        assert min(slopes) > 0.69
        assert max(slopes) < 1.31
        np.testing.assert_allclose(slopes, slopes[0], atol=1e-4)


def test_noise_has_the_deviation_of_its_channel_times_at_most_its_level() -> None:
    images = np.zeros((40, 3, 40, 40), np.uint8)
    deviations = changed("noise", raw=images).std((2, 3)) / (255 * np.array(SCALING.std))
    assert 0.1 < deviations.max() < 0.17
    assert deviations.min() < 0.05
    np.testing.assert_allclose(deviations, deviations[:, :1].repeat(3, 1), rtol=0.1)


def test_cutout_fills_one_box_of_each_sample_with_the_mean() -> None:
    mean = 255 * np.array(SCALING.mean, np.float32).reshape(3, 1, 1)
    boxes = []
    for before, after in zip(IMAGES, changed("cutout"), strict=True):
        rows, columns = np.nonzero((after != before).any(0))
        box = np.s_[:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        np.testing.assert_array_equal(after[box], np.broadcast_to(mean, after[box].shape))
        outside = after.copy()
        outside[box] = before[box]
        np.testing.assert_array_equal(outside, before)
        boxes.append(after[box].shape[1:])
    assert len(set(boxes)) > 3
    assert max(boxes) <= (5, 7)


@pytest.mark.parametrize("dimensions", [0, 1, 2])
def test_all_that_suits_works_together_and_is_the_same_from_the_same_seed(dimensions: int) -> None:
    names, shape = SUITABLE[dimensions], (6, 2, *(9, 8)[:dimensions])
    raw = np.random.default_rng(3).random(shape).astype(np.float32)
    kept, scaling = raw.copy(), Scaling(1.0, (0.5, 0.5), (0.3, 0.3))
    one, same, other = (changed(*names, seed=seed, raw=raw, scaling=scaling) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(raw, kept)
    assert one.shape == shape
    assert (one != other).mean() > 0.5


@pytest.mark.skipif(not native.available(), reason="there is no native arithmetic")
def test_both_arithmetics_learn_from_the_same_changed_samples() -> None:
    def course(*names: str) -> Job:
        given = network()
        return Job(1, 1, 7, given, course=Course(steps=2, augment=names))

    names = SUITABLE[2]
    one, other = both(course(*names))
    plain, _ = both(course())
    assert distance(one, other) < 1e-3 < distance(one, plain)


@pytest.mark.filterwarnings("ignore:there is no test part:RuntimeWarning")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        (["rotation"], "rotation cannot be done to this data, only noise"),
        (["auto", "noise"], "auto or names"),
        (["blur"], "rotation, scale, colour, noise and cutout"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(value: Any, says: str) -> None:
    table = np.random.default_rng(1).random((30, 4)), np.arange(30) % 2
    with pytest.raises(ConfigError, match=says) as caught:
        epicortex.evolve(table, {"training.augment": value, "evolution.generations": 2})
    assert "\n" not in str(caught.value)


def test_only_planned_runs_measure_what_helps() -> None:
    config = epicortex.configure("layered", {"training.augment": "auto"})
    with pytest.raises(ConfigError, match="only planned runs"):
        epicortex.evolve("digits", config)
