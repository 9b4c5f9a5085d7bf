"""What a planned run finds out before it begins, or refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import epicortex
from epicortex.config import resolving as settings
from epicortex.data import DataOptions, DataSet, Scaling
from epicortex.ecosystem.strategies import Strategies
from epicortex.engines import WorkerSetup
from epicortex.engines.serial import SerialEngine
from epicortex.errors import ConfigError
from epicortex.evaluation.backprop import Backprop
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily
from epicortex.run import assembly, sizing
from epicortex.run.subject import Subject


def test_a_limit_of_parameters_keeps_the_classes_of_cost_apart() -> None:
    digits = Subject.of(epicortex.load_data("digits"))
    made = sizing.counted(settings.resolve("default", {"evolution.max_parameters": 5000}), digits)
    assert made.residual.start_parameters == 4500  # the rest is room to grow
    family = ResidualFamily.from_config(made, Problem((1, 28, 28), 10))
    founders = Strategies.from_config(made).speciation.start(family).networks
    costs = [family.cost(network.phenotype) for network in founders]
    assert all(family.parameters(network.phenotype) <= 4500 for network in founders)
    assert costs[1] < 0.7 * costs[0]
    assert costs[2] < 0.7 * costs[1]


def test_a_small_table_gets_small_networks_with_and_without_a_clock() -> None:
    rng = np.random.default_rng(1)
    rows = DataSet(
        name="rows",
        x_train=rng.standard_normal((120, 4), np.float32),
        y_train=np.arange(120) % 3,
        x_test=np.empty((0, 4), np.float32),
        y_test=np.empty(0, np.int64),
        classes=("a", "b", "c"),
        scaling=Scaling(1.0, (0.0,) * 4, (1.0,) * 4),
    )
    made = sizing.counted(settings.resolve("default"), Subject.of(rows))
    assert made.residual.start_parameters == sizing.most_parameters(rows.x_train, 96, 3) < 2000
    asked = settings.resolve("default", {"residual.start_parameters": 7000})
    assert sizing.counted(asked, Subject.of(rows)).residual.start_parameters == 7000


def test_images_that_are_seen_often_are_changed_and_weights_decay_faster() -> None:
    def made(images: np.ndarray, generations: int, **more: object) -> tuple[tuple[str, ...], float | None]:
        few = DataSet(
            name="few",
            x_train=images,
            y_train=np.arange(len(images)) % 2,
            x_test=images[:0],
            y_test=np.empty(0, np.int64),
            classes=("a", "b"),
            scaling=Scaling(255.0, (0.5,) * images.shape[1], (0.25,) * images.shape[1]),
        )
        changes = {"evolution.generations": generations, "budget.steps": 50, **more}
        found = sizing.counted(settings.resolve("default", changes), Subject.of(few))
        assert sizing.counted(found, Subject.of(few)) == found
        return found.training.augment, found.residual.start_decay

    images = np.zeros((1000, 1, 8, 8), np.uint8)  # 800 to learn from, 6,400 a generation of each sibling
    assert made(images, 7) == (("harmless",), 3.0)
    assert made(images, 6) == ((), 1.0)
    speed = {"budget.speed": 1e9, "residual.start_cost": 1_000_000}
    assert made(images, 1, **{"evolution.minutes": 1.4}, **speed) == (("harmless",), 3.0)
    assert made(images, 1, **{"evolution.minutes": 1.2}, **speed) == ((), 1.0)
    assert made(images[:, 0, 0].astype(np.float32), 1000) == ((), 1.0)
    named = {"training.augment": ["noise"], "residual.start_decay": 2.0}
    assert made(images, 13, **named) == made(images, 12, **named) == (("noise",), 2.0)


def test_what_measures_the_speed_does_not_diverge_on_numbers_of_images() -> None:
    digits = load_digits()
    ones = [Image.fromarray((15 * one).astype(np.uint8)) for one in digits.images[digits.target == 1]]
    angles = np.random.default_rng(1).uniform(-60, 60, len(ones))
    sheets = [one.resize((16, 16), Image.Resampling.BILINEAR) for one in ones]
    turned = [np.asarray(one.rotate(angle)) for one, angle in zip(sheets, angles.tolist(), strict=True)]
    data = epicortex.load_data((np.stack(turned), angles), options=DataOptions(task="regression"))
    subject = Subject.of(data)
    config = settings.resolve("default", {"training.fitness": "r2", "evolution.minutes": None})
    config = sizing.counted(config, subject)
    family = ResidualFamily.from_config(config, subject.problem)
    with SerialEngine(config) as engine:
        recipe = Backprop(family, config.training, 1)
        engine.prepare(WorkerSetup(recipe=recipe, family=family, data=data))
        assert sizing.measured_speed(config, family, engine, 1, 30_000) > 0


def test_a_model_that_is_larger_than_the_champion_is_not_kept_beside_it() -> None:
    digits = load_digits()
    data = epicortex.load_data((digits.images[:300], digits.target[:300]))
    changes = {"evolution.generations": 2, "budget.steps": 3, "training.engine": "serial"}
    config = epicortex.configure(changes={**changes, "residual.start_parameters": 3000})
    with pytest.warns(RuntimeWarning):
        result = epicortex.evolve(data, config, progress=False)
    subject = Subject.of(data)
    family = ResidualFamily.from_config(config, subject.problem)
    recipe = Backprop(family, config.training, 1)
    by_size = sorted(result.state.networks, key=lambda one: family.parameters(one.phenotype))
    assert len({one.species for one in by_size}) > 1
    kept = []
    for champion in (by_size[0], by_size[-1]):
        state = replace(result.state, champion=champion)
        kept.append(len(assembly.smaller_models(state, config, subject, family, recipe)))
    assert kept[0] == 0
    assert kept[1] > 0


def test_an_evaluator_that_follows_no_plan_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"es follows no plan; take --preset layered"):
        epicortex.evolve("digits", epicortex.configure(changes={"evaluator": "es"}))


def test_a_start_genome_is_the_only_founder() -> None:
    problem = Problem((1, 8, 8), 10)
    genome = ResidualFamily(problem).founder(np.random.default_rng(1), max_parameters=900).genome
    made = settings.resolve("default", {"evolution.start_genome": json.dumps(genome.to_dict())})
    family = ResidualFamily.from_config(made, problem)
    (only,) = Strategies.from_config(made).speciation.start(family).networks
    assert only.phenotype.genome.parameters == genome.parameters
