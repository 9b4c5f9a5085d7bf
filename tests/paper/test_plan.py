"""Which runs there are, in which order, where they are kept, and the figures they are held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicortex.config import changed
from epicortex.paper.plan import Experiment, PlannedRun, found
from epicortex.paper.published import DATA, MEASURES, published
from tests.paper.world import plan

#: The rows of the paper's Table I, as they stand there.
PAPER = """
mnist on 98.32 98.13 0.15 97.14 96.8 0.4 97.28 95.6 1.8
mnist off 98.14 97.98 0.13 95.31 93.7 1.1 82.98 72.5 10.7
svhn on 82.84 79.86 2.06 76.9 70.2 7.5 77.25 66.5 8.0
svhn off 81.20 80.22 0.89 70.62 66.5 3.1 55.53 44.4 7.4
fashion-mnist on 89.49 88.54 0.70 87.89 85.3 1.4 88.18 82.0 4.3
fashion-mnist off 88.88 88.44 0.36 85.53 83.3 1.1 83.61 64.9 7.8
cifar10 on 55.52 51.35 3.44 46.45 43.9 4.8 45.94 42.7 5.1
cifar10 off 54.4 52.44 0.85 43.87 41.9 1.1 35.8 32.4 1.8
"""


def test_the_published_figures_are_the_papers() -> None:
    rows = [line.split() for line in PAPER.strip().splitlines()]
    assert len(rows) == 2 * len(DATA)
    for data, mode, *cells in rows:
        numbers = [float(cell) for cell in cells]
        for place, measure in enumerate(MEASURES):
            cell = published(data, mode == "on", measure)
            assert cell is not None
            assert [cell.best, cell.mean, cell.deviation] == numbers[3 * place : 3 * place + 3]
    assert published("digits", True, "highest_fitness") is None


def test_the_bands_are_those_that_a_reproduction_is_measured_by() -> None:
    lows = [published("mnist", mode, measure) for mode in (True, False) for measure in MEASURES]
    assert [round(cell.low, 2) for cell in lows if cell] == [97.83, 96.0, 92.0, 97.72, 91.5, 51.1]


def test_seeds_come_first_then_data_then_modes_then_controls() -> None:
    runs = [str(run.folder) for run in plan(runs=2, data=("mnist", "svhn"), controls=("founders",)).planned()]
    assert runs[:5] == [
        "mnist/speciation-on/seed-1",
        "mnist/speciation-on/founders/seed-1",
        "mnist/speciation-off/seed-1",
        "mnist/speciation-off/founders/seed-1",
        "svhn/speciation-on/seed-1",
    ]
    assert runs[8] == "mnist/speciation-on/seed-2"
    assert len(runs) == len(set(runs)) == 16


def test_runs_differ_in_data_mode_and_seed_only() -> None:
    planned = plan()
    config = planned.configured(PlannedRun(Experiment("svhn", False), 7))
    assert (config.data.source, config.evolution.speciation, config.evolution.seed) == ("svhn", "none", 7)
    back = changed(
        config, evolution={"speciation": "key", "seed": 1}, data={"source": planned.config.data.source}
    )
    assert back == planned.config


def test_all_runs_below_a_folder_are_found_and_nothing_else(tmp_path: Path) -> None:
    for name in (
        *("svhn/speciation-off/seed-1", "mnist/speciation-on/seed-10", "mnist/speciation-on/seed-2"),
        *("mnist/speciation-on/random/seed-1", "digits/speciation-on/seed-1"),
        *("mnist/speciation-on/seed-x", "mnist/speciation-maybe/seed-1", "mnist/speciation-on/other/seed-1"),
    ):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.toml").touch()
    (tmp_path / "mnist" / "speciation-on" / "seed-3").mkdir()
    assert [str(run.folder) for run in found(tmp_path)] == [
        "mnist/speciation-on/seed-2",
        "mnist/speciation-on/seed-10",
        "mnist/speciation-on/random/seed-1",
        "svhn/speciation-off/seed-1",
        "digits/speciation-on/seed-1",
    ]
    assert list(found(tmp_path / "nowhere")) == []


@pytest.mark.parametrize("run", list(plan(runs=3, controls=("champion",)).planned()))
def test_a_controls_original_is_the_plain_run_of_the_same_seed(run: PlannedRun) -> None:
    assert run.original.experiment.control is None
    assert (run.original.seed, run.original.experiment.data) == (run.seed, run.experiment.data)
