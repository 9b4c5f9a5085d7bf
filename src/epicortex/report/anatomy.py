"""The champion layer by layer: what is drawn of its architecture, and its kernels as pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Champion
from epicortex.families.family import Array, Outline, Part, Shape
from epicortex.report import pictures
from epicortex.report.legend import kernel_words
from epicortex.report.pictures import Picture
from epicortex.text import count, plural, times

MOST_LAYERS: Final = 20
MOST_KERNELS: Final = 64
MOST_WEIGHTS: Final = 20_000
MOST_CHANNELS: Final = 36
_MOST_SHEETS: Final = 7
_MOST_DOTS: Final = 9
_LARGEST, _SMALLEST = 92.0, 12.0
#: So large is the largest kernel of a layer on the page; the others are to scale.
_KERNEL_PIXELS: Final = 130


@dataclass(frozen=True, slots=True)
class Station:
    """The input, or a layer with what it gives: one step of the drawing."""

    title: str
    detail: str
    shape: str
    parameters: str
    kind: str
    """input, conv, full or out."""
    sheets: int
    """Feature maps drawn one behind the other; 0 where nodes are drawn."""
    width: float
    height: float
    dots: int
    """Nodes drawn, where feature maps are not."""
    more: bool
    """Whether there are more sheets or dots than are drawn."""


@dataclass(frozen=True, slots=True)
class KernelPicture:
    """A kernel with all its channels, in its true shape."""

    name: str
    shape: str
    picture: Picture
    width: int
    """In pixels of the page."""


@dataclass(frozen=True, slots=True)
class KernelLayer:
    """The kernels of a layer."""

    title: str
    about: str
    kernels: list[KernelPicture]


def stations(outline: Outline) -> list[Station]:
    """The champion's architecture from input to output."""
    shape = outline.input_shape
    largest = max(shape[1:], default=1)
    drawn = [_station("input", "Input", "", shape, "", largest, len(shape) > 1)]
    for number, part in enumerate(outline.parts, 1):
        maps = bool(part.kernels)
        drawn.append(
            _station(
                part.kind,
                _title(number, part),
                kernel_words(part, 120),
                part.output if maps else part.output[:1],
                f"{count(part.parameters)} parameters",
                largest,
                maps,
            )
        )
    return drawn


def kernel_layers(champion: Champion) -> list[KernelLayer]:
    """The kernels of every convolution, the lowest first; of very large layers and networks the first."""
    parts = champion.outline.parts
    weights = champion.family.kernels(champion.phenotype)
    rows = [row for row in enumerate(zip(parts, weights, strict=True), 1) if row[1][1]]
    return [_kernel_layer(number, part, own) for number, (part, own) in rows[:MOST_LAYERS]]


def _kernel_layer(number: int, part: Part, weights: Sequence[Array]) -> KernelLayer:
    shown, below = min(len(weights), MOST_KERNELS), weights[0].shape[0]
    # Of huge kernels fewer channels, so that no picture is larger than a page.
    extent = math.prod(max(sizes) for sizes in zip(*part.kernels, strict=True))
    channels = max(1, min(below, MOST_CHANNELS, MOST_WEIGHTS // extent))
    scale = max(float(np.abs(np.nan_to_num(weight)).max()) for weight in weights)
    drawn = [_picture(weight[:channels], scale) for weight in weights[:shown]]
    largest = max(max(picture.width, picture.height) for picture in drawn)
    pixel = max(3, min(18, _KERNEL_PIXELS // largest))
    kernels = [
        KernelPicture(f"kernel {place}", times(weight.shape[1:]), picture, pixel * picture.width)
        for place, (weight, picture) in enumerate(zip(weights, drawn, strict=False), 1)
    ]
    about = f"{plural(len(weights), 'kernel')} over {plural(below, 'channel')}"
    if shown < len(weights):
        about += f"; the first {shown} are shown"
    if channels < below:
        about += f"; of each kernel the first {channels} channels"
    return KernelLayer(_title(number, part), f"{about}; full colour is a weight of ±{scale:.2g}", kernels)


def _title(number: int, part: Part) -> str:
    return "Output" if part.kind == "out" else f"Layer {number}: {part.title}"


def _station(
    kind: str, title: str, detail: str, shape: Shape, parameters: str, largest: int, maps: bool
) -> Station:
    side = [max(_SMALLEST, _LARGEST * math.sqrt(size / largest)) for size in shape[1:]]
    if maps:
        sheets = min(shape[0], _MOST_SHEETS)
        height, width = (side[-2], side[-1]) if len(side) > 1 else (_SMALLEST, side[-1])
        return Station(
            title,
            detail,
            f"{plural(shape[0], 'map' if kind != 'input' else 'channel')} of {times(shape[1:])}",
            parameters,
            kind,
            sheets,
            width,
            height,
            0,
            shape[0] > sheets,
        )
    dots = min(shape[0], _MOST_DOTS)
    words = plural(shape[0], "class", "classes") if kind == "out" else plural(shape[0], "node")
    words = plural(shape[0], "column") if kind == "input" else words
    return Station(title, detail, words, parameters, kind, 0, 0, 0, dots, shape[0] > dots)


def _picture(weight: NDArray[np.float32], scale: float) -> Picture:
    """A kernel [channels, *shape]; a third dimension is cut into slices."""
    rows, columns = (1, *weight.shape[1:])[-2:]
    return pictures.weights(np.ascontiguousarray(weight).reshape(-1, rows, columns), scale)
