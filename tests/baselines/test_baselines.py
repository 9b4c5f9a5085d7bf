"""The harness of docs/results/default.md: runs are kept, resumed and put into tables; arms keep to rules."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import arms, baselines, by_hand, curves, evolved, naive, own_data, results_page, scenes
from benchmarks.ledger import Key, Ledger

import epicortex
from epicortex import engines
from epicortex.data.values import measure
from epicortex.engines import WorkerSetup
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily
from epicortex.run import assembly

FIGURES = {
    "test": 0.9,
    "validation": 0.91,
    "parameters": 1000,
    "multiplications": 20_000,
    "seconds": 30.0,
    "curve": [[5.0, 0.5], [30.0, 0.91]],
    "front": [{"parameters": 500, "multiplications": 9000, "validation": 0.8, "test": 0.79}],
}
KEPT = baselines.PAGE.with_suffix("") / results_page.KEPT
KEY = Key("digits", 0.5, 2, "ours", 1)


def _kept(path: Path) -> Ledger:
    """Two seeds of ours and of its control, one run broken off and one failed."""
    ledger = Ledger(path)
    for seed in (1, 2):
        for arm, test in (("ours", 0.95), ("founder", 0.93)):
            key = replace(KEY, arm=arm, seed=seed)
            number = ledger.start(key, load=0.5, commit="abc")
            ledger.end(number, key, "finished", {**FIGURES, "test": test + seed / 1000})
    ledger.start(replace(KEY, arm="cnn"), load=1.5, commit="abc")
    failed = replace(KEY, arm="lenet")
    ledger.end(ledger.start(failed, load=1.0, commit="abc"), failed, "failed", {"reason": "no | memory"})
    return ledger


def test_a_run_that_was_started_is_known_whatever_becomes_of_it(tmp_path: Path) -> None:
    runs = _kept(tmp_path / "runs.jsonl").runs()
    assert [run.ending for run in runs] == ["finished"] * 4 + ["broken off", "failed"]
    assert [run.number for run in runs] == [1, 2, 3, 4, 5, 6]


def test_a_line_that_was_cut_off_is_replaced_by_the_next(tmp_path: Path) -> None:
    ledger = _kept(tmp_path / "runs.jsonl")
    with ledger.path.open("a") as file:
        file.write('{"event": "sta')
    assert len(ledger.runs()) == 6
    assert ledger.start(KEY, load=0, commit="") == 7
    assert len(ledger.runs()) == 7


def test_a_run_that_was_done_again_is_replaced_and_still_listed(tmp_path: Path) -> None:
    ledger = _kept(tmp_path / "runs.jsonl")
    later = ledger.start(KEY, load=0.5, commit="def")
    assert ledger.runs()[0].ending == "finished"
    ledger.end(later, KEY, "finished", {**FIGURES, "test": 0.5})
    runs = ledger.runs()
    assert [run.ending for run in runs if run.key == KEY] == ["replaced", "finished"]
    again = ledger.finished(KEY)
    assert again is not None
    assert again.figures["test"] == 0.5
    assert "95.10 % (done again)" in results_page.every_run(runs)
    assert "95.10" not in results_page.accuracy([run for run in runs if run.ending == "finished"])


def test_runs_that_the_file_has_are_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.jsonl"
    before = _kept(path).path.read_bytes()
    options = [
        "digits",
        "--minutes",
        "0.5",
        "--seeds",
        "1",
        "2",
        "--arms",
        "founder",
        "ours",
        "--out",
        str(path),
    ]
    assert baselines.main(options) == 0
    assert path.read_bytes() == before
    printed = capsys.readouterr().out
    assert printed.count("done already") == 4
    assert "run 5 (digits-0.5min-cnn-1) was broken off" in printed
    assert printed.index("ours-1") < printed.index("founder-1")


def test_a_run_is_started_in_the_file_and_ends_in_it(tmp_path: Path) -> None:
    """The forest is an arm that takes a second; a control without its run of ours fails, and says so."""
    path = tmp_path / "runs.jsonl"
    options = ["digits", "--minutes", "0.1", "--cores", "1", "--seeds", "1", "--out", str(path)]
    assert baselines.main([*options, "--arms", "scratch", "forest"]) == 1
    failed, finished = Ledger(path).runs()
    assert failed.ending == "failed"
    assert "run that first" in failed.figures["reason"]
    assert finished.figures["test"] > 0.9
    assert {"at", "load", "speed", "commit", "epicortex", "torch"} <= finished.start.keys()


def test_tables_fill_their_regions_and_leave_the_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    names = ("accuracy", "paired", "plots", "front", "runs")
    regions = "\n".join(f"Before {name}.\n<!-- table {name} -->\nold\n<!-- end -->" for name in names)
    page.write_text(regions + "\nAfter.\n")
    file = _kept(tmp_path / "runs.jsonl").path
    assert baselines.main(["--tables", str(file), "--page", str(page)]) == 0
    text = page.read_text()
    assert "old" not in text
    assert all(f"Before {name}." in text for name in names)
    assert "95.15 % | 95.10, 95.20" in text
    assert "| digits, 0.5 minutes, 2 cores | founder | +2.00 | 0.00 | +2.00, +2.00 | 1.00 | 1.00 |" in text
    assert "failed: no \\| memory" in text
    assert "| broken off |" in text
    picture = (tmp_path / "page" / "digits-0.5min-2.svg").read_text()
    assert (tmp_path / "page" / results_page.KEPT).read_bytes() == file.read_bytes()
    assert picture.count(">ours<") == picture.count(">founder<") == 1
    assert baselines.main(["--tables", str(file), "--page", str(page)]) == 0
    assert page.read_text() == text
    assert (tmp_path / "page" / "digits-0.5min-2.svg").read_text() == picture


def test_the_page_of_results_has_every_table() -> None:
    text = baselines.PAGE.read_text("utf-8")
    for name in ("accuracy", "paired", "plots", "front", "runs"):
        assert text.count(f"<!-- table {name} -->") == 1
    assert text.count("<!-- end -->") == 5
    assert [arm for arm in arms.ARMS if f"`{arm}`" not in text] == []


def test_the_page_has_the_tables_of_the_runs_that_are_kept(tmp_path: Path) -> None:
    page = tmp_path / baselines.PAGE.name
    page.write_bytes(baselines.PAGE.read_bytes())
    assert baselines.main(["--tables", str(KEPT), "--page", str(page)]) == 0
    assert page.read_bytes() == baselines.PAGE.read_bytes()


def test_a_file_without_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert baselines.main(["--tables", str(tmp_path / "none.jsonl")]) == 2
    assert "has no runs" in capsys.readouterr().err


def test_the_mean_of_curves_is_taken_where_all_of_them_are() -> None:
    times, values = curves.mean_curve([[[0, 0.0], [10, 1.0]], [[5, 0.5], [20, 2.0]]])
    assert (times[0], times[-1]) == (5, 10)
    np.testing.assert_allclose(values, times / 10)


@pytest.mark.parametrize(
    ("arm", "shape", "parameters"),
    [
        ("cnn", (1, 28, 28), 421_738),
        ("cnn", (3, 32, 32), 113_962),
        ("lenet", (1, 28, 28), 61_706),
        ("lenet", (3, 32, 32), 62_006),
    ],
)
def test_networks_written_by_hand_have_the_size_they_are_known_for(
    arm: str, shape: tuple[int, ...], parameters: int
) -> None:
    model = by_hand.MODELS[arm](shape, 10)
    assert by_hand.count(model) == parameters
    assert model(torch.zeros(2, *shape)).shape == (2, 10)


def test_multiplications_are_those_of_every_kernel_at_every_position() -> None:
    model = by_hand.cnn((1, 28, 28), 10)
    expected = 9 * 32 * 28**2 + 9 * 32 * 64 * 14**2 + 7 * 7 * 64 * 128 + 128 * 10
    assert by_hand.multiplications(model, (1, 28, 28)) == expected


def by_a_clock(arm: str) -> dict[str, Any]:
    """A clock that goes on by a tenth of a second whenever it is looked at: on any machine the same."""
    ticks = itertools.count()
    digits = epicortex.load_data("digits")
    usual: dict[str, Any] = {"seed": 1, "seconds": 25, "began": 0.0, "cores": 1, "flips": False}
    return by_hand.train(arm, digits, clock=lambda: next(ticks) / 10, **usual)


def test_the_images_of_a_network_written_by_hand_may_be_changed_in_training() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(by_hand.MODELS, "cnn-changed", by_hand.lenet)
        changed = by_a_clock("cnn-changed")
    assert changed["test"] > 0.5
    assert changed["curve"] != by_a_clock("lenet")["curve"]


def test_a_network_written_by_hand_learns_within_its_time() -> None:
    found = by_a_clock("lenet")
    assert found["test"] > 0.8
    assert found["validation"] == max(value for _, value in found["curve"])
    assert 24 < found["seconds"] <= 25
    assert len(found["curve"]) > 20


def test_a_structure_gets_new_weights_and_stays_the_same() -> None:
    family = ResidualFamily(Problem((1, 8, 8), 10))
    before = family.founder(np.random.default_rng(1), max_parameters=2000)
    after = evolved.drawn(before.genome.to_dict(), seed=2)
    assert str(after.genome) == str(before.genome)
    assert family.similarity(before, after) == 0


@pytest.mark.parametrize("arm", evolved.SETTINGS)
def test_the_settings_of_every_arm_are_understood(arm: str) -> None:
    config = evolved.settings(evolved.SETTINGS[arm], seed=3, minutes=1, cores=2)
    assert config.evolution.minutes == 1
    assert config.training.workers == 2


def test_the_limit_of_small_networks_goes_before_that_of_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def figures(data: str, config: Any, **more: Any) -> dict[str, Any]:
        given.append(config)
        return {}

    monkeypatch.setattr(evolved, "figures", figures)
    for arm in ("ours", "small"):
        key = {"data": "cifar10", "minutes": 1, "cores": 2, "seed": 1, "folder": "x", "arm": arm}
        arms.run(key, began=0.0)
    assert [config.evolution.max_parameters for config in given] == [250_000, 10_000]


def _counted(arm: str, **changes: Any) -> epicortex.Result:
    """A short run of an arm without a clock."""
    settings = {
        "evolution.generations": 6,
        "evolution.minutes": None,
        "training.engine": "serial",
        "budget.steps": 3,
        "residual.start_parameters": 800,
        **evolved.SETTINGS[arm],
        **changes,
    }
    parts = naive.PARTS if arm == "naive" else None
    return epicortex.evolve("digits", epicortex.configure(changes=settings), parts=parts)


def test_uniform_networks_have_square_kernels_only() -> None:
    result = _counted("uniform")
    assert result.champion is not None
    shapes = {kernel for layer in result.champion.phenotype.genome.layers[:-1] for kernel in layer.kernels}
    assert shapes == {(3, 3)}


def test_the_naive_search_keeps_the_best_of_one_pool_and_polishes_it() -> None:
    result = _counted("naive", **{"budget.search": 0.6})
    sizes = [generation.networks for generation in result.history]
    assert sizes == [6, 6, 6, 2, 2, 2]
    assert {generation.species for generation in result.history} == {1}
    assert len({network.phenotype.genome for network in result.state.networks}) == 1


def test_the_naive_search_gives_all_the_same_work() -> None:
    config = epicortex.configure(
        changes={**naive.SETTINGS, "residual.start_cost": 20_000, "residual.start_parameters": 3000}
    )
    family = ResidualFamily.from_config(config, Problem((1, 8, 8), 10))
    evolution = epicortex.Evolution(
        config, family, own=epicortex.Strategies.from_config(config, _named(naive.PARTS))
    )
    state = evolution.start()
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    networks = evolution.planned(state, plan).networks
    work = [network.pace * family.cost(network.phenotype) for network in networks]
    np.testing.assert_allclose(work, work[0])
    assert len({family.cost(network.phenotype) for network in networks}) > 1


def _named(parts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each part under the name that the preset gives its kind."""
    usual = epicortex.configure().evolution
    return {kind: {getattr(usual, kind): part} for kind, part in parts.items()}


