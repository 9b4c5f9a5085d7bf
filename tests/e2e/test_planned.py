"""The default search with minutes: repeated bit for bit from its plans, killed, given more, exported from."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import epicortex
from epicortex.champion import front
from tests.e2e.test_residual import command, contents, run

MINUTES = 0.2
#: More classes than a run needs stay alive, so that there is a smaller model at the end.
OPTIONS = ("--culling.classes", "false", "--quiet")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planned") / "run"
    run("evolve", "digits", "--out", folder, "--minutes", str(MINUTES), "--workers", "2", *OPTIONS)
    return folder


def plans(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "plan.jsonl").read_text("utf-8").splitlines()]


def test_a_timed_run_searches_and_polishes_and_its_rate_falls_to_zero(finished: Path) -> None:
    phases = [plan["phase"] for plan in plans(finished)]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"search", "polish"}
    assert plans(finished)[-1]["rates"] == [0.0, 0.0]
    figures = json.loads(run("show", finished, "--json"))
    assert figures["champion"]["test_accuracy"] > 0.5
    for member in figures["front"]:
        low, high = member["test_interval"]
        assert low <= member["test_accuracy"] <= high


def test_a_repeated_run_that_is_killed_has_the_same_bytes_whatever_its_workers(
    finished: Path, tmp_path: Path
) -> None:
    folder, history = tmp_path / "again", tmp_path / "again" / "history.jsonl"
    words = command(
        "evolve",
        "digits",
        "--plan",
        finished,
        "--out",
        folder,
        "--workers",
        "1",
        *OPTIONS,
    )
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (history.exists() and history.read_bytes().count(b"\n") >= 3):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    run("resume", folder, "--workers", "2", "--quiet")
    assert plans(folder) == plans(finished)
    assert contents(folder) == contents(finished)


def test_a_finished_run_goes_on_with_more_minutes(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    shutil.copytree(finished, folder)
    run("resume", folder, "--minutes", str(MINUTES + 0.05), "--quiet")
    before, after = plans(finished), plans(folder)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert after[-1]["until"] == MINUTES + 0.05


def test_ctrl_c_leaves_a_model_and_the_command_that_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    words = command(
        "evolve",
        "digits",
        "--out",
        folder,
        "--minutes",
        "0.5",
        "--workers",
        "1",
        "--quiet",
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        deadline = time.monotonic() + 120
        while not (folder / "champion" / "model.safetensors").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert b"epicortex resume" in said
    assert len(epicortex.load(folder).classes) == 10


def test_any_model_of_the_front_can_be_exported(finished: Path, tmp_path: Path) -> None:
    members = front.read(finished)
    assert len(members) == 2
    small, champion = members
    assert small.outline.parameters < champion.outline.parameters
    for option, value, chosen in (
        ("--max-parameters", str(small.outline.parameters), small),
        ("--smallest-within", "100%", small),
        ("--max-milliseconds", "10000", max(members, key=lambda one: one.facts.fitness)),
    ):
        run("export", finished, "--to", tmp_path / "model.safetensors", option, value)
        model = epicortex.load_champion(tmp_path / "model.safetensors")
        assert model.outline.parameters == chosen.outline.parameters
    refused = subprocess.run(
        command("export", finished, "--to", tmp_path / "no.onnx", "--max-parameters", "3"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "no model of this run is so small" in refused.stderr
