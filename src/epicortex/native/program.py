"""What a network computes: a list of operations over numbered slots, and a loss.

Slot 0 is the input [channels, *spatial]; the n-th operation (from 1) fills slot n. An operation reads the
slot before it unless `input` names another; so residual networks are written down, too. The last slot holds
the outputs.

The parameters are one flat float32 vector: for each operation in turn its weights, then its biases. Weights
of a convolution are the true entries of its kernels only, by (kernel, channel, row, column); those of a
full layer are [inputs, nodes], inputs in the order (channel, row, column); those of a normalisation its
factors, then its shifts. The state holds, for each normalisation in turn, the running means and then the
running variances of its channels.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epicortex.native.library import NativeError

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[np.float32]

_VERSION: Final = 3
#: The activations by name: their number in the library, and the slope of those that are leaky rectifiers.
ACTIVATIONS: Final[dict[str, tuple[int, float]]] = {
    "leaky_relu": (1, 0.01),
    "relu": (1, 0.0),
    "elu": (2, 0.0),
    "gelu": (3, 0.0),
    "silu": (4, 0.0),
    "tanh": (5, 0.0),
    "smooth": (6, 0.0),
}


@dataclass(frozen=True, slots=True)
class Conv:
    """An irregular convolution: kernels of any odd shapes, centred on each other, zeros beyond the edges."""

    kernels: Sequence[Shape]
    stride: Shape | None = None
    bias: bool = True
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Norm:
    """Batch normalisation as torch's: statistics of the batch in training, running ones in scoring."""

    epsilon: float = 1e-5
    momentum: float = 0.1
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of `ACTIVATIONS` by name."""

    name: str
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Add:
    """The sum of two slots of one shape."""

    other: int
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """The averages of `size` windows in each dimension (default: one, of everything), times a factor."""

    size: Shape | None = None
    factor: float = 1.0
    input: int | None = None


@dataclass(frozen=True, slots=True)
class Full:
    """A full layer over all numbers of its input."""

    nodes: int
    bias: bool = True
    input: int | None = None


Operation: TypeAlias = Conv | Norm | Activation | Add | Pool | Full


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Softmax and cross-entropy against labels; as torch's, a mean weighted by the class weights."""

    label_smoothing: float = 0.0
    class_weights: Sequence[float] | None = None

    number: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class SigmoidCrossEntropy:
    """A sigmoid and cross-entropy for each output against targets from 0 to 1; the mean of all."""

    number: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class SquaredError:
    """The mean of the squared differences between outputs and targets."""

    number: ClassVar[int] = 2


Loss: TypeAlias = CrossEntropy | SigmoidCrossEntropy | SquaredError


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """Weights that are entries of one matrix, for optimisers that treat them as such."""

    first: int
    """Where they begin among the parameters; they follow one another."""
    rows: int
    columns: int
    places: NDArray[np.int32]
    """Where each stands in the matrix, row by row."""

    def __post_init__(self) -> None:
        places = self.places
        if places.dtype != np.int32 or places.ndim != 1 or not places.flags.c_contiguous:
            raise NativeError("the places of a matrix must be a contiguous vector of int32")


