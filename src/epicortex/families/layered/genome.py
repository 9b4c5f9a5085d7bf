"""The plain description of a network: input shape, layers, strides, kernel shapes, classes.

Everything that follows from the structure alone is computed here: shapes, limits, counts, the species key and
the similarity of two genomes. No torch, no randomness, no files; weights live elsewhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from reprlib import repr as short
from typing import Any, Final, Literal, TypeAlias, TypeGuard

from epicortex.errors import GenomeError

FORMAT_VERSION: Final = 1
MAX_SPATIAL_DIMENSIONS: Final = 3
#: What no sane network exceeds; a file that claims more is refused before anything is allocated.
MAX_LAYERS: Final = 1_000
MAX_NODES: Final = 1_000_000
MAX_PARAMETERS: Final = 10**10
#: What a sample may become between two layers, or be at first.
MAX_VALUES: Final = 10**8

Shape: TypeAlias = tuple[int, ...]
LayerType: TypeAlias = Literal["conv", "full", "out"]


def kernel_limit(size: int) -> int:
    """The largest kernel extent over an input of this size: odd, at most half of it, at least 1.

    >>> [kernel_limit(size) for size in (1, 5, 6, 7, 28, 32)]
    [1, 1, 3, 3, 13, 15]
    """
    half = size // 2
    return max(1, half - 1 + half % 2)


def stride_limit(size: int) -> int:
    """The largest stride over an input of this size: half of it, at least 1.

    >>> [stride_limit(size) for size in (1, 3, 28)]
    [1, 1, 14]
    """
    return max(1, size // 2)


@dataclass(frozen=True, slots=True)
class ConvLayer:
    """A convolution: one kernel shape per node, and one stride for the layer."""

    kernels: tuple[Shape, ...]
    stride: Shape

    type: Literal["conv"] = field(default="conv", init=False, repr=False)

    @property
    def nodes(self) -> int:
        """How many kernels, and so output channels, the layer has."""
        return len(self.kernels)

    @property
    def extent(self) -> Shape:
        """The largest kernel in each dimension: the size of the layer's weight tensor."""
        return tuple(max(sizes) for sizes in zip(*self.kernels, strict=True))

    def limited_to(self, spatial: Shape) -> ConvLayer:
        """The same layer with the limits of a (smaller) input re-imposed on kernels and stride."""
        if any(len(shape) != len(spatial) for shape in (*self.kernels, self.stride)):
            raise GenomeError(f"{self} does not fit an input with {len(spatial)} spatial dimensions")
        limits = [kernel_limit(size) for size in spatial]
        kernels = tuple(tuple(map(min, kernel, limits)) for kernel in self.kernels)
        return ConvLayer(kernels, tuple(map(min, self.stride, map(stride_limit, spatial))))

    def __str__(self) -> str:
        kernels = " ".join(_times(kernel) for kernel in self.kernels)
        return f"conv[{kernels}]" + (f"/{_times(self.stride)}" if set(self.stride) != {1} else "")


@dataclass(frozen=True, slots=True)
class FullLayer:
    """A fully connected layer."""

    nodes: int

    type: Literal["full"] = field(default="full", init=False, repr=False)

    def __str__(self) -> str:
        return f"full {self.nodes}"


@dataclass(frozen=True, slots=True)
class OutputLayer:
    """The output layer: fully connected, always there, a node for each class."""

    nodes: int

    type: Literal["out"] = field(default="out", init=False, repr=False)

    def __str__(self) -> str:
        return f"out {self.nodes}"


HiddenLayer: TypeAlias = ConvLayer | FullLayer
Layer: TypeAlias = ConvLayer | FullLayer | OutputLayer