def test_optuna_proposes_networks_that_fit_the_limits_of_ours() -> None:
    from benchmarks import tpe

    space = tpe.Space(Problem((3, 32, 32), 10), cost=2_000_000, parameters=50_000)
    sizes = []
    for size in (0.2, 0.5, 1.0):
        genome = space.genome({**space.middle, "size": size, "rate": 1.5}, seed=1)
        assert genome.cost <= size * 2_000_000
        assert genome.parameters <= size * 50_000
        assert genome.recipe.rate == 1.5
        sizes.append(genome.cost)
    assert sizes == sorted(set(sizes))
    narrow = space.genome({**space.middle, "strides": "one fewer", "blocks0": 0, "kernel_mix": 0.5}, seed=1)
    assert [len(stage.blocks) for stage in narrow.stages] == [0, 1]
    assert {(3, 3), (1, 3), (3, 1)} == set(narrow.stages[1].kernels)


def test_optuna_trains_what_it_proposes_and_the_best_is_taken() -> None:
    optuna = pytest.importorskip("optuna")
    from benchmarks import tpe

    changes = {"training.flip": False, "training.engine": "serial"}
    config = evolved.settings(changes, seed=1, minutes=1, cores=1)
    subject, own = assembly.subject("digits", config), assembly.Extensions()
    family = assembly.make_family(config, subject, own)
    setup = WorkerSetup(
        recipe=assembly.make_recipe(config, family, subject, own), family=family, data=subject.data
    )
    with engines.create("serial", setup, config) as engine:
        space = tpe.Space(subject.problem, cost=50_000, parameters=2000)
        trials = tpe.Trials(config, space, engine, began=0.0, end=math.inf, steps=60)
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
        study.enqueue_trial(space.middle)
        study.optimize(trials.objective, n_trials=3)
    first = study.trials[0]
    assert first.params == space.middle
    assert list(first.intermediate_values) == [0, 1, 2, 3, 4]
    assert first.intermediate_values[4] < first.intermediate_values[0]
    assert tpe.best(study.trials) == study.best_params
    accuracies = [accuracy for _, accuracy in trials.curve]
    assert len(accuracies) == 15
    assert accuracies == sorted(accuracies)


