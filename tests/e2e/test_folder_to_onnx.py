"""As a new user would: a folder of pictures, four commands, and a model in use without EpiCortex or torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from tests.e2e.commands import here
from tests.e2e.pictures import CLASSES, write_pictures

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

SMALL = (
    *("--generations", "4", "--evolution.initial-networks", "6", "--evolution.max-networks", "8"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "4", "--workers", "2"),
)

#: All that somebody who was sent only the .onnx file has to write.
CONSUMER = """
import json, sys
import numpy, onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1])
about = session.get_modelmeta().custom_metadata_map
classes = json.loads(about["classes"])
how = json.loads(about["preprocessing"])
height, width = how["size"]

def read(path):
    with open(path, "rb") as file:
        image = ImageOps.exif_transpose(Image.open(file))
        if image.mode.startswith("I"):
            deep = numpy.asarray(image).astype(numpy.int64) >> (how["bits"] - 8)
            image = Image.fromarray(numpy.clip(deep, 0, 255).astype(numpy.uint8))
        elif image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        image = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
        return numpy.asarray(image.convert(how["colour"])).reshape(1, height, width, -1)

files = sys.argv[2:]
(logits,) = session.run(None, {"x": numpy.concatenate([read(file) for file in files])})
assert not {"torch", "epicortex", "sklearn"} & set(sys.modules)
print(json.dumps({file: classes[row.argmax()] for file, row in zip(files, logits)}))
"""


def command(folder: Path, *words: str) -> str:
    """What the real command prints, run in this folder."""
    done = subprocess.run(
        [sys.executable, "-m", "epicortex", *words],
        cwd=folder,
        env=os.environ | {"EPICORTEX_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_odd_ones(folder: Path) -> None:
    """A photograph that lies on its side, and one of sixteen bits a pixel."""
    whole = Image.fromarray(load_sample_image("flower.jpg"))
    exif = Image.Exif()
    exif[0x0112] = 6
    whole.crop((10, 10, 90, 50)).save(folder / "sideways.jpg", exif=exif)
    gray = np.asarray(whole.crop((200, 200, 240, 260)).convert("L")).astype(np.uint16)
    Image.fromarray(gray * 257).save(folder / "deep.png")


def test_from_a_folder_of_pictures_to_a_model_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "data"))
    write_pictures(tmp_path, train=60, held_out=12)
    add_odd_ones(tmp_path / "held-out" / "flower")
    command(tmp_path, "evolve", "train", "--out", "run", "--quiet", *SMALL)
    here("report", "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    command(tmp_path, "export", "run", "--to", "champion.onnx", "--pixels")

    story = json.loads(here("predict", "run", "held-out", "--json"))
    predicted = {one["file"]: one["class"] for one in story["predictions"]}
    assert tuple(story["classes"]) == CLASSES
    assert len(predicted) == 50
    right = sum(Path(file).parent.name == label for file, label in predicted.items())
    assert right / len(predicted) > 0.5  # of four classes

    done = subprocess.run(
        [sys.executable, "-I", "-c", CONSUMER, "champion.onnx", *predicted],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == predicted
    again = json.loads(here("predict", "champion.onnx", "held-out", "--json"))
    for one, other in zip(story["predictions"], again["predictions"], strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-4)
