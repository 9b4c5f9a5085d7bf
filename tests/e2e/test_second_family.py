"""A family of one's own, from a plug-in file, with an evaluator that is a plain function: all the way.

Beads have no layers, no weights and no torch module. What holds for layered networks holds for them: the same
bits on every engine and after a kill, and every command reads the run.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import epicortex
from epicortex.errors import ConfigError, StorageError
from epicortex.families.family import Problem
from tests import beads
from tests.beads import BeadFamily, brightness

PLUGIN = Path(beads.__file__)
SMALL = {
    "evolution.initial_networks": 6,
    "evolution.max_networks": 10,
    "evolution.initial_species": 2,
    "evolution.max_species": 4,
}
OPTIONS = [
    *("--preset", "paper", "--plugin", str(PLUGIN), "--family", "beads"),
    *("--evaluator", "brightness", "--quiet", "--workers", "2"),
    *(word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))),
]


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "epicortex", *map(str, words)]


def run(*words: str | Path) -> str:
    return subprocess.run(command(*words), check=True, capture_output=True, text=True, timeout=120).stdout


def evolve(folder: Path, generations: int, engine: str) -> None:
    limits = ["--generations", str(generations), "--engine", engine]
    run("evolve", "digits", "--out", folder, *limits, *OPTIONS)


def contents(folder: Path) -> dict[str, bytes]:
    """What "same bytes" means, but for the history, whose seconds differ."""
    files = ["networks.jsonl", "champion/genome.json", "champion/model.safetensors", "champion/card.md"]
    return {name: (folder / name).read_bytes() for name in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beads") / "run"
    evolve(folder, 12, "serial")
    return folder


def test_both_engines_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    evolve(tmp_path / "run", 12, "processes")
    assert contents(tmp_path / "run") == contents(finished)


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_killed_run_resumes_to_the_same_bytes(engine: str, tmp_path: Path) -> None:
    folder, history = tmp_path / "killed", tmp_path / "killed" / "history.jsonl"
    limits = ["--generations", "100000", "--engine", engine]
    words = ["evolve", "digits", "--out", str(folder), *limits, *OPTIONS]
    with subprocess.Popen(command(*words), stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (history.exists() and history.read_bytes().count(b"\n") >= 3):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    longer = history.read_bytes().count(b"\n") + 4
    run("resume", folder, "--generations", str(longer), "--quiet", "--plugin", PLUGIN)
    evolve(tmp_path / "whole", longer, "serial")
    assert contents(folder) == contents(tmp_path / "whole")


def test_show_and_report_read_it(finished: Path, tmp_path: Path) -> None:
    text = run("show", finished, "--plugin", PLUGIN)
    assert "all 12 generations are done" in text
    assert "bead" in text
    story = json.loads(run("show", finished, "--json", "--plugin", PLUGIN))
    assert story["champion"]["family"] == "beads"
    assert set(story["champion"]["genome"]["colours"]) <= set("oab")
    page = tmp_path / "report.html"
    run("report", finished, "--out", page, "--plugin", PLUGIN)
    html = page.read_text()
    assert "12 generations" in html
    assert "bead" in html


def test_without_the_plugin_its_files_are_refused_in_one_line(finished: Path) -> None:
    run = str(finished)
    for words in (["show", run], ["report", run], ["resume", run, "--generations", "13"]):
        done = subprocess.run(command(*words), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert "no family is called 'beads'" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_in_python_parts_are_handed_over_and_a_problem_needs_no_data(tmp_path: Path) -> None:
    config = epicortex.configure(
        "paper", {**SMALL, "evolution.generations": 5, "training.engine": "serial", "family": "beads"}
    )
    parts = {"family": {"beads": BeadFamily}, "evaluator": brightness}
    result = epicortex.evolve(Problem((1,), 1), config, parts=parts, out=tmp_path / "run")
    assert result.champion is not None
    assert result.champion.family.name == "beads"
    assert result.history[-1].highest_fitness == max(line.highest_fitness or 0 for line in result.history)
    longer = epicortex.resume(
        tmp_path / "run", {"evolution.generations": 8}, data=Problem((1,), 1), parts=parts
    )
    assert len(longer.history) == 8
    with pytest.raises(StorageError, match="no family is called 'beads'"):
        epicortex.load_champion(tmp_path / "run")
    with pytest.raises(ConfigError, match="did you mean 'family'"):
        epicortex.evolve(Problem((1,), 1), config, parts={"familly": BeadFamily})
