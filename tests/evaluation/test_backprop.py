"""Training and scoring one network: what it computes, what it draws, and how it fails."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics import confusion_matrix as sklearn_confusion
from torch import Tensor
from torch.nn import functional

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling, load, split_validation
from epicortex.ecosystem.jobs import Job
from epicortex.errors import ConfigError
from epicortex.evaluation import scoring
from epicortex.evaluation.checks import check_training
from epicortex.evaluation.evaluator import Stopped
from epicortex.evaluation.fitness import FitnessFunction, balanced_accuracy, confusion_matrix, find_fitness
from epicortex.evaluation.optimisers import torch_optimisers
from epicortex.evaluation.samples import class_weights, draw_batches, draw_moves
from epicortex.evaluation.tensors import fitness_samples, moved, split
from epicortex.evaluation.trainer import Trainer
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.network import Network
from epicortex.families.layered.partition import choose_partition
from epicortex.families.layered.placing import kernel_mask
from tests.contracts.world import FAMILY, network, same, small_data

CPU = torch.device("cpu")
DATA = small_data()


def trainer(data: DataSet = DATA, function: FitnessFunction | None = None, **settings: Any) -> Trainer:
    training = TrainingConfig(**{"portion": 0.5, "batch_size": 32, **settings})
    return Trainer(data, family_of(data), training, seed=1, fitness=function)


def family_of(data: DataSet) -> LayeredFamily:
    return LayeredFamily(Problem(data.input_shape, len(data.classes)))


def doubled(images: np.ndarray) -> np.ndarray:
    return images.repeat(2, 2).repeat(2, 3)


# What it computes


def test_training_is_a_plain_loop_over_the_drawn_batches() -> None:
    job = Job(7, 3, 5, network(7))
    outcome = trainer().run(job)

    reference = Network(job.phenotype)
    optimiser = torch.optim.Adadelta(reference.parameters(), lr=1.0)
    rng = randomness.generator(5, "training", generation=3, network=7)
    chosen = rng.choice(400, size=200, replace=False)
    for start in range(0, 200, 32):
        rows = chosen[start : start + 32]
        x = torch.from_numpy(DATA.scaling.apply(DATA.x_train[rows]))
        loss = functional.cross_entropy(reference(x), torch.from_numpy(DATA.y_train[rows]))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        logits = reference(torch.from_numpy(DATA.scaling.apply(DATA.x_test)))
    right = (logits.argmax(1).numpy() == DATA.y_test).mean()

    assert outcome.failed is None
    assert outcome.phenotype is not None
    assert outcome.samples == 200
    assert outcome.fitness == pytest.approx(right, abs=0.02)
    for ours, theirs in zip(outcome.phenotype.weights, reference.phenotype().weights, strict=True):
        np.testing.assert_allclose(ours.weight, theirs.weight, atol=1e-4)
        np.testing.assert_allclose(ours.bias, theirs.bias, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "mode"), [(((5, 1), (1, 5)) * 5, "added"), (((5, 5), (1, 1)) * 32, "split")]
)
def test_computing_as_on_a_graphics_processor_gives_the_same_to_float_tolerance(
    shapes: tuple[tuple[int, int], ...], mode: str
) -> None:
    """The device is the CPU here; the way is the one that cuda and mps take."""
    large = replace(DATA, x_train=doubled(DATA.x_train), x_test=doubled(DATA.x_test))
    layers = (ConvLayer(((3, 3),) * 10, (1, 1)), ConvLayer(shapes, (1, 1)))
    phenotype = draw_phenotype(Genome((1, 16, 16), layers, 3), rng=np.random.default_rng(1))
    training = TrainingConfig(portion=0.5, optimiser="SGD", optimiser_arguments={"lr": 0.05})
    assert choose_partition(shapes, 10, (1, 1)).mode == mode
    job = Job(1, 1, 1, phenotype)
    ours, theirs = (
        Trainer(large, family_of(large), training, seed=1, accelerated=accelerated).run(job)
        for accelerated in (False, True)
    )
    assert ours.phenotype is not None
    assert theirs.phenotype is not None
    pairs = list(zip(ours.phenotype.weights, theirs.phenotype.weights, strict=True))
    for mine, other in pairs:
        np.testing.assert_allclose(mine.weight, other.weight, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(mine.bias, other.bias, rtol=1e-3, atol=1e-4)
    assert not np.array_equal(pairs[1][0].weight, pairs[1][1].weight), "both were computed in one way"


def test_a_network_learns_the_stripes() -> None:
    outcome = trainer(portion=1.0, min_steps=40).run(Job(1, 1, 1, network(), newborn=True))
    assert outcome.fitness is not None
    assert outcome.fitness_before is not None
    assert outcome.fitness > 0.7 > outcome.fitness_before


def test_a_part_of_the_learning_rate_is_that_rate_given_to_the_optimiser() -> None:
    part = trainer(optimiser_arguments={"lr": 0.5}).run(Job(1, 1, 1, network(), rate=0.25))
    assert same(part, trainer(optimiser_arguments={"lr": 0.125}).run(Job(1, 1, 1, network())))
    own = trainer().run(Job(1, 1, 1, network(), rate=0.5))
    assert same(own, trainer(optimiser_arguments={"lr": 0.5}).run(Job(1, 1, 1, network()))), "Adadelta has 1"


def test_the_same_job_gives_the_same_bits_whatever_ran_before() -> None:
    one, other = trainer(), trainer()
    first = one.run(Job(1, 1, 1, network(1)))
    other.run(Job(2, 1, 1, network(2)))
    assert same(first, other.run(Job(1, 1, 1, network(1))))
    assert same(first, one.run(Job(1, 1, 1, network(1))))


def test_another_seed_generation_or_network_draws_other_samples() -> None:
    run = trainer().run
    fitness = {
        run(Job(*names, network())).phenotype.weights[-1].weight.tobytes()  # type: ignore[union-attr]
        for names in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2))
    }
    assert len(fitness) == 4


def test_training_leaves_the_job_as_it_was() -> None:
    job = Job(1, 1, 1, network(), newborn=True)
    before = [array.tobytes() for genes in job.phenotype.weights for array in genes.values()]
    trainer().run(job)
    assert before == [array.tobytes() for genes in job.phenotype.weights for array in genes.values()]


@pytest.mark.parametrize(
    "optimiser",
    ["OrthogonalSGD", *(name for name in torch_optimisers() if name not in ("Muon", "SparseAdam"))],
)
def test_any_optimiser_trains_and_leaves_the_zeros_around_small_kernels(optimiser: str) -> None:
    # LBFGS trusts each batch too much to be let loose on small ones
    settings: dict[str, Any] = {"LBFGS": {"lr": 0.05}, "Rprop": {}}.get(optimiser, {"weight_decay": 0.01})
    run = trainer(optimiser=optimiser, optimiser_arguments=settings).run
    outcome = run(Job(1, 1, 1, network()))
    assert outcome.failed is None
    assert outcome.phenotype is not None
    assert not outcome.phenotype.same_bits(network())
    layer = outcome.phenotype.genome.layers[0]
    assert isinstance(layer, ConvLayer)
    outside = ~np.broadcast_to(kernel_mask(layer.kernels), outcome.phenotype.weights[0].weight.shape)
    assert outside.any()
    assert not outcome.phenotype.weights[0].weight[outside].any()


@pytest.mark.parametrize(
    ("shape", "hidden"),
    [
        ((12,), (FullLayer(4),)),
        ((2, 20), (ConvLayer(((3,), (5,)), (2,)),)),
        ((1, 6, 6, 6), (ConvLayer(((3, 1, 3),), (1, 2, 1)),)),
    ],
)
def test_tables_signals_and_volumes_train_too(shape: tuple[int, ...], hidden: Any) -> None:
    rng = np.random.default_rng(1)
    y = np.arange(90) % 2
    x = rng.normal(size=(90, *shape)).astype(np.float32) + y.reshape(-1, *(1,) * len(shape)).astype(
        np.float32
    )
    scaling = Scaling(2.0, (0.5,) * shape[0], (1.5,) * shape[0])
    data = DataSet("own", x[:60], y[:60], x[60:], y[60:], ("no", "yes"), scaling)
    job = Job(1, 1, 1, draw_phenotype(Genome(shape, hidden, 2), rng=rng))
    before = x.tobytes()
    outcome = trainer(data, portion=1.0, min_steps=60).run(job)
    assert outcome.failed is None
    assert outcome.fitness is not None
    assert outcome.fitness > 0.65
    assert x.tobytes() == before


def test_batches_are_scaled_as_the_data_set_says() -> None:
    x, y = split(DATA, "train", CPU).batch(np.array([5, 2, 9]))
    np.testing.assert_allclose(x.numpy(), DATA.scaling.apply(DATA.x_train[[5, 2, 9]]), atol=1e-6)
    assert y.tolist() == DATA.y_train[[5, 2, 9]].tolist()


# Newborns


def test_newborns_are_scored_before_training() -> None:
    scored = trainer().run(Job(1, 1, 1, network(), newborn=True, train=False))
    trained = trainer().run(Job(1, 1, 1, network(), newborn=True))
    grown = trainer().run(Job(1, 1, 1, network()))
    assert scored.fitness == scored.fitness_before == trained.fitness_before
    assert scored.phenotype is not None
    assert scored.phenotype.same_bits(network())
    assert scored.samples == 0
    assert grown.fitness_before is None
    assert same(grown, trainer().run(Job(1, 1, 1, network())))
    assert grown.fitness == trained.fitness


# What it draws


@given(
    samples=st.integers(1, 700),
    portion=st.floats(0.001, 1),
    size=st.integers(1, 300),
    steps=st.integers(0, 40),
)
def test_portions_are_drawn_without_replacement_and_reach_the_least_number_of_steps(
    samples: int, portion: float, size: int, steps: int
) -> None:
    training = TrainingConfig(portion=portion, batch_size=size, min_steps=steps)
    batches = list(draw_batches(samples, training, np.random.default_rng(1)))
    wanted = max(1, round(portion * samples))
    flat = np.concatenate(batches)
    assert flat.min() >= 0
    assert flat.max() < samples
    if math.ceil(wanted / size) >= steps:
        assert len(flat) == wanted
        assert len(set(flat)) == wanted
        assert all(len(batch) == size for batch in batches[:-1])
    else:
        assert len(batches) == steps
        enlarged = min(samples, steps * size)
        for start in range(0, len(flat), enlarged):
            whole = flat[start : start + enlarged]
            assert len(set(whole)) == len(whole)


def test_validation_samples_are_never_trained_on_and_the_test_set_is_not_touched() -> None:
    training = TrainingConfig(fitness_on="validation", validation_fraction=0.25)
    learnt, measured = fitness_samples(DATA, training, 1, CPU)
    train, validation = split_validation(DATA.y_train, 0.25, randomness.generator(1, "validation"))
    assert learnt.index is not None
    assert measured.index is not None
    assert learnt.index.tolist() == train.tolist()
    assert measured.index.tolist() == validation.tolist()
    assert not set(train) & set(validation)

    other_test = DataSet(
        "stripes", DATA.x_train, DATA.y_train, DATA.x_test[::-1], DATA.y_test, DATA.classes, DATA.scaling
    )
    job = Job(1, 1, 1, network())
    settings: dict[str, Any] = {"fitness_on": "validation"}
    assert same(trainer(DATA, **settings).run(job), trainer(other_test, **settings).run(job))


def test_a_validation_part_of_the_data_set_itself_is_used() -> None:
    data = DataSet(
        "stripes", DATA.x_train, DATA.y_train, DATA.x_test[:0], DATA.y_test[:0], DATA.classes, DATA.scaling,
        x_val=DATA.x_test, y_val=DATA.y_test,
    )  # fmt: skip
    job = Job(1, 1, 1, network())
    assert same(trainer(data, fitness_on="validation").run(job), trainer(DATA).run(job))


def test_fitness_on_a_test_part_that_is_empty_is_refused() -> None:
    data = DataSet(
        "stripes", DATA.x_train, DATA.y_train, DATA.x_test[:0], DATA.y_test[:0], DATA.classes, DATA.scaling
    )
    with pytest.raises(ConfigError, match=r"has no test samples; give --training.fitness-on validation"):
        check_training(TrainingConfig(), data=data)


@given(st.integers(2, 40), st.integers(2, 5000), st.integers(0, 2**32 - 1))
def test_class_weights_have_the_bits_that_torch_gave(classes: int, samples: int, seed: int) -> None:
    """Runs of before, whose weights torch computed, go on with the same bits."""
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, classes, samples))
    counts = torch.bincount(labels, minlength=classes).to(torch.float32)
    weights = samples / (int((counts > 0).sum()) * counts.clamp(min=1))
    expected = torch.where(counts > 0, weights, 0.0)
    np.testing.assert_array_equal(class_weights(labels.numpy(), classes), expected.numpy())


def test_balanced_class_weights_weigh_rare_classes_more() -> None:
    keep = np.flatnonzero((DATA.y_train != 2) | (np.arange(400) % 20 == 0))
    rare = DataSet(
        "rare", DATA.x_train[keep], DATA.y_train[keep], DATA.x_test, DATA.y_test, DATA.classes, DATA.scaling
    )
    job = Job(1, 1, 1, network(1, FullLayer(8)))
    counts = []
    for weights in ("none", "balanced"):
        outcome = trainer(rare, class_weights=weights, portion=1.0, min_steps=30).run(job)
        assert outcome.phenotype is not None
        counts.append(scoring.score(outcome.phenotype, FAMILY, rare).confusion[:, 2].sum())
    assert 2 * counts[0] < counts[1]


# How it scores


@given(st.integers(2, 6), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_balanced_accuracy_and_confusion_agree_with_scikit_learn(
    classes: int, samples: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    labels = np.append(rng.integers(0, classes, samples), [0, 1])  # one class alone makes scikit-learn warn
    predictions = np.where(rng.random(samples + 2) < 0.5, labels, labels[rng.permutation(samples + 2)])
    got = balanced_accuracy(predictions, labels)
    assert got == pytest.approx(balanced_accuracy_score(labels, predictions))
    matrix = confusion_matrix(predictions, labels, classes)
    expected = sklearn_confusion(labels, predictions, labels=range(classes))
    assert matrix.tolist() == expected.tolist()


def test_a_score_holds_the_predictions_of_one_part() -> None:
    score = scoring.score(network(), FAMILY, DATA, "train")
    logits = Network(network())(torch.from_numpy(DATA.scaling.apply(DATA.x_train)))
    assert (score.predictions == logits.argmax(1).numpy()).mean() > 0.99
    assert score.accuracy == pytest.approx((score.predictions == DATA.y_train).mean())
    assert score.confusion.sum() == 400


def test_fitness_can_be_a_function_of_the_users() -> None:
    seen = []

    def margin(logits: Tensor, labels: Tensor) -> float:
        seen.append((logits.shape, labels.tolist()))
        return float(logits.gather(1, labels[:, None]).mean())

    outcome = trainer(function=margin, fitness="margin").run(Job(1, 1, 1, network()))
    assert outcome.fitness is not None
    assert seen == [((200, 3), DATA.y_test.tolist())]


# How it fails


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"optimiser": "SGD", "optimiser_arguments": {"lr": 1e30}}, "the loss became nan in training step 2"),
        ({"time_limit": 1e-9}, "took longer than the limit of 1e-09 s"),
    ],
)
def test_a_failed_network_has_a_reason_and_nothing_else(settings: dict[str, Any], reason: str) -> None:
    outcome = trainer(**settings).run(Job(1, 4, 1, network(), newborn=True))
    assert outcome.failed == reason
    assert (outcome.network, outcome.generation) == (1, 4)
    assert outcome.phenotype is None
    assert outcome.fitness is None
    assert outcome.fitness_before is None


def test_outputs_that_are_not_finite_fail_the_network() -> None:
    weights = network().weights
    huge = tuple(genes.replace(weight=genes.weight * np.float32(1e30)) for genes in weights)
    outcome = trainer().run(Job(1, 1, 1, type(network())(network().genome, huge), train=False))
    assert outcome.failed == "its outputs are not finite (NaN or infinity)"


def test_an_exception_fails_the_network_in_one_line() -> None:
    def broken(logits: Tensor, labels: Tensor) -> float:
        raise ValueError("no\nluck")

    assert trainer(function=broken).run(Job(1, 1, 1, network())).failed == "ValueError: no luck"
    wrong = draw_phenotype(Genome((3, 9, 9), (), 3), rng=np.random.default_rng(1))
    failed = trainer().run(Job(1, 1, 1, wrong)).failed
    assert failed is not None
    assert failed.startswith("RuntimeError: ")
    assert "\n" not in failed


def test_a_fitness_that_is_no_number_fails_the_network() -> None:
    failed = trainer(function=lambda logits, labels: math.nan).run(Job(1, 1, 1, network())).failed
    assert failed == "the fitness function accuracy gave nan"


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is not enforced elsewhere")
def test_running_out_of_memory_fails_the_network_and_not_the_process() -> None:
    script = """
        import resource
        from pathlib import Path
        from tests.evaluation.test_backprop import *
        ready = trainer()
        wide = network(1, ConvLayer(((3, 3),) * 6000, (1, 1)))
        ready.run(Job(1, 1, 1, network()))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 100_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(ready.run(Job(1, 1, 1, wide)).failed)
        print(ready.run(Job(1, 1, 1, network())).failed)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["ran out of memory", "None"]


