"""`epicortex play`: an animation of the champion at its task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import epicortex
from epicortex.cli import main
from epicortex.report.page import write


@pytest.fixture(scope="module")
def pole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("play") / "run"
    small = {
        "evolution.initial_networks": 12,
        "evolution.max_networks": 12,
        "evolution.generations": 2,
        "training.engine": "serial",
    }
    epicortex.evolve("double-pole", epicortex.configure("task", small), out=folder)
    return folder


def test_poles_are_filmed_and_the_report_shows_the_film(
    pole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(pole), "--seconds", "0.4"]) == 0
    assert "play.gif" in capsys.readouterr().out
    with Image.open(pole / "play.gif") as film:
        assert film.format == "GIF"
        assert 2 <= film.n_frames <= 10  # type: ignore[attr-defined]
        film.seek(0)
        first = np.asarray(film.convert("RGB"))
        film.seek(film.n_frames - 1)  # type: ignore[attr-defined]
        assert (np.asarray(film.convert("RGB")) != first).any()
    assert "data:image/gif;base64," in write(pole).read_text()


def test_what_cannot_be_played_is_refused_in_one_line(
    pole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(pole), "--to", str(tmp_path / "film.mp4")]) == 2
    assert main(["play", str(pole), "--seconds", "0"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "must end in .gif" in said[0]
