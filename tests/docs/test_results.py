"""The published tables and plots are what the commands make of the runs kept beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from epicortex.cli import main

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
COMMANDS = {
    "full": ("--runs", "2"),
    "native": ("--runs", "3"),
    "mnist-published": (
        *("mnist", "--runs", "1"),
        *("--preset", str(RESULTS / "mnist-published" / "settings.toml")),
    ),
}
#: Not committed, and drawn by docs/pictures.
OTHER = ("page.html", "settings.toml", "readings-speciation-on.svg", "readings-speciation-off.svg")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_published_results_are_those_of_the_runs_that_are_kept(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(RESULTS / name / "runs.jsonl", tmp_path)
    assert main(["reproduce", *COMMANDS[name], "--tables", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    made, there = (
        {path.relative_to(place): path.read_bytes() for path in place.rglob("*.*") if path.name not in OTHER}
        for place in (tmp_path, RESULTS / name)
    )
    assert made.keys() == there.keys()
    assert [file for file in made if made[file] != there[file]] == []


def test_every_folder_of_results_is_looked_at_or_has_no_runs_kept() -> None:
    assert {path.parent.name for path in RESULTS.glob("*/runs.jsonl")} == set(COMMANDS)
