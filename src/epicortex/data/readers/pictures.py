"""One picture file as an array: opened only as what it may be, sized before it is decoded.

Which files make a data set is left to `folder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from epicortex.data.dataset import DEEP
from epicortex.data.wording import shown
from epicortex.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = frozenset((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif"))
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")
_GRAY = frozenset(("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "I;16N"))
_WIDTH, _HEIGHT, _ORIENTATION = 0x0100, 0x0101, 0x0112
_SIDEWAYS = (5, 6, 7, 8)
MAX_PIXELS = 50_000_000
_DEPTHS = (8, 10, 12, 14, 16)


@dataclass(frozen=True, slots=True)
class Item:
    """A picture that is no file: the one that a collection gives at a place."""

    name: str
    give: Callable[[], Any] = field(compare=False)
    """Gives it as a Pillow image."""

    def __str__(self) -> str:
        return self.name


Source: TypeAlias = Path | Item
"""Where a picture comes from."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture's header says: its size as it is seen, whether it has colours and further pages."""

    height: int
    width: int
    gray: bool
    pages: bool = False
    """Whether there are more pictures in the file than the first, which is read."""
    peak: int = 0
    """The highest value of a pixel, of pictures with more than 8 bits; they have to be decoded to know."""


def depth(peak: int) -> int:
    """How many bits pictures use whose highest value is this: cameras and microscopes have 10, 12, 14 or 16.

    >>> depth(4095), depth(4096)
    (12, 14)
    """
    return next((bits for bits in _DEPTHS if peak < 1 << bits), DEEP)


def look(path: Source, max_pixels: int = MAX_PIXELS) -> Look:
    """Read a picture's header; one that is not sound is a `DataError`."""
    try:
        with _opened(path, max_pixels) as image:
            # Versions of Pillow differ in whether a sideways TIFF has its size turned already.
            tags = getattr(image, "tag_v2", {})
            width, height = tags.get(_WIDTH, image.size[0]), tags.get(_HEIGHT, image.size[1])
            if image.getexif().get(_ORIENTATION) in _SIDEWAYS:
                width, height = height, width
            pages = bool(getattr(image, "is_animated", False))
            return Look(height, width, _is_gray(image), pages, _peak(image))
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def read_image(
    path: Source | str, shape: tuple[int, int, int], max_pixels: int = MAX_PIXELS, *, bits: int = DEEP
) -> np.ndarray:
    """The picture as uint8 [channels, height, width], turned upright, converted and resized as needed.

    Transparent parts become white; sizes change by Pillow's bilinear filter; of pictures of more than 8 bits
    a pixel, which use so many `bits`, the highest 8 are taken.
    """
    path = Path(path) if isinstance(path, str) else path
    channels, height, width = shape
    try:
        with _opened(path, max_pixels) as image:
            pixels = _upright(image, bits).resize((width, height), _bilinear())
            return _pixels(pixels, channels)
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def preprocessing(shape: tuple[int, int, int], white: float, bits: int) -> dict[str, Any]:
    """What `read_image` does, and what makes raw values of its pixels, in words that a program can check.

    >>> preprocessing((1, 28, 28), 255.0, 16)["colour"]
    'L'
    """
    channels, height, width = shape
    return {
        "orientation": "turned upright as EXIF says",
        "bits": bits,
        "bit_depth": f"pixels of more than 8 bits (Pillow's modes I) become min(value >> {bits - 8}, 255)",
        "transparency": "laid on white",
        "colour": "L" if channels == 1 else "RGB",
        "resize": "by Pillow's bilinear filter, in 8 bits a channel, before colours become gray",
        "size": [height, width],
        "layout": "channels, height, width",
        "white": white,
        "scaling": f"pixels are multiplied by {white:g} / 255; the rest is done inside",
    }


@contextmanager
def _opened(path: Source, max_pixels: int) -> Iterator[Image.Image]:
    from PIL import Image

    # A pipe that calls itself a picture would be waited for without end.
    if isinstance(path, Path) and not path.is_file():
        raise DataError(f"{shown(path, 300)} is not there, or is no file")
    if isinstance(path, Item):
        yield _allowed(path.give(), path, max_pixels)
        return
    # Not by its name: Pillow maps plain TIFF files then, and mixes up the pixels of those on their side.
    with path.open("rb") as stream, Image.open(stream, formats=_FORMATS) as image:
        yield _allowed(image, path, max_pixels)


def _allowed(image: Image.Image, path: Source, max_pixels: int) -> Image.Image:
    width, height = image.size
    if image.mode == "F":
        raise ValueError(f"its pixels are fractions, so none is white; save it with 8 or {DEEP} bits")
    if width * height > max_pixels:
        raise DataError(
            f"{shown(path, 300)} claims {width} × {height} pixels, more than the {max_pixels} allowed"
        )
    return image


def _is_gray(image: Image.Image) -> bool:
    if image.mode != "P":
        return image.mode in _GRAY
    colours = np.array(image.getpalette("RGB") or [0, 0, 1], np.uint8).reshape(-1, 3)
    return bool((colours == colours[:, :1]).all())


def _peak(image: Image.Image) -> int:
    if not image.mode.startswith("I"):
        return 0
    peak = int(np.asarray(image).max(initial=0))
    if peak >= 1 << DEEP:
        raise ValueError(f"its pixels go up to {peak}; save it with 8 or {DEEP} bits a pixel")
    return peak


def _bilinear() -> Image.Resampling:
    from PIL import Image

    return Image.Resampling.BILINEAR


def _upright(image: Image.Image, bits: int) -> Image.Image:
    """Decoded, turned as its camera says, in one of the modes L and RGB, on white."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        # Pillow's own conversion would cut instead of scale.
        deep = np.asarray(image).astype(np.int64) >> bits - 8
        return Image.fromarray(np.clip(deep, 0, 255).astype(np.uint8))
    if image.mode in ("LA", "PA", "RGBA", "RGBa", "La") or "transparency" in image.info:
        seen = image.convert("RGBA")
        white = Image.new("RGBA", seen.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, seen).convert("RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _pixels(image: Image.Image, channels: int) -> np.ndarray:
    if channels == 1:
        return np.asarray(image.convert("L"))[None]
    return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def _unreadable(path: Source, error: Exception) -> DataError:
    from PIL import UnidentifiedImageError

    name = shown(path, 300)
    if isinstance(error, UnidentifiedImageError):
        return DataError(
            f"{name} does not open as a picture: it is damaged, or none of {', '.join(_FORMATS)}"
        )
    # Pillow's decoders raise whatever their formats provoke, from SyntaxError to struct.error.
    reason = str(error).replace(repr(str(path)), "it").replace(str(path), "it") or type(error).__name__
    return DataError(f"{name} does not open as a picture: {shown(reason)}")
