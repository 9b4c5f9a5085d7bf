"""The training recipe: what settings and genes make of the plain loop over batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score
from torch.nn import functional

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Course, Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.augmentation import Augmenter
from epicortex.evaluation.backprop import Backprop
from epicortex.evaluation.samples import draw_flips
from epicortex.evaluation.tensors import mirrored
from epicortex.families.family import Family, Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.residual import Phenotype, Recipe, ResidualFamily, ResidualOptions
from epicortex.families.residual.network import Network
from tests.contracts.world import small_data

DATA = small_data()
FAMILY = ResidualFamily(
    Problem(DATA.input_shape, len(DATA.classes)), ResidualOptions(start_parameters=400, kernel_mix=0.5)
)
SGD: dict[str, Any] = {
    "portion": 0.5,
    "batch_size": 32,
    "optimiser": "SGD",
    "optimiser_arguments": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
}


def founder(seed: int = 1, recipe: Recipe | None = None) -> Phenotype:
    drawn = FAMILY.minimal(np.random.default_rng(seed))
    return Phenotype(replace(drawn.genome, recipe=recipe or Recipe()), drawn.genes)


def run(phenotype: Phenotype, generation: int = 3, data: DataSet = DATA, **settings: Any) -> Outcome:
    training = TrainingConfig(**SGD | settings)
    recipe = Backprop(FAMILY, training, seed=1)
    recipe.check(data)
    outcome = recipe.open(data).run(Job(7, generation, 5, phenotype))
    assert outcome.failed is None
    return outcome


def close(one: Phenotype, other: Phenotype, tolerance: float = 1e-4) -> bool:
    pairs = [
        (mine[name], yours[name]) for mine, yours in zip(one.genes, other.genes, strict=True) for name in mine
    ]
    return all(np.allclose(mine, yours, rtol=tolerance, atol=tolerance) for mine, yours in pairs)


def test_the_recipe_is_a_plain_loop_with_the_factors_of_the_genome() -> None:
    start = founder(recipe=Recipe(rate=1.5, decay=2.0))
    outcome = run(start, label_smoothing=0.1, flip=True, decay="weights")

    network = Network(start).train()
    weights = [one for one in network.parameters() if one.ndim > 1]
    others = [one for one in network.parameters() if one.ndim == 1]
    groups: list[Any] = [
        {"params": weights, "weight_decay": 0.01 * 2.0},
        {"params": others, "weight_decay": 0.0},
    ]
    optimiser = torch.optim.SGD(groups, lr=0.05 * 1.5, momentum=0.9, nesterov=True)
    rng = randomness.generator(5, "training", generation=3, network=7)
    flips = randomness.generator(5, "flips", generation=3, network=7)
    chosen = rng.choice(400, size=200, replace=False)
    for place in range(0, 200, 32):
        rows = chosen[place : place + 32]
        images = torch.from_numpy(DATA.scaling.apply(DATA.x_train[rows]))
        x = mirrored(images, draw_flips(len(rows), flips))
        loss = functional.cross_entropy(network(x), torch.from_numpy(DATA.y_train[rows]), label_smoothing=0.1)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert outcome.phenotype is not None
    assert close(outcome.phenotype, network.phenotype(), 1e-3)


@pytest.mark.parametrize(
    "change", [{"label_smoothing": 0.1}, {"flip": True}, {"decay": "weights"}, {"shift": 0.2}]
)
def test_every_setting_of_the_recipe_changes_what_is_learned(change: dict[str, Any]) -> None:
    plain, changed = run(founder()).phenotype, run(founder(), **change).phenotype
    assert plain is not None
    assert changed is not None
    assert not changed.same_bits(plain)
    assert changed.same_bits(run(founder(), **change).phenotype)


@pytest.mark.parametrize("backend", ["torch", "native"])
def test_classes_that_are_spared_are_not_mirrored(backend: str) -> None:
    plain, all_spared, one_spared, none = (
        run(founder(), backend=backend, **change).phenotype
        for change in (
            {},
            {"flip": True, "unflipped": (0, 1, 2)},
            {"flip": True, "unflipped": (1,)},
            {"flip": True},
        )
    )
    assert plain is not None
    assert one_spared is not None
    assert plain.same_bits(all_spared)
    assert not one_spared.same_bits(plain)
    assert not one_spared.same_bits(none)


@pytest.mark.parametrize("backend", ["torch", "native"])
def test_what_a_network_knows_of_mirrored_images_is_measured_class_by_class(backend: str) -> None:
    held = replace(DATA, x_test=np.concatenate([DATA.x_train] * 2), y_test=np.concatenate([DATA.y_train] * 2))
    job = Job(7, 3, 5, founder(), course=Course(steps=60, mirrored=True))
    outcome = Backprop(FAMILY, TrainingConfig(**SGD, backend=backend), seed=1).open(held).run(job)
    assert outcome.phenotype is not None
    network = Network(outcome.phenotype).eval()
    images = torch.from_numpy(held.scaling.apply(held.x_test))
    with torch.no_grad():
        plain, mirror = (network(x).argmax(1).numpy() for x in (images, images.flip(-1)))
    assert outcome.measures["mirrored"] == pytest.approx(float((mirror == held.y_test).mean()), abs=0.01)
    known = {number: float((plain[held.y_test == number] == number).mean()) for number in range(3)}
    assert max(known.values()) > 0.5
    for number, part in known.items():
        measure = outcome.measures.get(f"mirrored {number}")
        if part < 0.5:
            assert measure is None
        else:
            still = float((mirror[held.y_test == number] == number).mean())
            assert measure == pytest.approx(still / part, abs=0.03)


@pytest.mark.parametrize("backend", ["torch", "native"])
def test_what_a_network_knows_of_changed_images_is_measured(backend: str) -> None:
    """Fitness itself, and what is learnt, are as they would be without the question."""
    shop = Backprop(FAMILY, TrainingConfig(**SGD, backend=backend), seed=1).open(DATA)
    course = Course(steps=60, changed=("cutout", "colour"))
    outcome, plain = (
        shop.run(Job(7, 3, 5, founder(), course=one)) for one in (course, replace(course, changed=()))
    )
    assert outcome.phenotype is not None
    assert outcome.phenotype.same_bits(plain.phenotype)
    assert outcome.fitness == plain.fitness
    network = Network(outcome.phenotype).eval()
    rng = randomness.generator(5, "changed", generation=3, network=7)

    def known(images: np.ndarray) -> float:
        with torch.no_grad():
            answers = network(torch.from_numpy(DATA.scaling.apply(images))).argmax(1).numpy()
        return float(balanced_accuracy_score(DATA.y_test, answers, adjusted=True))

    for name in course.changed:
        images = Augmenter((name,), DATA.scaling, rng)(DATA.x_test)
        assert not np.array_equal(images, DATA.x_test)
        expected = known(images) / known(DATA.x_test)
        assert outcome.measures[f"changed {name}"] == pytest.approx(expected, abs=0.02)


def test_augmentation_has_a_factor_in_the_genome() -> None:
    further = founder(recipe=Recipe(augmentation=3.0))
    near, far = run(further, shift=0.1).phenotype, run(founder(), shift=0.3).phenotype
    assert near is not None
    assert far is not None
    assert all(mine.same_bits(yours) for mine, yours in zip(near.genes, far.genes, strict=True))


def test_networks_are_scored_with_the_statistics_that_they_learned() -> None:
    outcome = run(founder())
    assert outcome.phenotype is not None
    network = Network(outcome.phenotype)
    x = torch.from_numpy(DATA.scaling.apply(DATA.x_test))
    with torch.no_grad():
        right = (network.eval()(x).argmax(1).numpy() == DATA.y_test).mean()
    assert outcome.fitness == pytest.approx(right, abs=0.006)
    assert outcome.phenotype.genes[0]["mean"].any()


def test_inherited_momentum_goes_on_where_it_stopped() -> None:
    kept = run(founder(), optimiser_state="inherited").phenotype
    fresh = run(founder()).phenotype
    assert kept is not None
    assert fresh is not None
    assert kept.states == ("momentum",)
    assert fresh.states == ()
    assert kept.without_state().same_bits(fresh)

    on, anew = (
        run(start, generation=4, optimiser_state="inherited").phenotype
        for start in (kept, kept.without_state())
    )
    assert on is not None
    assert anew is not None
    assert not close(on, anew)

    # The same as one optimiser that goes on: here without the flat parameters.
    network = Network(kept).train()
    optimiser = torch.optim.SGD(network.parameters(), **SGD["optimiser_arguments"])
    optimiser.state.update(FAMILY.memory(kept, network))
    chosen = randomness.generator(5, "training", generation=4, network=7).choice(400, 200, replace=False)
    for place in range(0, 200, 32):
        rows = chosen[place : place + 32]
        x = torch.from_numpy(DATA.scaling.apply(DATA.x_train[rows]))
        optimiser.zero_grad()
        loss = functional.cross_entropy(network(x), torch.from_numpy(DATA.y_train[rows]))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert close(on, FAMILY.remembered(kept, network, optimiser.state), 1e-3)


@pytest.mark.parametrize(
    ("family", "optimiser", "message"),
    [
        (FAMILY, "Adam", "only of SGD"),
        (LayeredFamily(FAMILY.problem), "SGD", "layered hold the memory of no optimiser"),
    ],
)
def test_memory_that_genes_cannot_hold_is_refused(family: Family[Any], optimiser: str, message: str) -> None:
    training = TrainingConfig(
        optimiser=optimiser, optimiser_arguments={"lr": 0.1}, optimiser_state="inherited"
    )
    with pytest.raises(ConfigError, match=message):
        Backprop(family, training, seed=1).check(DATA)


def test_losses_are_measured_where_they_are_asked_for() -> None:
    without = run(founder())
    assert without.measures == {}
    assert without.losses is None


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_are_those_that_networks_are_trained_on(smoothing: float) -> None:
    outcome = run(founder(), losses=True, label_smoothing=smoothing)
    assert outcome.phenotype is not None
    assert outcome.losses is not None
    network = Network(outcome.phenotype).eval()
    with torch.no_grad():
        logits = network(torch.from_numpy(DATA.scaling.apply(DATA.x_test)))
    y = torch.from_numpy(DATA.y_test)
    expected = functional.cross_entropy(logits, y, reduction="none", label_smoothing=smoothing)
    assert outcome.losses.dtype == np.float32
    np.testing.assert_allclose(outcome.losses, expected.numpy(), atol=1e-4)
    assert outcome.measures["loss"] == pytest.approx(float(outcome.losses.mean()), rel=1e-5)


def test_a_table_has_nothing_to_mirror() -> None:
    rows = DATA.x_train.reshape(len(DATA.x_train), -1).astype(np.float32)
    width = rows.shape[1]
    table = replace(
        DATA,
        x_train=rows,
        x_test=DATA.x_test.reshape(len(DATA.x_test), -1).astype(np.float32),
        scaling=Scaling(1.0, (0.0,) * width, (100.0,) * width),
    )
    family = ResidualFamily(Problem((width,), 3), ResidualOptions(start_parameters=500))
    start = family.minimal(np.random.default_rng(1))
    ends = [
        Backprop(family, TrainingConfig(**SGD, flip=flip), seed=1).open(table).run(Job(1, 1, 1, start))
        for flip in (False, True)
    ]
    assert ends[0].phenotype.same_bits(ends[1].phenotype)  # type: ignore[union-attr]
