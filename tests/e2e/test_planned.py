"""The default search with minutes: repeated bit for bit from its plans, killed, given more, exported from."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import epicortex
from epicortex.champion import front
from tests.contracts.world import PATIENCE, until
from tests.e2e.commands import command, here, refusal, run
from tests.e2e.test_residual import contents, written

#: The minutes of a run; the next ones if the machine was too busy for a search and two models.
MINUTES = (0.2, 0.6, 2.0)
#: More classes than a run needs stay alive, so that there is a smaller model at the end.
OPTIONS = ("--culling.classes", "false", "--quiet")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for minutes in MINUTES:
        folder = tmp_path_factory.mktemp("planned") / "run"
        run("evolve", "digits", "--out", folder, "--minutes", str(minutes), "--workers", "2", *OPTIONS)
        if plans(folder)[0]["phase"] == "search" and len(front.read(folder)) == 2:
            break
    return folder


def plans(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "plan.jsonl").read_text("utf-8").splitlines()]


def test_a_timed_run_searches_and_polishes_and_its_rate_falls_to_zero(finished: Path) -> None:
    phases = [plan["phase"] for plan in plans(finished)]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"search", "polish"}
    assert plans(finished)[-1]["rates"] == [0.0, 0.0]
    figures = json.loads(here("show", finished, "--json"))
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
    )
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        assert until(lambda: process.poll() is not None or written(history, 3), every=0.005)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    run("resume", folder, "--workers", "2", "--quiet")
    assert plans(folder) == plans(finished)
    assert contents(folder) == contents(finished)


def test_plans_are_not_repeated_on_other_data(finished: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("width,label\n" + "".join(f"{row},{'ab'[row % 2]}\n" for row in range(60)))
    words = command("evolve", table, "--plan", finished, "--out", tmp_path / "other")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "was planned for other data (digits)" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "other").exists()


def test_a_finished_run_goes_on_with_more_minutes(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    shutil.copytree(finished, folder)
    before = plans(finished)
    more = before[-1]["until"] + 0.05
    run("resume", folder, "--minutes", str(more), "--quiet")
    after = plans(folder)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert after[-1]["until"] == more
    assert all(0 <= rate <= 2 for plan in after for rate in plan["rates"])


def test_a_run_of_generations_goes_on_by_the_clock(tmp_path: Path) -> None:
    folder = tmp_path / "counted"
    run("evolve", "digits", "--out", folder, "--generations", "3", "--workers", "1", "--quiet")
    run("resume", folder, "--minutes", "0.2", "--quiet")
    after = plans(folder)
    assert after[3]["begun"] > 0
    assert after[3]["speed"] != 1e9  # measured anew
    assert after[-1]["until"] == 0.2
    assert after[-1]["steps"] == 0
    assert len(after) < 40


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
        assert until((folder / "champion" / "model.safetensors").exists)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
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
        here("export", finished, "--to", tmp_path / "model.safetensors", option, value)
        model = epicortex.load_champion(tmp_path / "model.safetensors")
        assert model.outline.parameters == chosen.outline.parameters
    line = refusal("export", finished, "--to", tmp_path / "no.onnx", "--max-parameters", "3")
    assert "no model of this run is so small" in line