def test_training_can_be_stopped_between_batches() -> None:
    calls = 0

    def fourth_time() -> bool:
        nonlocal calls
        calls += 1
        return calls == 4

    with pytest.raises(Stopped):
        trainer().run(Job(1, 1, 1, network()), should_stop=fourth_time)
    assert calls == 4


def test_every_batch_gives_a_sign_of_life() -> None:
    beats: list[int] = []
    trainer().run(Job(1, 1, 1, network()), heartbeat=lambda: beats.append(1))
    assert len(beats) >= math.ceil(200 / 32) + 1


# Whose settings


def test_the_callers_torch_settings_change_nothing_and_come_back() -> None:
    expected = trainer().run(Job(1, 1, 1, network()))
    before = torch.get_num_threads(), torch.get_default_dtype()
    try:
        torch.set_num_threads(2)
        torch.set_default_dtype(torch.float64)
        torch.set_float32_matmul_precision("medium")
        torch.set_flush_denormal(False)
        with torch.inference_mode(), torch.autocast("cpu"):
            outcome = trainer().run(Job(1, 1, 1, network()))
            assert torch.is_inference_mode_enabled()
            assert torch.is_autocast_enabled("cpu")
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() is torch.float64
        assert torch.get_float32_matmul_precision() == "medium"
        assert (torch.tensor(1e-310, dtype=torch.float64) * 1.0).item() > 0
        assert same(expected, outcome)
        trainer(time_limit=1e-9).run(Job(1, 1, 1, network()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before[0])
        torch.set_default_dtype(before[1])
        torch.set_float32_matmul_precision("highest")


def test_no_global_generator_is_drawn_from() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    ours = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    trainer().run(Job(1, 1, 1, network(), newborn=True))
    assert torch.equal(state, torch.get_rng_state())
    assert ours == np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002


# What is refused before a run


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimiser": "adadelta"}, "did you mean 'Adadelta'"),
        ({"optimiser": "Admw"}, "did you mean 'AdamW'"),
        ({"optimiser": "Optimizer"}, "no optimiser is called 'Optimizer'"),
        ({"optimiser": "lr_scheduler"}, "no optimiser is called 'lr_scheduler'"),
        # which torch has from 2.9 on
        ({"optimiser": "Muon", "optimiser_arguments": {}}, "only supports 2D parameters|is called 'Muon'"),
        ({"optimiser": "SparseAdam", "optimiser_arguments": {}}, "does not support dense gradients"),
        (
            {"optimiser": "SGD", "optimiser_arguments": {"momentum": 0.9, "nesterov": "yes"}},
            "nesterov is 'yes'; it must be true or false",
        ),
        ({"optimiser_arguments": {"lrr": 1.0}}, "Adadelta has no argument 'lrr'; did you mean 'lr'"),
        ({"optimiser_arguments": {"lr": -1.0}}, "Invalid learning rate: -1.0"),
        ({"optimiser_arguments": {"lr": "fast"}}, "Adadelta with lr='fast' cannot train a network"),
        ({"fitness": "acuracy"}, "did you mean 'accuracy'"),
        ({"device": "cuda:99"}, "cuda:99 is not there"),
    ],
)
def test_settings_that_cannot_train_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        check_training(TrainingConfig(**settings))
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("training.")


