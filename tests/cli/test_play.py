"""`epicortex play`: an animation of the champion at its task."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import epicortex
from epicortex.cli import main
from epicortex.report.page import write
from epicortex.tasks.film import RATE


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


def test_a_film_may_be_an_mp4_which_the_report_then_shows(pole: Path, tmp_path: Path) -> None:
    """Decoded again, it has the frames of the GIF, and lasts as long."""
    decoder = pytest.importorskip("imageio_ffmpeg")
    for name in (pole / "play.mp4", tmp_path / "play.gif"):
        assert main(["play", str(pole), "--seconds", "0.4", "--out", str(name)]) == 0
    number, seconds = decoder.count_frames_and_secs(str(pole / "play.mp4"))
    with Image.open(tmp_path / "play.gif") as film:
        assert number == film.n_frames  # type: ignore[attr-defined]
    assert seconds == pytest.approx(number / RATE, abs=0.05)
    page = write(pole).read_text()
    assert '<video src="data:video/mp4;base64,' in page
    assert "media-src data:" in page
    (pole / "play.mp4").write_bytes(b"<script>")
    assert "<video" not in write(pole).read_text()
    (pole / "play.mp4").unlink()


def test_without_the_encoder_an_mp4_is_refused(
    pole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["play", str(pole), "--out", str(tmp_path / "film.mp4")]) == 2
    assert "pip install 'epicortex[film]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_played_is_refused_in_one_line(
    pole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", str(pole), "--out", str(tmp_path / "film.avi")]) == 2
    assert main(["play", str(pole), "--seconds", "0"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "is a .gif or an .mp4" in said[0]
