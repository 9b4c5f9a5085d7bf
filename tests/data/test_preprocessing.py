"""The one way from a picture file to pixels: stated in the model, and done by others exactly likewise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_image

from epicortex.data import read_image
from epicortex.data.readers.pictures import preprocessing

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


def recipe(how: dict[str, Any]) -> Any:
    """The function `read` of the tutorial's classify.py, as its readers copy it."""
    found = re.search(r"^def read\(path\):\n(?:    .*\n|\n)+", TUTORIAL.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    height, width = how["size"]
    names = {"how": how, "height": height, "width": width, "np": np, "Image": Image, "ImageOps": ImageOps}
    exec(found[0], names)
    return names["read"]


def odd_pictures(folder: Path) -> list[Path]:
    """Parts of a photograph in every mode and format, turned in every way."""
    whole = Image.fromarray(load_sample_image("flower.jpg"))
    rng = np.random.default_rng(1)
    paths: list[Path] = []

    def save(image: Image.Image, ending: str, **how: Any) -> None:
        paths.append(folder / f"{len(paths)}.{ending}")
        image.save(paths[-1], **how)

    def part() -> Image.Image:
        left, top = map(int, rng.integers(0, 300, 2))
        return whole.crop((left, top, left + int(rng.integers(20, 90)), top + int(rng.integers(20, 90))))

    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        for ending in ("jpg", "png", "tif", "webp"):
            save(part(), ending, exif=exif)
        save(part().convert("L"), "tif", exif=exif)
    for top in (255, 4095, 65535):
        save(Image.fromarray((np.asarray(part().convert("L")) * (top / 255)).astype(np.uint16)), "png")
        save(Image.fromarray((np.asarray(part().convert("L")) * (top / 255)).astype(np.uint16)), "tif")
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        image = part().convert(mode)
        if mode in ("LA", "RGBA"):
            image.putalpha(Image.fromarray(rng.integers(0, 256, image.size[::-1], dtype=np.uint8)))
        save(image, "png")
    save(part().convert("P"), "gif", transparency=3)
    save(part().convert("L"), "png", transparency=100)
    save(part(), "png", transparency=(100, 90, 80))
    save(part().convert("CMYK"), "jpg")
    return paths


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("bits", [8, 12, 16])
def test_the_tutorials_recipe_gives_the_pixels_of_predict(tmp_path: Path, channels: int, bits: int) -> None:
    shape = (channels, 24, 31)
    read = recipe(preprocessing(shape, 255.0, bits))
    for path in odd_pictures(tmp_path):
        ours = read_image(path, shape, bits=bits)
        assert np.array_equal(read(path), np.moveaxis(ours, 0, -1)[None]), path