def test_a_registered_fitness_is_found_by_its_name() -> None:
    def top(logits: Tensor, labels: Tensor) -> float:
        return 1.0

    assert find_fitness("top", {"top": top}) is top
    with pytest.raises(ConfigError, match="did you mean 'top'"):
        find_fitness("topp", {"top": top})
    check_training(TrainingConfig(fitness="top"), fitness={"top": top})


@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.floats(0, 0.5),
    st.integers(0, 2**32 - 1),
)
def test_a_moved_image_is_the_image_seen_through_a_shifted_window(
    count: int, channels: int, spatial: list[int], shift: float, seed: int
) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (count, channels, *spatial), dtype=np.uint8)
    moves = draw_moves(count, spatial, shift, np.random.default_rng(seed))
    result = moved(torch.from_numpy(images), moves).numpy()
    most = [round(shift * size) for size in spatial]
    for image, seen in zip(images, result, strict=True):
        padded = np.pad(image, [(0, 0), *((by, by) for by in most)], mode="edge")
        windows = [
            padded[(slice(None), *(slice(a, a + n) for a, n in zip(corner, spatial, strict=True)))]
            for corner in itertools.product(*(range(2 * by + 1) for by in most))
        ]
        assert any((seen == window).all() for window in windows)


def test_half_of_the_images_move_evenly_in_both_directions() -> None:
    image = torch.zeros(8000, 1, 8, 8)
    image[:, :, 4, 4] = 1
    moves = draw_moves(8000, (8, 8), 0.125, np.random.default_rng(1))
    places = moved(image, moves).flatten(1).argmax(1)
    counts = torch.bincount(places, minlength=64)
    assert set(counts.nonzero().flatten().tolist()) == {8 * r + c for r in (3, 4, 5) for c in (3, 4, 5)}
    assert 4300 < counts[8 * 4 + 4] < 4600
    counts[8 * 4 + 4] = 0
    assert counts[counts > 0].min() > 350
    assert counts.max() < 550


def test_shifts_change_what_is_learned_and_repeat_exactly() -> None:
    data = load("digits")
    genome = Genome((1, 8, 8), (), 10)
    job = Job(1, 1, 1, draw_phenotype(genome, rng=np.random.default_rng(1)))
    outcomes = [
        Trainer(data, family_of(data), TrainingConfig(shift=shift), seed=1).run(job)
        for shift in (0.0, 0.125, 0.125)
    ]
    weights = [outcome.phenotype.weights[0].weight.tobytes() for outcome in outcomes if outcome.phenotype]
    assert len(weights) == 3
    assert weights[0] != weights[1] == weights[2]
