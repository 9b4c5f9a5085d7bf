"""Layered networks (convolutions, then full layers) as programs, and their weights as flat vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epicortex.native.program import Activation, Array, Conv, CrossEntropy, Full, Loss, Operation, Program


class Layers(Protocol):
    """What is needed of a genome."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """[channels, *spatial]."""

    @property
    def layers(self) -> Sequence[Any]:
        """From the bottom up; each has a `type` (conv, full, out), and `kernels` and `stride`, or `nodes`."""


def layered(
    genome: Layers, *, conv: str = "leaky_relu", full: str = "smooth", loss: Loss | None = None
) -> Program:
    """The program of a layered genome; `conv` and `full` are the activations of its hidden layers.

    >>> from epicortex.genome import ConvLayer, FullLayer, Genome
    >>> genome = Genome((1, 28, 28), (ConvLayer(((3, 3), (5, 1), (1, 7)), (2, 2)), FullLayer(32)), 10)
    >>> layered(genome).parameters == genome.parameters
    True
    """
    operations: list[Operation] = []
    for layer in genome.layers:
        if layer.type == "conv":
            operations += [Conv(layer.kernels, layer.stride), Activation(conv)]
        elif layer.type == "full":
            operations += [Full(layer.nodes), Activation(full)]
        else:
            operations.append(Full(layer.nodes))
    return Program(genome.input_shape, operations, loss or CrossEntropy())


def flatten_layers(program: Program, weights: Iterable[Sequence[NDArray[np.float32]]]) -> Array:
    """The flat vector of a phenotype's weights: pairs of a dense weight and a bias, layer by layer."""
    return program.flatten(array for layer in weights for array in layer)


def unflatten_layers(program: Program, vector: Array) -> list[tuple[Array, Array]]:
    """The pairs of a dense weight and a bias, layer by layer.

    >>> from epicortex.genome import FullLayer, Genome
    >>> program = layered(Genome((4,), (FullLayer(3),), 2))
    >>> [[part.shape for part in pair] for pair in unflatten_layers(program, np.zeros(23, np.float32))]
    [[(3, 4), (3,)], [(2, 3), (2,)]]
    """
    arrays = [array.astype(np.float32, copy=False) for array in program.unflatten(vector)]
    return list(zip(arrays[::2], arrays[1::2], strict=True))
