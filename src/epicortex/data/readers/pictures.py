"""One picture file as an array: opened only as what it may be, sized before it is decoded.

Which files make a data set is left to `folder`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epicortex.data.wording import shown
from epicortex.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp"))
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
_GRAY = frozenset(("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "I;16N"))
_ORIENTATION = 0x0112
_SIDEWAYS = (5, 6, 7, 8)
MAX_PIXELS = 50_000_000


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture's header says: its size as it is seen, and whether it has colours."""

    height: int
    width: int
    gray: bool


def look(path: Path, max_pixels: int = MAX_PIXELS) -> Look:
    """Read a picture's header; one that is not sound is a `DataError`."""
    try:
        with _open(path, max_pixels) as image:
            width, height = image.size
            if image.getexif().get(_ORIENTATION) in _SIDEWAYS:
                width, height = height, width
            return Look(height, width, image.mode in _GRAY)
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def read_image(path: Path | str, shape: tuple[int, int, int], max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The picture as uint8 [channels, height, width], turned upright, converted and resized as needed.

    Transparent parts become white; sizes change by Pillow's bilinear filter.
    """
    path = Path(path)
    channels, height, width = shape
    try:
        with _open(path, max_pixels) as image:
            pixels = _upright(image).resize((width, height), _bilinear())
            return _pixels(pixels, channels)
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def _open(path: Path, max_pixels: int) -> Image.Image:
    from PIL import Image

    # A pipe that calls itself a picture would be waited for without end.
    if not path.is_file():
        raise DataError(f"{shown(path, 300)} is not there, or is no file")
    image = Image.open(path, formats=_FORMATS)
    width, height = image.size
    if width * height > max_pixels:
        image.close()
        raise DataError(
            f"{shown(path, 300)} claims {width} × {height} pixels, more than the {max_pixels} allowed"
        )
    return image


def _bilinear() -> Image.Resampling:
    from PIL import Image

    return Image.Resampling.BILINEAR


def _upright(image: Image.Image) -> Image.Image:
    """Decoded, turned as its camera says, in one of the modes L and RGB, on white."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        # Sixteen bits a pixel; Pillow's own conversion would cut instead of scale.
        deep = np.asarray(image).astype(np.int64)
        return Image.fromarray((np.clip(deep, 0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("1", "L"):
        return image.convert("L")
    if image.mode in ("LA", "PA", "RGBA", "RGBa", "La") or "transparency" in image.info:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        flat = Image.alpha_composite(white, seen).convert("RGB")
        return flat.convert("L") if image.mode in ("LA", "La") else flat
    return image.convert("RGB")


def _pixels(image: Image.Image, channels: int) -> np.ndarray:
    if channels == 1:
        return np.asarray(image.convert("L"))[None]
    return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def _unreadable(path: Path, error: Exception) -> DataError:
    # Pillow's decoders raise whatever their formats provoke, from SyntaxError to struct.error.
    reason = str(error).replace(str(path), "it").replace(repr(str(path)), "it") or type(error).__name__
    return DataError(f"{shown(path, 300)} does not open as a picture: {shown(reason)}")
