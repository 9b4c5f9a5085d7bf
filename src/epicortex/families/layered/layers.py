"""The types of layers, in what order they stand on each other, and how one is read from a file."""

from __future__ import annotations

from typing import Final, TypeAlias

from epicortex.errors import GenomeError
from epicortex.families.layered.convolution import ConvLayer
from epicortex.families.layered.dense import FullLayer, OutputLayer
from epicortex.families.layered.layer import Layer
from epicortex.families.layered.values import MAX_NODES, shape_in, whole_in

HiddenLayer: TypeAlias = ConvLayer | FullLayer
#: The types of hidden layers, in the order in which they stand on each other.
HIDDEN: Final = (ConvLayer, FullLayer)
#: All types, in that order.
TYPES: Final = (*HIDDEN, OutputLayer)


def stands_on(above: Layer, below: Layer) -> bool:
    """Whether a layer may stand right on another: convolutions come first, then full layers."""
    return TYPES.index(type(below)) <= TYPES.index(type(above))


def layer_from_dict(index: int, data: object) -> HiddenLayer:
    """A hidden layer from what `to_dict` gave; anything else is a `GenomeError`."""
    where = f"layer {index}"
    if isinstance(data, dict) and data.get("type") == "full":
        return FullLayer(whole_in(data, "nodes", where))
    if isinstance(data, dict) and data.get("type") == "conv":
        kernels = data.get("kernels")
        if not isinstance(kernels, list) or len(kernels) > MAX_NODES:
            raise GenomeError(f"{where}: kernels must be a list of shapes")
        shapes = tuple(shape_in(f"{where}, kernel {n}", k) for n, k in enumerate(kernels, 1))
        return ConvLayer(shapes, shape_in(f"{where}: stride", data.get("stride")))
    raise GenomeError(f"{where}: type must be conv or full")
