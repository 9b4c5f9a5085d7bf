"""`compare` as the real command, on runs whose figures are recomputed from their files."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from epicortex.pages.units import Unit
from epicortex.paper.comparison import QUANTITIES, Compared
from epicortex.run.record import load_champion
from tests.cli.conftest import Here
from tests.paper.conftest import experiment
from tests.paper.world import SMALL

__all__ = ["experiment"]  # a fixture

FIELDS = {
    "highest fitness": "highest_fitness",
    "average fitness": "average_fitness",
    "offspring fitness": "offspring_fitness",
    "mean parameters": "mean_parameters",
}


@pytest.fixture
def modes(experiment: Path) -> tuple[Path, Path]:
    return experiment / "digits" / "speciation-on", experiment / "digits" / "speciation-off"


def last(folder: Path) -> list[dict[str, Any]]:
    lines = [(folder / f"seed-{seed}" / "history.jsonl").read_text().splitlines()[-1] for seed in (1, 2)]
    return [json.loads(line) for line in lines]


def test_every_figure_is_that_of_the_files(modes: tuple[Path, Path], here: Here) -> None:
    on, off = modes
    found = json.loads(here("compare", str(on), "--with", str(off), "--json"))
    assert found["a"] == [str(on / "seed-1"), str(on / "seed-2")]
    measures = {one["name"]: one for one in found["measures"]}
    for name, field in FIELDS.items():
        values = [[line[field] for line in last(folder)] for folder in modes]
        assert measures[name]["values"] == {"a": values[0], "b": values[1]}
        difference = measures[name]["difference"]
        assert difference["difference"] == pytest.approx(fmean(values[0]) - fmean(values[1]))
        wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(*values))
        assert (difference["u"], difference["a"]) == (wins, wins / 4)
        assert difference["p"] >= 1 / 3 - 1e-9
    champions = [[load_champion(folder / f"seed-{seed}") for seed in (1, 2)] for folder in modes]
    assert measures["test fitness"]["values"]["a"] == [one.facts.fitness for one in champions[0]]
    assert measures["champion's parameters"]["values"]["b"] == [
        one.phenotype.genome.parameters for one in champions[1]
    ]


def test_the_other_set_may_be_named_bit_by_bit(modes: tuple[Path, Path], here: Here) -> None:
    on, off = modes
    apart = ("--with", str(off / "seed-1"), "--with", str(off / "seed-2"))
    found = json.loads(here("compare", str(on), *apart, "--json"))
    assert found["b"] == [str(off / "seed-1"), str(off / "seed-2")]


def test_it_says_what_cannot_be_concluded_and_in_what_the_sets_differ(
    modes: tuple[Path, Path], here: Here, tmp_path: Path
) -> None:
    on, off = modes
    said = " ".join(here("compare", str(on), "--with", str(off)).split())
    assert "With 2 and 2 runs no p below 0.33 can be reached" in said
    assert 'A and B differ in: evolution.speciation ("key", "none").' in said
    assert "a bootstrap interval is too narrow" in said
    assert said.endswith("written comparison.html")
    assert (tmp_path / "comparison.html").read_text().count('class="canvas"') == 2
    single = here("compare", str(on / "seed-1"), "--with", str(off / "seed-1"))
    assert "A single run has no deviation" in single


def test_mixed_sets_and_runs_done_twice_are_pointed_out(modes: tuple[Path, Path], here: Here) -> None:
    on, off = modes
    mixed = " ".join(
        here("compare", str(on / "seed-1"), str(off / "seed-1"), "--with", str(off / "seed-2")).split()
    )
    assert "The runs of A differ in more than their seeds: evolution.speciation." in mixed
    again = " ".join(here("compare", str(on / "seed-1"), "--with", str(on / "seed-2")).split())
    assert "A and B have the same settings." in again
    assert "done twice" not in again


def test_a_run_counts_once_by_whatever_path_and_its_repetition_is_pointed_out(
    modes: tuple[Path, Path], here: Here, tmp_path: Path
) -> None:
    on, off = modes
    detour = on.parent / "speciation-off" / ".." / "speciation-on"
    shutil.copytree(on / "seed-1", tmp_path / "copy")
    sets = (str(on), str(detour), str(tmp_path / "copy"), "--with", str(off))
    found = json.loads(here("compare", *sets, "--json"))
    assert found["a"] == [str(on / "seed-1"), str(on / "seed-2")]
    said = here("compare", str(on), "--with", str(tmp_path / "copy"), code=2)
    assert "copy is in both sets" in said
    repeated = tmp_path / "repeated"
    here("evolve", "digits", "--preset", "paper", "--out", str(repeated), "--quiet", *SMALL)
    again = " ".join(here("compare", str(on / "seed-1"), "--with", str(repeated)).split())
    assert "they are the same run done twice" in again


def test_a_fitness_of_another_kind_is_not_written_in_percent() -> None:
    own = Compared(QUANTITIES[0], ([3.25], [3.0]), None, None, Unit.of("per_millisecond"))
    assert (own.text(3.25), own.change(0.25)) == ("3.25", "+0.25")


def test_the_plots_can_be_had_alone(modes: tuple[Path, Path], here: Here, tmp_path: Path) -> None:
    here("compare", str(modes[0]), "--with", str(modes[1]), "--out", "plot.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot-parameters.svg", "plot.svg"]
    # Four measures of fitness of two runs and two runs, each a dot.
    assert (tmp_path / "plot.svg").read_text().count("<circle") == 16


def test_what_cannot_be_compared_is_refused_in_one_line(
    modes: tuple[Path, Path], here: Here, tmp_path: Path
) -> None:
    on = str(modes[0])
    for args, part in (
        (("compare",), "two sets of runs are needed"),
        (("compare", on), "two sets of runs are needed"),
        (("compare", on, "--with", on), "is in both sets"),
        (("compare", on, "--with", "nowhere"), "nowhere is not a run folder"),
        (("compare", on, "--with", str(tmp_path)), "there is none in it"),
        (("compare", on, "--with", str(modes[1]), "--out", "x.png"), "must end in .html or .svg"),
    ):
        said = here(*args, code=2)
        assert part in said
        assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