def test_waveforms_are_of_three_kinds_that_noise_does_not_hide() -> None:
    x, y = own_data.waveforms(600, seed=1)
    assert x.shape == (600, 1, 128)
    assert np.bincount(y).tolist() == [200, 200, 200]
    # the deviation of sine, square and sawtooth, with noise of deviation one half
    for kind, power in enumerate((0.5, 1.0, 1 / 3)):
        np.testing.assert_allclose(x[y == kind].var(), power + 0.25, rtol=0.05)
    assert (own_data.waveforms(600, seed=1)[0] == x).all()


def test_photographs_become_a_folder_that_is_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
    x, y = rng.integers(256, size=(60, 3, 32, 32), dtype=np.uint8), np.arange(60) % 10
    data = epicortex.DataSet(
        name="cifar10", x_train=x, y_train=y, x_test=x, y_test=y, classes=classes, scaling=measure(x, 255.0)
    )
    folder = own_data.make_photographs(tmp_path / "photographs", data, each=4)
    read = epicortex.load_data(folder)
    assert read.classes == own_data.PHOTOGRAPHED
    assert (len(read.y_train), len(read.y_test)) == (20, 30)
    assert {image.tobytes() for image in read.x_test} == {
        x[row].tobytes() for row in range(60) if y[row] in (0, 1, 2, 3, 8)
    }
    others = own_data.make_photographs(tmp_path / "others", data, each=2, classes=("frog", "deer"))
    assert epicortex.load_data(others).classes == ("deer", "frog")
    large = scenes.make_scenes(tmp_path / "scenes", data, train=3, test=2)
    read = epicortex.load_data(large)
    assert read.input_shape == (3, 224, 224)
    assert (len(read.y_train), len(read.y_test)) == (15, 10)


def test_ours_is_compared_with_the_better_of_the_others() -> None:
    scores = {"ours": [0.9, 0.9], "logistic": [0.95, 0.97], "forest": [0.8, 0.9]}
    assert own_data.compared(scores) == ("90.0 ± 0.0 | 96.0 ± 1.0 | 85.0 ± 5.0", False)
