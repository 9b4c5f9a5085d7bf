"""Numbers and sets of labels: losses on both arithmetics, fitness and figures as scikit-learn has them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.datasets import load_diabetes, load_digits

from epicortex.config import TrainingConfig
from epicortex.data import DataSet, load
from epicortex.ecosystem.jobs import Job
from epicortex.errors import ConfigError
from epicortex.evaluation import fitness
from epicortex.evaluation.backprop import Backprop
from epicortex.evaluation.compiled import NativeTrainer
from epicortex.evaluation.goals import Goal
from epicortex.evaluation.losses import batch_loss, sample_losses
from epicortex.evaluation.tallies import bootstrap, labelled, regressed
from epicortex.evaluation.trainer import Trainer
from epicortex.families.activations import Activations
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import FullLayer, Genome
from epicortex.families.residual import ResidualFamily


@cache
def numbers() -> DataSet:
    return load(load_diabetes(return_X_y=True))


@cache
def sets() -> DataSet:
    digits = load_digits()
    t = digits.target[:300]
    y = np.stack([t % 2 == 0, t > 4, np.isin(t, (2, 3, 5, 7))], axis=1).astype(int)
    return load((digits.data[:300], y))


DATA = {"regression": numbers, "multilabel": sets}
TRAINING: dict[str, Any] = {"fitness_on": "validation", "validation_fraction": 0.2, "losses": True}


def job(data: DataSet, *, train: bool = True) -> tuple[LayeredFamily, Job]:
    problem = Problem(tuple(data.input_shape), len(data.classes))
    family = LayeredFamily(problem, activations=Activations("leaky_relu", "smooth"))
    genome = Genome(problem.input_shape, (FullLayer(6),), problem.outputs)
    return family, Job(0, 1, 1, draw_phenotype(genome, rng=np.random.default_rng(1)), train=train)


def test_a_target_that_never_changes_counts_only_where_it_is_met() -> None:
    same = np.full((3, 1), 7.0)
    assert fitness.r2(same, same) == 1.0
    assert fitness.r2(np.array([[1e12], [7.0], [-1e12]]), same) == 0.0  # without a warning of numpy


@pytest.mark.parametrize("task", DATA)
def test_native_arithmetic_learns_as_torch_does(task: str) -> None:
    data = DATA[task]()
    name = "r2" if task == "regression" else "f1"
    training = TrainingConfig(
        **TRAINING,
        fitness=name,
        optimiser="Adam",
        optimiser_arguments={"lr": 0.01},
        portion=1.0,
        min_steps=30,
    )
    family, work = job(data)
    reference = Trainer(data, family, training, seed=1).run(work)
    native = NativeTrainer(data, family, training, seed=1).run(work)
    before = Trainer(data, family, training, seed=1).run(job(data, train=False)[1])
    assert reference.failed is None
    assert native.failed is None
    assert before.fitness is not None
    assert reference.fitness is not None
    assert reference.fitness > max(0.2, before.fitness)
    assert native.fitness == pytest.approx(reference.fitness, abs=1e-3)
    assert reference.losses is not None
    assert native.losses is not None
    np.testing.assert_allclose(native.losses, reference.losses, rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("task", DATA)
def test_the_losses_of_samples_average_to_the_loss_that_is_learnt(task: str) -> None:
    data = DATA[task]()
    goal = Goal.of(data)
    y = torch.from_numpy(goal.taught(data.y_test))
    outputs = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    for smoothing in (0.0, 0.1):
        losses = sample_losses(goal.task, outputs, y, smoothing=smoothing)
        learnt = batch_loss(goal.task, outputs, y, smoothing=smoothing)
        np.testing.assert_allclose(losses.mean(), learnt, rtol=1e-5)


def test_predictions_come_in_the_unit_of_the_data() -> None:
    data = numbers()
    goal = Goal.of(data)
    taught = goal.taught(data.y_test)
    np.testing.assert_allclose(goal.answers(taught), data.y_test, rtol=1e-5)
    off = goal.fitness("mean_absolute_error", taught + 0.1, taught)
    assert data.targets is not None
    assert off == pytest.approx(-0.1 * data.targets.std[0], rel=1e-4)
    own = goal.fitness("mine", taught + 1, taught, lambda found, right: float((found - right).mean()))
    assert own == pytest.approx(data.targets.std[0], rel=1e-4)


@given(st.integers(2, 30), st.integers(2, 4), st.integers(0, 1000))
@settings(max_examples=12, deadline=None)
def test_figures_are_those_of_scikit_learn(samples: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, found = rng.normal(size=(samples, outputs)), rng.normal(size=(samples, outputs))
    own = regressed(found, y, np.zeros(outputs))
    r2 = metrics.r2_score(y, found)
    assert fitness.r2(found, y) == pytest.approx(r2)
    assert own.r2 == pytest.approx(r2)
    each = metrics.mean_absolute_error(y, found, multioutput="raw_values")
    np.testing.assert_allclose(own.errors, each)
    assert fitness.mean_absolute_error(found, y) == pytest.approx(-each.mean())
    np.testing.assert_allclose(own.roots, metrics.root_mean_squared_error(y, found, multioutput="raw_values"))
    there, given_ = (y > 0).astype(int), (found > 0).astype(int)
    figures = labelled(given_, there)
    micro = metrics.f1_score(there, given_, average="micro", zero_division=0)
    assert fitness.f1_micro(given_, there) == pytest.approx(micro)
    assert figures.f1_micro == pytest.approx(micro)
    present = there.sum(0) > 0
    if present.any():
        scores = metrics.f1_score(there, given_, average=None, zero_division=0)
        macro = scores[present].mean()
        assert fitness.f1(given_, there) == pytest.approx(macro)
        assert figures.f1 == pytest.approx(macro)
    assert figures.exact == int((there == given_).all(1).sum())


def test_a_constant_answer_is_no_better_than_the_baseline() -> None:
    y = np.random.default_rng(1).normal(size=(60, 1))
    mean = regressed(np.full_like(y, y.mean()), y, y.mean(0))
    assert not mean.beats_baseline
    assert mean.errors == pytest.approx(mean.baselines)
    good = regressed(y + 0.1, y, y.mean(0))
    assert good.beats_baseline
    sets_ = np.random.default_rng(2).integers(0, 2, (60, 3))
    every = labelled(np.ones_like(sets_), sets_)
    assert every.f1 == pytest.approx(every.baseline)
    assert not every.beats_baseline
    assert labelled(sets_, sets_).beats_baseline


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(60):
        y = rng.normal(size=(50, 1))
        low, high = regressed(y + rng.normal(size=y.shape), y, [0.0]).interval()
        held += low <= np.sqrt(2 / np.pi) <= high  # the mean of |N(0, 1)|
    assert 50 <= held <= 60
    again = [bootstrap(20, lambda weights: weights[:, :1]) for _ in range(2)]
    np.testing.assert_array_equal(again[0], again[1])


def test_settings_that_make_no_sense_for_a_task_are_refused() -> None:
    family, _ = job(numbers())
    for changes, says in (
        ({"fitness": "balanced_accuracy"}, "it must be r2, mean_absolute_error"),
        ({"fitness": "r2", "class_weights": "balanced"}, "no classes to weigh"),
        ({"fitness": "r2", "flip": True, "unflipped": (0,)}, "no classes to spare"),
    ):
        with pytest.raises(ConfigError, match=says):
            Backprop(family, TrainingConfig(**TRAINING, **changes), 1).check(numbers())


@pytest.mark.parametrize("task", DATA)
def test_the_champion_is_judged_on_the_test_set(task: str) -> None:
    data = DATA[task]()
    name = "mean_absolute_error" if task == "regression" else "f1_micro"
    family, work = job(data)
    verdict = Backprop(family, TrainingConfig(**TRAINING, fitness=name), 1).judge(work.phenotype, data)
    assert verdict.test is None
    assert verdict.temperature is None
    if task == "regression":
        assert verdict.regression is not None
        assert verdict.regression.fitness == pytest.approx(-np.mean(verdict.regression.errors), rel=1e-6)
        assert verdict.figure == verdict.regression.r2
    else:
        assert verdict.labels is not None
        assert verdict.labels.fitness == pytest.approx(verdict.labels.f1_micro)
        assert verdict.figure == verdict.labels.f1


def test_one_output_is_enough_for_residual_networks_too() -> None:
    family = ResidualFamily(Problem((10,), 1))
    network = family.founder(np.random.default_rng(1), max_cost=10_000, max_parameters=400)
    with torch.no_grad():
        assert family.build(network)(torch.zeros(3, 10)).shape == (3, 1)
