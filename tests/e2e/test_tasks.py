"""Tasks with a reward, all the way: same bits on engines and after a kill, and no percents."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import epicortex
from epicortex.errors import DataError
from tests.tasks import reach

PLUGIN = Path(reach.__file__)
SMALL = ("--evolution.initial-networks", "12", "--evolution.max-networks", "12", "--quiet", "--workers", "2")
FILES = ("networks.jsonl", "champion/genome.json", "champion/model.safetensors", "champion/card.md")


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "epicortex", *map(str, words)]


def run(*words: str | Path) -> str:
    return subprocess.run(command(*words), check=True, capture_output=True, text=True, timeout=240).stdout


def refusal(*words: str | Path) -> str:
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    return line


def evolve(folder: Path, generations: int, engine: str) -> dict[str, bytes]:
    limits = ("--generations", str(generations), "--target", "none", "--engine", engine)
    run("evolve", "double-pole", "--out", folder, *limits, *SMALL)
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task") / "run"
    evolve(folder, 4, "serial")
    return folder


def test_both_engines_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    assert evolve(tmp_path / "run", 4, "processes") == {
        name: (finished / name).read_bytes() for name in FILES
    }


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    folder, history = tmp_path / "killed", tmp_path / "killed" / "history.jsonl"
    words: list[str | Path] = [
        "evolve",
        "double-pole",
        "--out",
        folder,
        "--generations",
        "100000",
        "--target",
        "none",
        *SMALL,
    ]
    with subprocess.Popen(command(*words), stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 200
        while not (history.exists() and history.read_bytes().count(b"\n") >= 2):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    longer = history.read_bytes().count(b"\n") + 2
    run("resume", folder, "--generations", str(longer), "--quiet")
    found = {name: (folder / name).read_bytes() for name in FILES}
    assert found == evolve(tmp_path / "whole", longer, "serial")


def test_show_and_report_speak_of_rewards(finished: Path, tmp_path: Path) -> None:
    text = run("show", finished)
    assert "fitness   reward" in text
    assert "%" not in text
    story = json.loads(run("show", finished, "--json"))
    assert story["champion"]["family"] == "unstructured"
    page = tmp_path / "report.html"
    run("report", finished, "--out", page)
    html = page.read_text()
    assert "networks for the task double-pole evolved" in html
    assert "The network as a graph" in html
    weights = len(story["champion"]["genome"]["inward"][0])
    assert html.count("<title>from ") >= weights


def test_xor_ends_when_it_is_solved(tmp_path: Path) -> None:
    text = run("evolve", "xor", "--out", tmp_path / "xor", "--engine", "serial", "--seed", "3")
    assert "ended     the target of 4 is reached" in text
    network = epicortex.load_champion(tmp_path / "xor").network()
    outputs = network([[0, 0], [0, 1], [1, 0], [1, 1]])[:, 0]
    assert max(outputs[0], outputs[3]) <= 0.4
    assert min(outputs[1], outputs[2]) >= 0.6


def test_a_task_of_ones_own_runs_in_workers_and_resumes(tmp_path: Path) -> None:
    limits = ("--generations", "2", "--target", "none")
    run("evolve", "sum", "--plugin", PLUGIN, "--out", tmp_path / "run", *limits, *SMALL)
    run("resume", tmp_path / "run", "--plugin", PLUGIN, "--generations", "4", "--quiet")
    parts = {"task": {"sum": reach.Sum}}
    changes = {
        "evolution.generations": 4,
        "evolution.initial_networks": 12,
        "evolution.max_networks": 12,
        "training.engine": "serial",
    }
    result = epicortex.evolve("sum", epicortex.configure("task", changes), parts=parts)
    assert result.champion is not None
    assert result.champion.facts.fitness == epicortex.load_champion(tmp_path / "run").facts.fitness
    assert result.champion.facts.classes == ("half of the sum",)
    with pytest.raises(DataError):
        epicortex.resume(tmp_path / "run", {"evolution.generations": 5})


def test_workers_of_such_runs_do_without_torch(tmp_path: Path) -> None:
    limits = ("--generations", "1")
    run("evolve", "torchless", "--plugin", PLUGIN, "--out", tmp_path / "run", *limits, *SMALL)
    assert epicortex.load_champion(tmp_path / "run").facts.fitness == 1.0


def test_layered_networks_balance_poles_too(tmp_path: Path) -> None:
    words = ("--family", "layered", "--generations", "1", "--engine", "serial")
    run("evolve", "pole", "--out", tmp_path / "run", *words, *SMALL)
    champion = epicortex.load_champion(tmp_path / "run")
    assert champion.family.name == "layered"
    assert champion.facts.fitness >= 5


def test_what_does_not_go_together_is_refused_in_one_line(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "run")
    assert "a task takes the evaluator episodes" in refusal("evolve", "xor", "--preset", "paper", *out)
    assert "episodes needs a task" in refusal("evolve", "digits", "--evaluator", "episodes", *out)
    line = refusal("evolve", "digits", "--preset", "paper", "--family", "unstructured", *out)
    assert "backprop cannot train networks of the family unstructured" in line
    assert "(--target) is 97" in refusal("evolve", "digits", "--target", "97", *out)
