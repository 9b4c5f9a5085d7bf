"""Residual networks all the way: the same bits on every engine and after a kill, read by every command."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import epicortex
from tests.contracts.world import until
from tests.e2e.commands import command, here, run

OPTIONS = (
    *("--preset", "residual", "--evolution.initial-networks", "4", "--evolution.max-networks", "4"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "2", "--training.min-steps", "20"),
    *("--residual.start-parameters", "2500", "--quiet", "--workers", "2"),
)


def written(history: Path, lines: int) -> bool:
    """Whether there are so many generations."""
    return history.exists() and history.read_bytes().count(b"\n") >= lines


def contents(folder: Path) -> dict[str, bytes]:
    """What "same bytes" means, but for the history, whose seconds differ."""
    files = ["networks.jsonl", "champion/genome.json", "champion/model.safetensors", "champion/card.md"]
    return {name: (folder / name).read_bytes() for name in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("residual") / "run"
    here("evolve", "digits", "--out", folder, "--generations", "4", "--engine", "serial", *OPTIONS)
    return folder


def test_a_killed_run_resumes_to_the_same_bytes_on_another_engine(finished: Path, tmp_path: Path) -> None:
    folder, history = tmp_path / "killed", tmp_path / "killed" / "history.jsonl"
    words = ["evolve", "digits", "--out", str(folder), "--generations", "4", "--engine", "processes"]
    with subprocess.Popen(command(*words, *OPTIONS), stdout=subprocess.DEVNULL) as process:
        assert until(lambda: process.poll() is not None or written(history, 2), every=0.005)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    run("resume", folder, "--quiet")
    assert contents(folder) == contents(finished)


def test_show_and_report_read_it(finished: Path, tmp_path: Path) -> None:
    assert "all 4 generations are done" in here("show", finished)
    story = json.loads(here("show", finished, "--json"))
    assert story["champion"]["family"] == "residual"
    page = tmp_path / "report.html"
    here("report", finished, "--out", page)
    html = page.read_text()
    assert "residual block" in html
    assert "batch norm" in html


def test_every_export_answers_as_the_champion(finished: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    x = load_digits().images[:50, None].astype(np.float32)
    with torch.no_grad():
        expected = epicortex.load(finished)(torch.from_numpy(x)).numpy()
    for ending in ("onnx", "pt2", "safetensors"):
        here("export", finished, "--to", tmp_path / f"a.{ending}")
    session = runtime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    program = torch.export.load(tmp_path / "a.pt2").module()
    with torch.no_grad():
        answers = [
            session.run(None, {"x": x})[0],
            program(torch.from_numpy(x)).numpy(),
            epicortex.load(tmp_path / "a.safetensors")(torch.from_numpy(x)).numpy(),
        ]
    for answer in answers:
        np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-3)


def test_pictures_are_classified_as_the_digits_they_were(finished: Path, tmp_path: Path) -> None:
    digits = load_digits()
    files = [tmp_path / f"{place}.png" for place in range(40)]
    for file, image in zip(files, digits.images, strict=False):
        Image.fromarray((image * 255 / 16).astype(np.uint8)).save(file)
    story = json.loads(here("predict", finished, *files, "--json"))
    named = [one["class"] for one in story["predictions"]]
    right = sum(name == str(label) for name, label in zip(named, digits.target, strict=False))
    assert right / len(named) > 0.5


def test_a_run_starts_from_the_champion_of_another(finished: Path, tmp_path: Path) -> None:
    more = ("--from", finished, "--generations", "1", "--engine", "serial")
    here("evolve", "digits", "--out", tmp_path / "run", *more, *OPTIONS)
    lines = [json.loads(line) for line in (tmp_path / "run" / "networks.jsonl").read_text().splitlines()]
    before = epicortex.load_champion(finished)
    first = next(line for line in lines if line["id"] == 1)
    assert first["parameters"] == before.outline.parameters
