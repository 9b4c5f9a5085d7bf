"""The champion layer by layer: what is drawn of its architecture, and its kernels as pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from epicortex.families.layered.genome import Genome, Layer, Shape
from epicortex.families.layered.phenotype import Phenotype
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


def stations(genome: Genome) -> list[Station]:
    """The champion's architecture from input to output."""
    largest = max(genome.input_shape[1:], default=1)
    drawn = [_station("input", "Input", "", genome.input_shape, "", largest, genome.spatial > 0)]
    rows = zip(genome.layers, genome.output_shapes, genome.layer_parameters, strict=True)
    for number, (layer, shape, parameters) in enumerate(rows, 1):
        drawn.append(
            _station(
                layer.type,
                _title(number, layer),
                kernel_words(layer, 120),
                shape if layer.type == "conv" else shape[:1],
                f"{count(parameters)} parameters",
                largest,
                layer.type == "conv",
            )
        )
    return drawn


def kernel_layers(phenotype: Phenotype) -> list[KernelLayer]:
    """The kernels of every convolution, the lowest first; of very large layers and networks the first."""
    layers: list[KernelLayer] = []
    genome = phenotype.genome
    for number, (layer, below) in enumerate(zip(genome.layers, genome.input_shapes, strict=True), 1):
        if layer.type != "conv" or len(layers) == MOST_LAYERS:
            continue
        weight = phenotype.weights[number - 1].weight
        shown = min(layer.nodes, MOST_KERNELS)
        # Of huge kernels fewer channels, so that no picture is larger than a page.
        channels = max(1, min(below[0], MOST_CHANNELS, MOST_WEIGHTS // math.prod(layer.extent)))
        scale = float(np.abs(np.nan_to_num(weight)).max())
        drawn = [
            _picture(_cut(weight[place, :channels], shape), scale)
            for place, shape in enumerate(layer.kernels[:shown])
        ]
        largest = max(max(picture.width, picture.height) for picture in drawn)
        pixel = max(3, min(18, _KERNEL_PIXELS // largest))
        kernels = [
            KernelPicture(f"kernel {place}", times(shape), picture, pixel * picture.width)
            for place, (shape, picture) in enumerate(zip(layer.kernels[:shown], drawn, strict=True), 1)
        ]
        about = f"{plural(layer.nodes, 'kernel')} over {plural(below[0], 'channel')} of {times(below[1:])}"
        if shown < layer.nodes:
            about += f"; the first {shown} are shown"
        if channels < below[0]:
            about += f"; of each kernel the first {channels} channels"
        layers.append(
            KernelLayer(_title(number, layer), f"{about}; full colour is a weight of ±{scale:.2g}", kernels)
        )
    return layers


def _title(number: int, layer: Layer) -> str:
    if layer.type == "conv":
        return f"Layer {number}: convolution"
    return f"Layer {number}: fully connected" if layer.type == "full" else "Output"


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
            f"{plural(shape[0], 'map' if kind == 'conv' else 'channel')} of {times(shape[1:])}",
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


def _cut(weight: NDArray[np.float32], shape: Shape) -> NDArray[np.float32]:
    """A kernel [channels, *shape] out of the layer's weight, without the zeros around it."""
    places = [
        slice((size - own) // 2, (size + own) // 2) for size, own in zip(weight.shape[1:], shape, strict=True)
    ]
    return weight[(slice(None), *places)]


def _picture(weight: NDArray[np.float32], scale: float) -> Picture:
    """A kernel [channels, *shape]; a third dimension is cut into slices."""
    rows, columns = (1, *weight.shape[1:])[-2:]
    return pictures.weights(np.ascontiguousarray(weight).reshape(-1, rows, columns), scale)
