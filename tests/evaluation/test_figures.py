"""Intervals, baselines and calibration, beside what scipy and plain counting give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from epicortex.evaluation import figures
from epicortex.evaluation.figures import (
    calibration_error,
    counted,
    fit_temperature,
    probabilities,
    reliability,
    wilson,
)


@given(st.integers(1, 3000), st.data())
def test_the_interval_is_wilsons(total: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, total))
    theirs = stats.binomtest(right, total).proportion_ci(0.95, method="wilson")
    assert wilson(right, total) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_recall_precision_and_baseline_are_what_counting_gives(pairs: list[tuple[int, int]]) -> None:
    answers, labels = (np.array(one) for one in zip(*pairs, strict=True))
    found = counted(answers, labels, 4)
    assert found.accuracy == pytest.approx(np.mean(answers == labels))
    assert found.baseline == pytest.approx(max(np.mean(labels == name) for name in range(4)))
    for name in range(4):
        of, said = labels == name, answers == name
        assert found.recall()[name] == (pytest.approx(np.mean(said[of])) if of.any() else None)
        assert found.precision()[name] == (pytest.approx(np.mean(of[said])) if said.any() else None)


def test_the_majority_rate_is_no_success() -> None:
    """500 cats and 40 dogs: whoever always says cat is right in 92.6 %."""
    cats = figures.Tested((100, 8), (100, 0), (108, 0))
    assert cats.accuracy == cats.baseline
    assert not cats.beats_baseline
    good = figures.Tested((100, 8), (99, 8), (99, 9))
    assert good.beats_baseline == (stats.binomtest(8, 9, alternative="greater").pvalue < 0.025)
    assert good.beats_baseline


def drawn(scale: float, samples: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Logits `scale` times too large for labels that are drawn from their probabilities."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(samples, 5)) * 2
    labels = np.array([rng.choice(5, p=row) for row in probabilities(logits)])
    return logits * scale, labels


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0])
def test_the_temperature_takes_back_what_made_a_network_too_sure(scale: float) -> None:
    logits, labels = drawn(scale)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(scale, rel=0.1)

    def loss(logarithm: float) -> float:
        chances = probabilities(logits, float(np.exp(logarithm)))
        return -float(np.log(chances[np.arange(len(labels)), labels]).mean())

    best = optimize.minimize_scalar(loss, bounds=(-3, 3), method="bounded")
    assert found == pytest.approx(float(np.exp(best.x)), rel=0.01)
    before = calibration_error(reliability(probabilities(logits), labels))
    after = calibration_error(reliability(probabilities(logits, found), labels))
    assert after < 0.03
    assert after <= before + 0.01


def test_a_temperature_stays_finite_where_every_answer_is_right_and_needs_samples() -> None:
    logits = np.eye(3)[np.arange(90) % 3] * 4.0
    found = fit_temperature(logits, np.arange(90) % 3)
    assert found is not None
    assert 0.05 < found < 20
    assert fit_temperature(logits[:19], np.arange(19) % 3) is None


def test_bins_hold_every_answer_once() -> None:
    logits, labels = drawn(1.0, 500)
    bins = reliability(probabilities(logits), labels)
    assert sum(one.samples for one in bins) == 500
    right = sum(one.samples * one.right for one in bins)
    assert right == pytest.approx(np.sum(logits.argmax(1) == labels))
