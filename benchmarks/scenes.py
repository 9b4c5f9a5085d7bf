"""Large photographs: 1,000 scenes of 224 × 224 pixels in five classes, evolved for at several sizes.

A scene is a picture of CIFAR-10, enlarged to a quarter or a half of the width, somewhere on a blurred one of
another kind, with noise: what counts is small, and anywhere.

python -m benchmarks.scenes --sides auto 64 128 224 --out FOLDER
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import epicortex
from benchmarks.own_data import PHOTOGRAPHED
from epicortex.data import DataSet
from epicortex.errors import EpiCortexError

if TYPE_CHECKING:
    from PIL import Image

SIDE: Final = 224
OBJECTS: Final = (56, 120)
_NOISE: Final = 10.0
_LIGHT: Final = (0.7, 1.2)


def scene(rng: np.random.Generator, shown: np.ndarray, behind: np.ndarray) -> Image.Image:
    """One picture [channels, height, width] somewhere on another."""
    from PIL import Image, ImageFilter

    back, front = (Image.fromarray(np.moveaxis(np.asarray(one), 0, -1)) for one in (behind, shown))
    side = int(rng.integers(OBJECTS[0], OBJECTS[1] + 1))
    front = front.resize((side, side), Image.Resampling.BICUBIC)
    back = back.resize((SIDE, SIDE), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(3))
    edge, hidden = side // 12, side // 8
    mask = Image.new("L", (side, side), 0)
    mask.paste(255, (edge, edge, side - edge, side - edge))
    left, top = (int(place) for place in rng.integers(-hidden, SIDE - side + hidden + 1, 2))
    back.paste(front, (left, top), mask.filter(ImageFilter.GaussianBlur(edge / 2)))
    pixels = np.asarray(back).astype(np.float32) * rng.uniform(*_LIGHT)
    pixels += rng.normal(0, _NOISE, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def make_scenes(folder: Path, data: DataSet, *, train: int = 200, test: int = 400) -> Path:
    """A folder of JPEG files below train/ and test/, so many a class; one that is there is kept."""
    if folder.is_dir():
        return folder
    rng, temporary = np.random.default_rng(7), folder.with_name(f".{folder.name}.part")
    parts = (("train", data.x_train, data.y_train, train), ("test", data.x_test, data.y_test, test))
    numbers = [data.classes.index(kind) for kind in PHOTOGRAPHED]
    for name, images, labels, most in parts:
        others = np.flatnonzero(~np.isin(labels, numbers))
        for kind, number in zip(PHOTOGRAPHED, numbers, strict=True):
            place = temporary / name / kind
            place.mkdir(parents=True, exist_ok=True)
            for row in np.flatnonzero(labels == number)[:most]:
                behind = images[rng.choice(others)]
                scene(rng, images[row], behind).save(place / f"{row}.jpg", quality=90)
    temporary.rename(folder)
    return folder


def line(folder: Path, side: str, options: argparse.Namespace) -> str:
    """One run at a size, as a row of a table."""
    changes: dict[str, Any] = {
        "evolution.minutes": options.minutes,
        "evolution.seed": options.seed,
        "training.workers": options.cores,
        "training.augment": options.augment,
    }
    if side != "auto":
        changes["data.image_size"] = [int(side), int(side)]
    began = time.monotonic()
    result = epicortex.evolve(folder, epicortex.configure(changes=changes), began=began, progress=False)
    seconds = time.monotonic() - began
    assert result.champion is not None
    facts, outline = result.champion.facts, result.champion.outline
    assert facts.test is not None
    low, high = facts.test.interval
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    size = "×".join(map(str, outline.input_shape[1:]))
    tested = f"{facts.test.accuracy:.1%} ({low:.1%} to {high:.1%})"
    cells = (side, size, tested, f"{outline.parameters:,}", f"{outline.cost / 1e6:.1f} M")
    return f"| {' | '.join(cells)} | {seconds:.0f} s | {memory:.1f} GB |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures and evolve at each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenes")
    parser.add_argument("--sides", nargs="+", default=["auto", "64", "128", "224"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--augment", default="none", help="as training.augment")
    parser.add_argument("--out", type=Path, default=Path("scenes"), help="the folder of pictures")
    options = parser.parse_args(arguments)
    options.augment = options.augment.split(",")
    try:
        folder = make_scenes(options.out, epicortex.load_data("cifar10"))
        print(
            "| side | size | test (95 % interval) | parameters | multiplications | time | a worker's memory |"
        )
        print("|---|---|---|---|---|---|---|")
        for side in options.sides:
            print(line(folder, side, options), flush=True)
    except EpiCortexError as error:
        print(f"scenes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
