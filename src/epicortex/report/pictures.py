"""Small pictures as data URIs: kernels in two colours on any background, and samples of a data set."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

#: Weights below and above zero; between them lies a veil of grey, so that shapes show in light and dark.
_BELOW: Final = np.array([47, 124, 202], float)
_ABOVE: Final = np.array([226, 92, 48], float)
_GREY: Final = np.array([128, 128, 128], float)
_VEIL: Final = 0.14
_GAMMA: Final = 0.6
#: What a picture file may be.
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
#: The longest side of a sample, in pixels.
_LARGEST: Final = 96


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and its size in its own pixels."""

    uri: str
    width: int
    height: int


def weights(tiles: NDArray[np.float32], scale: float) -> Picture:
    """Weights [tiles, rows, columns] side by side; those of size `scale` get the full colour."""
    number, rows, columns = tiles.shape
    across = min(number, max(1, round(math.sqrt(number * rows / columns))))
    down = -(-number // across)
    canvas = np.zeros((down * (rows + 1) - 1, across * (columns + 1) - 1, 4), np.uint8)
    for place, tile in enumerate(tiles):
        y, x = (place // across) * (rows + 1), (place % across) * (columns + 1)
        canvas[y : y + rows, x : x + columns] = _coloured(tile, scale)
    return _png(Image.fromarray(canvas))


def sample(values: NDArray[np.generic], white: float) -> Picture | None:
    """A sample [channels, height, width]; None where it cannot be seen, such as a table's row.

    Whole numbers count up to `white`; others are spread over what there is.
    """
    if values.ndim != 3:
        return None
    numbers = np.asarray(values).astype(float)
    low, high = (0.0, white) if values.dtype == np.uint8 else (float(numbers.min()), float(numbers.max()))
    pixels = np.clip(255 * (numbers - low) / ((high - low) or 1), 0, 255).astype(np.uint8)
    planes = pixels.transpose(1, 2, 0)
    image = Image.fromarray(np.ascontiguousarray(planes if planes.shape[2] == 3 else planes[:, :, 0]))
    image.thumbnail((_LARGEST, _LARGEST))
    return _png(image)


def photograph(path: Path) -> Picture | None:
    """A picture file, small, upright and in its own proportions; None where it does not open."""
    try:
        with Image.open(path, formats=_FORMATS) as image:
            image.draft("RGB", (2 * _LARGEST, 2 * _LARGEST))
            upright = ImageOps.exif_transpose(image)
            if upright.mode not in ("L", "RGB"):
                return None  # what else there is, such as 16 bits, is shown as the network sees it
            upright.thumbnail((2 * _LARGEST, 2 * _LARGEST))
            return _encoded(upright, "jpeg", quality=82)
    except Exception:
        # Pillow's decoders raise whatever their formats provoke, from SyntaxError to struct.error.
        return None


def heat(shares: NDArray[np.float64]) -> Picture:
    """A matrix of shares from 0 to 1; what is right, on the diagonal, in one colour, mistakes in another."""
    strength = np.clip(shares, 0, 1)[..., None] ** _GAMMA
    colour = np.where(np.eye(len(shares), dtype=bool)[..., None], _BELOW, _ABOVE)
    alpha = 255 * (_VEIL / 2 + (1 - _VEIL / 2) * strength)
    return _png(Image.fromarray(np.concatenate([colour * np.ones_like(strength), alpha], 2).astype(np.uint8)))


def _coloured(tile: NDArray[np.float32], scale: float) -> NDArray[np.uint8]:
    strength = np.clip(np.nan_to_num(np.abs(tile.astype(float))) / (scale or 1), 0, 1)[..., None] ** _GAMMA
    sign = np.where(tile[..., None] < 0, _BELOW, _ABOVE)
    colour = _GREY + (sign - _GREY) * np.minimum(1, 3 * strength)
    alpha = 255 * (_VEIL + (1 - _VEIL) * strength)
    return np.concatenate([colour, alpha], 2).astype(np.uint8)


def _png(image: Image.Image) -> Picture:
    return _encoded(image, "png", optimize=True)


def _encoded(image: Image.Image, kind: str, **options: Any) -> Picture:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    text = base64.b64encode(stream.getvalue()).decode()
    return Picture(f"data:image/{kind};base64,{text}", image.width, image.height)