@dataclass(frozen=True)
class Program:
    """A network's operations over an input [channels, *spatial] of no, one or two spatial dimensions.

    >>> block = [Conv([(3, 3)] * 4, bias=False), Norm(), Activation("relu")]
    >>> more = [Conv([(3, 1)] * 4), Norm(), Add(3), Activation("relu"), Pool(), Full(2)]
    >>> program = Program((3, 8, 8), [*block, *more])
    >>> program.shapes[3], program.shapes[8], program.shapes[9]
    ((4, 8, 8), (4, 1, 1), (2,))
    >>> program.parameters, program.state_size
    (186, 16)
    >>> program.resized((6, 5)).parameters
    186
    """

    input_shape: Shape
    operations: Sequence[Operation]
    loss: Loss = CrossEntropy()

    def __post_init__(self) -> None:
        if not 1 <= len(self.input_shape) <= 3:
            raise NativeError(f"an input of shape {self.input_shape} has more than two spatial dimensions")
        for index, operation in enumerate(self.operations):
            if isinstance(operation, Activation) and operation.name not in ACTIVATIONS:
                raise NativeError(
                    f"operation {index + 1}: there is no activation {operation.name!r}; "
                    f"there are {', '.join(ACTIVATIONS)}"
                )

    def resized(self, spatial: Shape) -> Program:
        """The same network over an input of another size; refused where its parameters would not fit."""
        other = replace(self, input_shape=(self.input_shape[0], *spatial))
        if len(spatial) != self.rank or other.parameters != self.parameters:
            raise NativeError(f"the parameters of this network do not fit an input of {spatial}")
        return other

    @property
    def rank(self) -> int:
        """How many spatial dimensions the input has."""
        return len(self.input_shape) - 1

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The slot that each operation reads first."""
        return tuple(
            index if operation.input is None else operation.input
            for index, operation in enumerate(self.operations)
        )

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of all slots."""
        shapes = [tuple(self.input_shape)]
        for index, (operation, slot) in enumerate(zip(self.operations, self.inputs, strict=True)):
            if not 0 <= slot <= index:
                raise NativeError(f"operation {index + 1}: there is no slot {slot} before it")
            shapes.append(_output_shape(operation, shapes[slot]))
        return tuple(shapes)

    @property
    def outputs(self) -> int:
        """How many numbers the network gives for a sample."""
        return self.shapes[-1][0]

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """How many weights and biases each operation has."""
        return tuple(
            _sizes(operation, self.shapes[slot])
            for operation, slot in zip(self.operations, self.inputs, strict=True)
        )

    @property
    def parameters(self) -> int:
        """How many numbers learn."""
        return sum(map(sum, self.sizes))

    @property
    def state_size(self) -> int:
        """How many numbers the running statistics of all normalisations are."""
        pairs = zip(self.operations, self.inputs, strict=True)
        return sum(2 * self.shapes[slot][0] for operation, slot in pairs if isinstance(operation, Norm))

    def initial_state(self) -> Array:
        """The state before any training: means of 0, variances of 1.

        >>> Program((2, 4), [Norm(), Full(1)]).initial_state().tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        state = np.zeros(self.state_size, np.float32)
        place = 0
        for operation, slot in zip(self.operations, self.inputs, strict=True):
            if isinstance(operation, Norm):
                channels = self.shapes[slot][0]
                state[place + channels : place + 2 * channels] = 1.0
                place += 2 * channels
        return state

    def weight_mask(self) -> Array:
        """1 where a parameter is a weight of a convolution or a full layer, 0 for biases and normalisations.

        >>> Program((1, 2), [Norm(), Full(2)]).weight_mask().tolist()
        [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
        """
        parts = [
            np.full(count, kind, np.float32)
            for operation, (weights, biases) in zip(self.operations, self.sizes, strict=True)
            for count, kind in ((weights, not isinstance(operation, Norm)), (biases, False))
        ]
        return np.concatenate(parts)

    def matrices(self) -> tuple[Matrix, ...]:
        """The weights of the convolutions as matrices with a row for each kernel; around kernels they are 0.

        >>> one, = Program((2, 8), [Conv([(1,), (3,)]), Full(2)]).matrices()
        >>> one.rows, one.columns, one.places.tolist()
        (2, 6, [1, 4, 6, 7, 8, 9, 10, 11])
        """
        found, place = [], 0
        for operation, slot, (weights, biases) in zip(self.operations, self.inputs, self.sizes, strict=True):
            if isinstance(operation, Conv):
                mask = _mask(operation.kernels, self.shapes[slot][0])
                places = np.flatnonzero(mask).astype(np.int32)
                found.append(Matrix(place, len(mask), mask[0].size, places))
            place += weights + biases
        return tuple(found)

    def flatten(self, tensors: Iterable[NDArray[np.floating]]) -> Array:
        """The flat vector of torch-like tensors: weight and bias (if any) of each operation in turn.

        A convolution's weight is [kernels, channels, *largest kernel], a full layer's [nodes, inputs].

        >>> program = Program((1, 3), [Conv([(1,), (3,)]), Full(1, bias=False)])
        >>> weight = np.array([[[0, 1, 0]], [[2, 3, 4]]], np.float32)
        >>> tensors = [weight, np.array([5, 6]), np.arange(7, 13).reshape(1, 6)]
        >>> program.flatten(tensors).tolist()
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
        """
        given = list(tensors)
        expected = self.tensor_shapes()
        if [tuple(tensor.shape) for tensor in given] != expected:
            found = ", ".join(str(tuple(tensor.shape)) for tensor in given)
            raise NativeError(f"expected tensors of {', '.join(map(str, expected))}, not {found}")
        parts, rest = [], iter(given)
        for operation, (weights, biases) in zip(self.operations, self.sizes, strict=True):
            if weights:
                weight = next(rest)
                if isinstance(operation, Conv):
                    parts.append(weight[_mask(operation.kernels, weight.shape[1])])
                else:
                    parts.append(weight.T.reshape(-1))
            if biases:
                parts.append(next(rest))
        return np.concatenate(parts).astype(np.float32, copy=False)

    def unflatten(self, vector: NDArray[np.floating]) -> list[NDArray[np.floating]]:
        """The tensors of a flat vector: what `flatten` would make it of.

        >>> program = Program((1, 3), [Conv([(1,), (3,)]), Full(1, bias=False)])
        >>> program.unflatten(np.arange(1, 13))[0].tolist()
        [[[0, 1, 0]], [[2, 3, 4]]]
        """
        if vector.shape != (self.parameters,):
            raise NativeError(f"expected {self.parameters} parameters, not {vector.shape}")
        tensors: list[NDArray[np.floating]] = []
        place, shapes = 0, iter(self.tensor_shapes())
        for operation, (weights, biases) in zip(self.operations, self.sizes, strict=True):
            if weights:
                shape, part = next(shapes), vector[place : place + weights]
                if isinstance(operation, Conv):
                    weight = np.zeros(shape, vector.dtype)
                    weight[_mask(operation.kernels, shape[1])] = part
                    tensors.append(weight)
                else:
                    tensors.append(np.ascontiguousarray(part.reshape(shape[::-1]).T))
            if biases:
                tensors.append(vector[place + weights : place + weights + biases].copy())
                next(shapes)
            place += weights + biases
        return tensors

    def tensor_shapes(self) -> list[Shape]:
        """The shapes of the tensors that `flatten` takes."""
        shapes: list[Shape] = []
        for operation, slot, (weights, biases) in zip(self.operations, self.inputs, self.sizes, strict=True):
            below = self.shapes[slot]
            if isinstance(operation, Conv):
                extent = tuple(max(sizes) for sizes in zip(*operation.kernels, strict=True))
                shapes.append((len(operation.kernels), below[0], *extent))
            elif isinstance(operation, Full):
                shapes.append((operation.nodes, math.prod(below)))
            elif weights:
                shapes.append((weights,))
            if biases:
                shapes.append((biases,))
        return shapes

    def encode(self) -> NDArray[np.int64]:
        """The program as the library reads it; see csrc/program.h."""
        channels, *spatial = self.input_shape
        numbers = [_VERSION, channels, *_two(spatial, 1), *_encode_loss(self.loss), len(self.operations)]
        for operation, slot in zip(self.operations, self.inputs, strict=True):
            kind, *rest = _encode_operation(operation, slot, len(self.shapes[slot]) - 1)
            numbers += [kind, len(rest), *rest]
        return np.array(numbers, np.int64)


def _two(sizes: Sequence[int], fill: int) -> tuple[int, int]:
    """Two numbers for none, one or two spatial dimensions: a signal is an image one row high."""
    if len(sizes) > 2:
        raise NativeError(f"{tuple(sizes)} has more than two dimensions")
    height, width = (*(fill for _ in range(2 - len(sizes))), *sizes)
    return int(height), int(width)


def _bits(value: float) -> int:
    """A real number as the whole number with the same bits."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


def _encode_loss(loss: Loss) -> list[int]:
    if isinstance(loss, CrossEntropy):
        weights = [
            _bits(float(weight)) for weight in (() if loss.class_weights is None else loss.class_weights)
        ]
        return [loss.number, _bits(loss.label_smoothing), len(weights), *weights]
    return [loss.number, _bits(0.0), 0]


def _encode_operation(operation: Operation, slot: int, rank: int) -> list[int]:
    match operation:
        case Conv(kernels=kernels, bias=bias):
            stride = operation.stride or (1,) * rank
            sizes = [size for kernel in kernels for size in _two(kernel, 1)]
            if any(len(kernel) != rank for kernel in (*kernels, stride)):
                raise NativeError(f"kernels and strides over {rank} dimensions must have as many")
            return [0, slot, *_two(stride, 1), int(bias), len(kernels), *sizes]
        case Norm(epsilon=epsilon, momentum=momentum):
            return [1, slot, _bits(epsilon), _bits(momentum)]
        case Activation(name=name):
            kind, slope = ACTIVATIONS[name]
            return [2, slot, kind, _bits(slope)]
        case Add(other=other):
            return [3, slot, other]
        case Pool(factor=factor):
            return [4, slot, *_two(operation.size or (1,) * rank, 1), _bits(factor)]
        case Full(nodes=nodes, bias=bias):
            return [5, slot, nodes, int(bias)]


def _output_shape(operation: Operation, below: Shape) -> Shape:
    channels, *spatial = below
    match operation:
        case Conv(kernels=kernels):
            stride = operation.stride or (1,) * len(spatial)
            if len(stride) != len(spatial) or any(step < 1 for step in stride):
                raise NativeError(f"a stride of {stride} does not fit an input of shape {below}")
            return (
                len(kernels),
                *((size - 1) // step + 1 for size, step in zip(spatial, stride, strict=True)),
            )
        case Pool():
            return (channels, *(operation.size or (1,) * len(spatial)))
        case Full(nodes=nodes):
            return (nodes,)
        case _:
            return below


def _sizes(operation: Operation, below: Shape) -> tuple[int, int]:
    match operation:
        case Conv(kernels=kernels, bias=bias):
            return below[0] * sum(map(math.prod, kernels)), len(kernels) if bias else 0
        case Full(nodes=nodes, bias=bias):
            return math.prod(below) * nodes, nodes if bias else 0
        case Norm():
            return below[0], below[0]
        case _:
            return 0, 0


def _mask(kernels: Sequence[Shape], channels: int) -> NDArray[np.bool_]:
    """Where a dense weight [kernels, channels, *extent] has true entries."""
    sizes = np.asarray(kernels)
    extent = sizes.max(axis=0)
    mask = np.ones((len(sizes), *extent), np.bool_)
    for dimension, size in enumerate(extent):
        inside = np.abs(np.arange(size) - size // 2) <= sizes[:, dimension, None] // 2
        shape = [1] * mask.ndim
        shape[0], shape[dimension + 1] = len(sizes), size
        mask &= inside.reshape(shape)
    return np.broadcast_to(mask[:, None], (len(sizes), channels, *extent))
