"""Real pictures in folders: digits as gray PNG, parts of photographs as colour JPEG of many sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits, load_sample_image

CLASSES = ("china roofs", "flower", "one", "zero")


def write_pictures(folder: Path, *, train: int, held_out: int) -> None:
    """`folder/train/CLASS/*` and `folder/held-out/CLASS/*`, so many of each class."""
    digits = load_digits()
    for name, number in (("zero", 0), ("one", 1)):
        for index, image in enumerate(digits.images[digits.target == number][: train + held_out]):
            pixels = Image.fromarray((image * 255 / 16).astype(np.uint8)).resize((24, 24))
            pixels.save(_place(folder, name, index, train) / f"{name}-{index:03}.png")
    rng = np.random.default_rng(1)
    for name, photograph in (("china roofs", "china.jpg"), ("flower", "flower.jpg")):
        whole = load_sample_image(photograph)
        for index in range(train + held_out):
            side, across = rng.integers(24, 60, 2)
            top = int(rng.integers(0, whole.shape[0] - side))
            left = int(rng.integers(0, whole.shape[1] - across))
            part = Image.fromarray(whole[top : top + side, left : left + across])
            part.save(_place(folder, name, index, train) / f"{name}-{index:03}.jpg", quality=90)


def _place(folder: Path, name: str, index: int, train: int) -> Path:
    place = folder / ("train" if index < train else "held-out") / name
    place.mkdir(parents=True, exist_ok=True)
    return place
