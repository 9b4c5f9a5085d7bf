"""`reproduce` as the real command: what it refuses, says and writes, and how it is stopped."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Here, words
from tests.cli.test_evolve import same_bytes, wait_for

SMALL = (
    *("--engine", "serial", "--evolution.initial-networks", "5", "--evolution.max-networks", "7"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "3"),
)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("digts", ["no built-in data set 'digts'", "mnist"]),
        ("digits --runs 0", ["--runs is '0'", "from 1 to 1000"]),
        ("digits --runs many", ["--runs is 'many'"]),
        ("digits --speciation maybe", ["--speciation is 'maybe'", "on, off or both"]),
        ("digits --controls fonders", ["no control 'fonders'", "did you mean founders?"]),
        ("digits --seed 3", ["no option '--seed'"]),
        ("digits --evolution.seed 3", ["evolution.seed is set by the experiment", "--runs"]),
        ("digits --evolution.speciation false", ["use --speciation"]),
        ("digits --evolution.minutes 3", ["cannot be repeated"]),
        ("digits --evolution.target 0.9", ["evolution.target is 0.9", "as many generations"]),
        ("digits --evolution.plateau 5", ["evolution.plateau is 5", "as many generations"]),
        ("digits --evolution.trainings 9", ["evolution.trainings is 9", "the trainings it took"]),
        ("digts --tables", ["no built-in data set 'digts'"]),
        ("digits --generations 0", ["evolution.generations (--generations) is 0"]),
        ("digits --preset papr", ["did you mean paper?"]),
        ("mnist --data-dir /nowhere", ["mnist is not in /nowhere", "epicortex data get mnist"]),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    line: str, parts: list[str], here: Here, tmp_path: Path
) -> None:
    said = here("reproduce", *line.split(), code=2)
    assert said.count("\n") == 1
    for part in parts:
        assert part in said
    assert list(tmp_path.iterdir()) == []


def test_a_preset_that_would_end_runs_early_is_refused_too(here: Here, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('preset = "paper"\n[evolution]\nminutes = 3.0\n')
    assert "evolution.minutes is 3.0" in here("reproduce", "digits", "--preset", "mine.toml", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_without_speciation_limits_on_species_do_not_matter(here: Here) -> None:
    options = (
        "--speciation",
        "off",
        "--runs",
        "1",
        "--engine",
        "serial",
        "--evolution.initial-networks",
        "4",
    )
    assert "digits/speciation-off/seed-1  new" in here("reproduce", "digits", *options, "--dry-run")
    assert "digits/speciation-on/seed-1   new" in here("reproduce", "digits", *options[2:], "--dry-run")


def test_a_dry_run_lists_the_runs_measures_and_writes_nothing(here: Here, tmp_path: Path) -> None:
    options = ("--runs", "2", "--controls", "mutation,founders", *SMALL, "--generations", "3", "--dry-run")
    said = here("reproduce", "digits", "--speciation", "on", *options).splitlines()
    assert re.fullmatch(r"digits, speciation: 5 founders trained in .*", said[0])
    assert [line.split()[:2] for line in said[1:7]] == [
        ["digits/speciation-on/seed-1", "new"],
        ["digits/speciation-on/founders/seed-1", "new"],
        ["digits/speciation-on/mutation/seed-1", "new"],
        ["digits/speciation-on/seed-2", "new"],
        ["digits/speciation-on/founders/seed-2", "new"],
        ["digits/speciation-on/mutation/seed-2", "new"],
    ]
    # 5, 7 and 7 networks in three generations.
    assert all(re.search(r"  19 trainings, about [\d.]+ s$", line) for line in said[1:7])
    assert re.fullmatch(r"6 runs, 114 trainings to do, about [\d.]+ s", said[7])
    assert list(tmp_path.iterdir()) == []


def test_progress_is_over_all_runs_and_the_results_are_named(here: Here, tmp_path: Path) -> None:
    said = here("reproduce", "digits", "--runs", "1", *SMALL, "--generations", "2")
    lines = said.splitlines()
    assert lines[0] == "run 1 of 2: reproduction/digits/speciation-on/seed-1"
    assert re.search(r"generation 1/2 .* run 1/2, [\d.]+ s left in all$", lines[1])
    assert re.match(r"digits/speciation-on/seed-1: champion \d+\.\d\d %, [\d,]+ parameters", lines[3])
    assert lines[4] == "run 2 of 2: reproduction/digits/speciation-off/seed-1"
    assert "digits, no speciation: 1 run, highest fitness" in said
    assert lines[-1].startswith("results   reproduction/page.html")
    for name in ("page.html", "table.md", "table.csv", "figures/fitness-digits-speciation-on.svg"):
        assert (tmp_path / "reproduction" / name).stat().st_size > 500
    again = here("reproduce", "digits", "--runs", "1", *SMALL, "--generations", "2")
    assert "generation" not in again.splitlines()[0]
    assert "Complete: 2 runs, all finished." in again


def test_tables_can_be_written_without_running_anything(here: Here, tmp_path: Path) -> None:
    options = ("digits", "--runs", "1", *SMALL, "--generations", "2")
    here("reproduce", *options, "--speciation", "on", "--quiet")
    written = tmp_path / "reproduction" / "table.csv"
    written.unlink()
    said = here("reproduce", *options, "--tables")
    assert "Incomplete: 1 run finished, 1 not begun." in said
    assert len(written.read_text().splitlines()) == 1 + 2 * 3
    assert not (tmp_path / "reproduction" / "digits" / "speciation-off").exists()


def test_the_runs_are_ordinary_runs(here: Here, tmp_path: Path) -> None:
    here("reproduce", "digits", "--runs", "1", "--speciation", "on", *SMALL, "--generations", "1", "--quiet")
    run = "reproduction/digits/speciation-on/seed-1"
    assert "all 1 generations are done" in here("show", run)
    assert here("report", run).strip() == f"{run}/report.html"
    assert "all 1 generations are done" in here("resume", run)
    assert 'command = "epicortex reproduce digits' in (tmp_path / run / "config.toml").read_text()


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(here: Here, tmp_path: Path) -> None:
    args = ("reproduce", "digits", "--runs", "1", *SMALL, "--generations", "12", "--controls", "founders")
    whole, broken = ("--out", "whole"), ("--out", "broken")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words(*args, *broken), cwd=tmp_path, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            first = tmp_path / "broken" / "digits" / "speciation-on" / "seed-1" / "history.jsonl"
            wait_for(first, 3, process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert out.splitlines()[-1] == "stopped; the same command goes on"
    assert err == "epicortex: stopping after a checkpoint; Ctrl-C again ends at once\n"
    table = (tmp_path / "broken" / "table.md").read_text()
    assert re.search(r"Incomplete: \d runs? finished", table)
    said = here(*args, *broken)
    assert "Complete: 4 runs, all finished." in said
    here(*args, *whole, "--quiet")
    for path in (tmp_path / "whole").rglob("config.toml"):
        folder = path.parent.relative_to(tmp_path / "whole")
        same_bytes(tmp_path / "broken" / folder, tmp_path / "whole" / folder)
    figures = [(tmp_path / name / "table.csv").read_text() for name in ("whole", "broken")]
    assert figures[0] == figures[1]


def test_a_run_that_cannot_go_on_is_said_in_one_line_and_by_the_exit_code(here: Here, tmp_path: Path) -> None:
    options = (*SMALL, "--generations", "1", "--training.time-limit", "1e-9", "--speciation", "on")
    said = here("reproduce", "digits", "--runs", "1", *options, code=4)
    assert said.count("\n") == 1
    assert "digits/speciation-on/seed-1: all 5 networks of generation 1 failed" in said
    assert "not finished: 0 of 1 generations" in (tmp_path / "reproduction" / "table.md").read_text()
