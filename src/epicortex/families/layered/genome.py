"""The plain description of a layered network: input shape, hidden layers, classes.

Everything that follows from the structure as a whole is computed here: shapes, counts, the species key and
the similarity of two genomes. What a single layer is stands in `layers`; weights live elsewhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from reprlib import repr as short
from typing import Any, Final

from epicortex.errors import GenomeError
from epicortex.families.family import Shape
from epicortex.families.layered.convolution import ConvLayer
from epicortex.families.layered.dense import FullLayer, OutputLayer
from epicortex.families.layered.layer import Layer
from epicortex.families.layered.layers import TYPES, HiddenLayer, layer_from_dict, stands_on
from epicortex.families.layered.values import (
    MAX_NODES,
    MAX_SPATIAL_DIMENSIONS,
    is_whole,
    shape_in,
    whole_in,
)

FORMAT_VERSION: Final = 1
#: What no sane network exceeds; a file that claims more is refused before anything is allocated.
MAX_LAYERS: Final = 1_000
MAX_PARAMETERS: Final = 10**10
#: What a sample may become between two layers, or be at first.
MAX_VALUES: Final = 10**8

__all__ = ["ConvLayer", "FullLayer", "Genome", "Layer", "OutputLayer"]


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
            shapes.append(layer.output_shape(shapes[-1]))
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
            layer.connections(below) for layer, below in zip(self.layers, self.input_shapes, strict=True)
        )

    @cached_property
    def layer_parameters(self) -> tuple[int, ...]:
        """The weights and biases of each layer."""
        pairs = zip(self.layers, self.layer_connections, strict=True)
        return tuple(layer.nodes + count for layer, count in pairs)

    @cached_property
    def cost(self) -> int:
        """The multiplications of all layers for one sample."""
        return sum(layer.cost(below) for layer, below in zip(self.layers, self.input_shapes, strict=True))

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
        return len(self.places(ConvLayer))

    def places(self, kind: type[Layer]) -> list[int]:
        """Where the layers of one type stand, from the bottom."""
        return [place for place, layer in enumerate(self.layers) if isinstance(layer, kind)]

    @cached_property
    def species_key(self) -> str:
        """The sequence of (layer type, node count, stride); kernel shapes are free within a species.

        >>> Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 1)), (1, 2)), FullLayer(5)), 10).species_key
        'conv 2/1×2 → full 5 → out 10'
        """
        return " → ".join(layer.key for layer in self.layers)

    def similarity(self, other: Genome, *, strides: bool = False) -> float:
        """How much of two genomes overlaps (eqs 7 and 8): 1 exactly for equal node counts.

        Where strides matter, only layers of equal stride overlap, as in the published code.

        >>> a, b = Genome((1, 8, 8), (FullLayer(6),), 10), Genome((1, 8, 8), (FullLayer(4), FullLayer(6)), 10)
        >>> a.similarity(b)
        0.6363636363636364
        """
        pairs = _of_equal_stride(self, other) if strides else _aligned(self, other)
        overlap = sum(min(mine.nodes, yours.nodes) for mine, yours in pairs)
        return overlap / (self.nodes + other.nodes - overlap)

    def replace(self, hidden: Sequence[HiddenLayer]) -> Genome:
        """A genome with other hidden layers, the limits re-imposed from the bottom up."""
        shape, limited = self.input_shape, list[HiddenLayer]()
        for layer in hidden:
            limited.append(layer.limited_to(shape))
            shape = limited[-1].output_shape(shape)
        return Genome(self.input_shape, tuple(limited), self.classes)

    def __str__(self) -> str:
        return " → ".join(map(str, self.layers))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the version of the format."""
        return {
            "format": FORMAT_VERSION,
            "input_shape": list(self.input_shape),
            "layers": [layer.to_dict() for layer in self.hidden],
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
        if not is_whole(version) or version != FORMAT_VERSION:
            newer = is_whole(version) and version > FORMAT_VERSION
            advice = "; it was written by a newer EpiCortex, which can read it" if newer else ""
            raise GenomeError(
                f"genome format is {short(version)}, this version reads format {FORMAT_VERSION}{advice}"
            )
        layers = data.get("layers")
        if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
            raise GenomeError(f"genome: layers must be a list of at most {MAX_LAYERS}")
        hidden = tuple(layer_from_dict(index, layer) for index, layer in enumerate(layers, 1))
        return cls(
            shape_in("genome: input_shape", data.get("input_shape")),
            hidden,
            whole_in(data, "classes", "genome"),
        )


def _aligned(one: Genome, other: Genome) -> Iterator[tuple[Layer, Layer]]:
    """The pairs of layers aligned from the bottom within their type."""
    for kind in TYPES:
        for mine, yours in zip(one.places(kind), other.places(kind), strict=False):
            yield one.layers[mine], other.layers[yours]


def _of_equal_stride(one: Genome, other: Genome) -> Iterator[tuple[Layer, Layer]]:
    """The pairs that the published code finds: where two layers differ in type or stride, one is passed over.

    It is that of the lower type, else the other genome's; so the two need not agree about each other.
    """
    mine, yours = 0, 0
    while mine < len(one.layers) and yours < len(other.layers):
        a, b = one.layers[mine], other.layers[yours]
        if type(a) is type(b) and a.stride == b.stride:
            yield a, b
            mine, yours = mine + 1, yours + 1
        elif TYPES.index(type(a)) < TYPES.index(type(b)):
            mine += 1
        else:
            yours += 1


def _validate(genome: Genome) -> None:
    try:
        hash(genome)
    except TypeError:
        raise GenomeError("a genome is made of tuples, layers and numbers, all immutable") from None
    if not all(map(is_whole, (*genome.input_shape, genome.classes))):
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
        if not stands_on(above, below):
            raise GenomeError(f"layer {index} ({above.type}): a convolution cannot stand on a full layer")
    shape = genome.input_shape
    for index, layer in enumerate(genome.hidden, 1):
        layer.check(f"layer {index} ({layer.type})", shape)
        shape = layer.output_shape(shape)
    if any(math.prod(shape) > MAX_VALUES for shape in genome.shapes):
        raise GenomeError(f"a sample has more than {MAX_VALUES} values at one of its layers")
    if genome.parameters > MAX_PARAMETERS:
        raise GenomeError(f"{genome.parameters} parameters are more than {MAX_PARAMETERS}")
