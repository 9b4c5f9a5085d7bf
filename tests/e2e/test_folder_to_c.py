"""From a folder of pictures to a program in C that answers held-out pictures as `predict` does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.pictures import write_pictures

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
SMALL = (
    *("--preset", "layered", "--generations", "2", "--evolution.initial-networks", "6", "--workers", "1"),
    *("--evolution.max-networks", "8", "--evolution.initial-species", "2", "--evolution.max-species", "4"),
)


def command(folder: Path, *words: str) -> str:
    """What the real command prints, run in this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "epicortex", *words],
        cwd=folder,
        env=os.environ | {"EPICORTEX_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_in_c_answers_held_out_pictures_as_predict_does(tmp_path: Path) -> None:
    write_pictures(tmp_path, train=25, held_out=8)
    command(tmp_path, "evolve", "train", "--out", "run", "--quiet", *SMALL)
    said = command(tmp_path, "export", "run", "--to", "model.c")
    compile_it = next(line.removeprefix("try it").split() for line in said.splitlines() if "try it" in line)
    subprocess.run(compile_it, cwd=tmp_path, check=True)

    story = json.loads(command(tmp_path, "predict", "run", "held-out", "--json"))
    genome = json.loads((tmp_path / "run/champion/genome.json").read_text())
    channels, height, width = genome["family"]["input_shape"]
    numbers = []
    for one in story["predictions"]:
        image = (
            Image.open(tmp_path / one["file"])
            .convert("RGB")
            .resize((width, height), Image.Resampling.BILINEAR)
        )
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB")).reshape(height, width, channels)
        numbers += pixels.transpose(2, 0, 1).reshape(-1).tolist()
    program = [tmp_path / "model"]
    text = " ".join(map(str, numbers))
    answers = subprocess.run(program, input=text, capture_output=True, text=True, check=True).stdout
    found = [line.rsplit(" ", 1) for line in answers.splitlines()]
    assert [name for name, _ in found] == [one["class"] for one in story["predictions"]]
    expected = [one["probability"] for one in story["predictions"]]
    np.testing.assert_allclose([float(sure) for _, sure in found], expected, atol=1e-4)