@dataclass(frozen=True)
class Genome:
    """A network's structure. Valid by construction: an impossible one raises `GenomeError`.

    >>> genome = Genome((1, 28, 28), (ConvLayer(((3, 3), (5, 1), (1, 7)), (2, 2)), FullLayer(32)), 10)
    >>> print(genome)
    conv[3×3 5×1 1×7]/2×2 → full 32 → out 10
    >>> genome.parameters
    19202
    >>> genome.input_shapes
    ((1, 28, 28), (3, 14, 14), (32, 1, 1))
    >>> Genome.from_json(genome.to_json()) == genome
    True
    """

    input_shape: Shape
    hidden: tuple[HiddenLayer, ...]
    classes: int

    def __post_init__(self) -> None:
        _validate(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"input_shape": self.input_shape, "hidden": self.hidden, "classes": self.classes}

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers from the bottom up, the output layer last."""
        return (*self.hidden, OutputLayer(self.classes))

    @property
    def spatial(self) -> int:
        """How many spatial dimensions the input has; 0 for a table."""
        return len(self.input_shape) - 1

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Feature shapes [channels, *spatial] from input to output; a layer's own input is at its index."""
        shapes = [self.input_shape]
        for layer in self.layers:
            shapes.append(output_shape(layer, shapes[-1]))
        return tuple(shapes)

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """What each layer looks at."""
        return self.shapes[:-1]

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """What each layer gives."""
        return self.shapes[1:]

    @cached_property
    def layer_connections(self) -> tuple[int, ...]:
        """The weights of each layer, without biases and without the zeros around small kernels."""
        return tuple(
            connections(layer, below) for layer, below in zip(self.layers, self.input_shapes, strict=True)
        )

    @cached_property
    def layer_parameters(self) -> tuple[int, ...]:
        """The weights and biases of each layer."""
        pairs = zip(self.layers, self.layer_connections, strict=True)
        return tuple(layer.nodes + count for layer, count in pairs)

    @property
    def connections(self) -> int:
        """All weights, without biases."""
        return sum(self.layer_connections)

    @property
    def parameters(self) -> int:
        """All weights and biases."""
        return sum(self.layer_parameters)

    @property
    def nodes(self) -> int:
        """All nodes, the output layer's too."""
        return sum(layer.nodes for layer in self.layers)

    @property
    def convolutions(self) -> int:
        """How many convolutional layers there are; they come first."""
        return sum(layer.type == "conv" for layer in self.hidden)

    @cached_property
    def species_key(self) -> str:
        """The sequence of (layer type, node count, stride); kernel shapes are free within a species.

        >>> Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 1)), (1, 2)), FullLayer(5)), 10).species_key
        'conv 2/1×2 → full 5 → out 10'
        """
        return " → ".join(
            f"conv {layer.nodes}/{_times(layer.stride)}" if layer.type == "conv" else str(layer)
            for layer in self.layers
        )

    def similarity(self, other: Genome) -> float:
        """How much of two genomes overlaps (eqs 7 and 8): 1 exactly for equal node counts.

        >>> a, b = Genome((1, 8, 8), (FullLayer(6),), 10), Genome((1, 8, 8), (FullLayer(4), FullLayer(6)), 10)
        >>> a.similarity(b)
        0.6363636363636364
        """
        overlap = sum(min(mine.nodes, yours.nodes) for mine, yours in aligned(self, other))
        return overlap / (self.nodes + other.nodes - overlap)

    def replace(self, hidden: Sequence[HiddenLayer]) -> Genome:
        """A genome with other hidden layers, the limits re-imposed from the bottom up."""
        shape, limited = self.input_shape, []
        for layer in hidden:
            fitted = layer.limited_to(shape[1:]) if layer.type == "conv" else layer
            limited.append(fitted)
            shape = output_shape(fitted, shape)
        return Genome(self.input_shape, tuple(limited), self.classes)

    def __str__(self) -> str:
        return " → ".join(map(str, self.layers))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the version of the format."""
        layers = [
            {"type": "conv", "kernels": [list(k) for k in layer.kernels], "stride": list(layer.stride)}
            if layer.type == "conv"
            else {"type": "full", "nodes": layer.nodes}
            for layer in self.hidden
        ]
        return {
            "format": FORMAT_VERSION,
            "input_shape": list(self.input_shape),
            "layers": layers,
            "classes": self.classes,
        }

    def to_json(self) -> str:
        """The genome as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Genome:
        """Read what `to_json` wrote; anything else raises `GenomeError`."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GenomeError(f"this is not a genome in JSON: {error}") from None
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: object) -> Genome:
        """Read what `to_dict` gave; anything else raises `GenomeError`."""
        if not isinstance(data, dict):
            raise GenomeError("a genome is a JSON object with format, input_shape, layers and classes")
        version = data.get("format")
        if not _is_whole(version) or version != FORMAT_VERSION:
            newer = _is_whole(version) and version > FORMAT_VERSION
            advice = "; it was written by a newer EpiCortex, which can read it" if newer else ""
            raise GenomeError(
                f"genome format is {short(version)}, this version reads format {FORMAT_VERSION}{advice}"
            )
        layers = data.get("layers")
        if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
            raise GenomeError(f"genome: layers must be a list of at most {MAX_LAYERS}")
        hidden = tuple(_layer_from_dict(index, layer) for index, layer in enumerate(layers, 1))
        return cls(_shape("genome: input_shape", data.get("input_shape")), hidden, _whole(data, "classes"))


def output_shape(layer: Layer, below: Shape) -> Shape:
    """What a layer gives for an input [channels, *spatial]; a full layer's output counts as [n, 1, 1].

    Padding is half the largest kernel, so a convolution's output depends on the stride alone.
    """
    if layer.type == "conv":
        pairs = zip(below[1:], layer.stride, strict=True)
        return (layer.nodes, *(-(-size // stride) for size, stride in pairs))
    return (layer.nodes, *(1 for _ in below[1:]))


def connections(layer: Layer, below: Shape) -> int:
    """The weights of a layer over an input [channels, *spatial], without biases."""
    if layer.type == "conv":
        return below[0] * sum(math.prod(kernel) for kernel in layer.kernels)
    return layer.nodes * math.prod(below)


def aligned(one: Genome, other: Genome) -> Iterator[tuple[Layer, Layer]]:
    """The pairs of layers aligned from the bottom within their type."""
    for kind in ("conv", "full", "out"):
        mine = [layer for layer in one.layers if layer.type == kind]
        yours = [layer for layer in other.layers if layer.type == kind]
        yield from zip(mine, yours, strict=False)


def _times(shape: Shape) -> str:
    return "×".join(map(str, shape))


def _validate(genome: Genome) -> None:
    try:
        hash(genome)
    except TypeError:
        raise GenomeError("a genome is made of tuples, layers and numbers, all immutable") from None
    if not all(map(_is_whole, (*genome.input_shape, genome.classes))):
        raise GenomeError(
            f"input shape {short(genome.input_shape)} and classes {short(genome.classes)}: not whole numbers"
        )
    rank = len(genome.input_shape)
    if not 1 <= rank <= 1 + MAX_SPATIAL_DIMENSIONS or any(size < 1 for size in genome.input_shape):
        raise GenomeError(
            f"input shape {genome.input_shape} must be channels and at most {MAX_SPATIAL_DIMENSIONS} sizes, "
            "each at least 1"
        )
    if genome.classes < 1:
        raise GenomeError(f"out: needs at least one class, not {genome.classes}")
    if len(genome.hidden) > MAX_LAYERS or genome.classes > MAX_NODES:
        raise GenomeError(f"more than {MAX_LAYERS} layers or {MAX_NODES} classes")
    for index, (below, above) in enumerate(pairwise(genome.hidden), 2):
        if below.type == "full" and above.type == "conv":
            raise GenomeError(f"layer {index} ({above.type}): a convolution cannot stand on a full layer")
    shape = genome.input_shape
    for index, layer in enumerate(genome.hidden, 1):
        _validate_layer(f"layer {index} ({layer.type})", layer, shape)
        shape = output_shape(layer, shape)
    if any(math.prod(shape) > MAX_VALUES for shape in genome.shapes):
        raise GenomeError(f"a sample has more than {MAX_VALUES} values at one of its layers")
    if genome.parameters > MAX_PARAMETERS:
        raise GenomeError(f"{genome.parameters} parameters are more than {MAX_PARAMETERS}")


def _validate_layer(where: str, layer: HiddenLayer, below: Shape) -> None:
    if not _is_whole(layer.nodes) or not 1 <= layer.nodes <= MAX_NODES:
        raise GenomeError(f"{where}: needs 1 to {MAX_NODES} nodes, has {layer.nodes}")
    if layer.type == "full":
        return
    spatial = below[1:]
    if not spatial:
        raise GenomeError(f"{where}: a convolution needs an input with spatial dimensions, not a table")
    for number, kernel in enumerate(layer.kernels, 1):
        if len(kernel) != len(spatial):
            raise GenomeError(f"{where}, kernel {number}: {_times(kernel)} needs {len(spatial)} dimensions")
        for extent, size in zip(kernel, spatial, strict=True):
            if not _is_whole(extent) or extent % 2 == 0 or not 1 <= extent <= kernel_limit(size):
                raise GenomeError(
                    f"{where}, kernel {number}: {_times(kernel)} must be odd and between 1 and "
                    f"{_times(tuple(kernel_limit(s) for s in spatial))} over an input of {_times(spatial)}"
                )
    if len(layer.stride) != len(spatial):
        raise GenomeError(f"{where}: stride {_times(layer.stride)} needs {len(spatial)} dimensions")
    for step, size in zip(layer.stride, spatial, strict=True):
        if not _is_whole(step) or not 1 <= step <= stride_limit(size):
            raise GenomeError(
                f"{where}: stride {_times(layer.stride)} must be between 1 and "
                f"{_times(tuple(stride_limit(s) for s in spatial))} over an input of {_times(spatial)}"
            )


def _layer_from_dict(index: int, data: object) -> HiddenLayer:
    if isinstance(data, dict) and data.get("type") == "full":
        return FullLayer(_whole(data, "nodes", f"layer {index}"))
    if isinstance(data, dict) and data.get("type") == "conv":
        kernels = data.get("kernels")
        if not isinstance(kernels, list) or len(kernels) > MAX_NODES:
            raise GenomeError(f"layer {index}: kernels must be a list of shapes")
        shapes = tuple(_shape(f"layer {index}, kernel {n}", k) for n, k in enumerate(kernels, 1))
        return ConvLayer(shapes, _shape(f"layer {index}: stride", data.get("stride")))
    raise GenomeError(f"layer {index}: type must be conv or full")


def _shape(what: str, value: object) -> Shape:
    few = isinstance(value, list) and len(value) <= 1 + MAX_SPATIAL_DIMENSIONS
    if not isinstance(value, list) or not few or not all(map(_is_whole, value)):
        raise GenomeError(f"{what} must be a short list of whole numbers, not {short(value)}")
    return tuple(value)


def _whole(data: dict[str, Any], name: str, where: str = "genome") -> int:
    value = data.get(name)
    if not _is_whole(value):
        raise GenomeError(f"{where}: {name} must be a whole number, not {short(value)}")
    return value


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31
