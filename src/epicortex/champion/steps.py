"""A champion's function as a short list of steps, for programs that are to compute it without any library.

Batch norm is folded into the weights, kernels come without the zeros around them, and additions and
activations belong to the step before them. Writing steps down, in C or in JavaScript, is left to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Champion
from epicortex.data import Scaling
from epicortex.errors import ConfigError
from epicortex.families.family import Array, Compilable
from epicortex.native.program import Activation, Add, Conv, Full, Norm, Operation, Pool, Program

Maps: TypeAlias = tuple[int, int, int]
"""Channels, height and width; a signal is one row high, a table one number a channel."""
_NOTHING: Final[Array] = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One pass over the numbers: conv, full, pool, or `each`, which only scales, shifts, adds and activates.

    Slot 0 holds the scaled input; the n-th step, from 1, fills slot n.
    """

    kind: Literal["conv", "full", "pool", "each"]
    source: int
    """The slot that it reads."""
    below: Maps
    output: Maps
    weight: Array = field(default_factory=lambda: _NOTHING)
    """Of a convolution by (kernel, channel, row, column), of a full layer by (node, input); of `each` a
    factor for every channel, or nothing."""
    bias: Array = field(default_factory=lambda: _NOTHING)
    """One number for each channel of the output, or nothing."""
    kernels: tuple[tuple[int, int], ...] = ()
    stride: tuple[int, int] = (1, 1)
    factor: float = 1.0
    """What averages are multiplied by."""
    add: int | None = None
    """A slot that is added before the activation."""
    activation: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Where each slot lies in one block of numbers; the last slot has no place: it is the answer."""

    offsets: tuple[int, ...]
    size: int


def steps(champion: Champion) -> list[Step]:
    """What a champion computes from scaled values; networks that cannot be written so are refused."""
    shape, family = champion.outline.input_shape, champion.family
    if not isinstance(family, Compilable) or len(shape) > 3:
        what = "volumes" if len(shape) > 3 else f"networks of the family {family.name}"
        raise ConfigError(
            f"{what} cannot be written as plain C or JavaScript; export to .onnx, .pt2 or .safetensors"
        )
    tensors, state = family.tensors(champion.phenotype)
    program = Program(shape, family.operations(champion.phenotype))
    made = _Builder(program, program.flatten(tensors), state).steps
    return made if champion.facts.targets is None else _in_units(made, champion.facts.targets)


def _in_units(made: list[Step], targets: Scaling) -> list[Step]:
    """The same with answers in the units of the targets: another last layer, or another step after it."""
    last, std, mean = made[-1], np.asarray(targets.std), np.asarray(targets.mean)
    if last.kind == "full" and last.add is None and last.activation is None:
        weight = last.weight.reshape(len(std), -1) * std[:, None]
        bias = last.bias * std + mean if len(last.bias) else mean
        return [*made[:-1], replace(last, weight=_single(weight.reshape(-1)), bias=_single(bias))]
    after = Step("each", len(made), last.output, last.output, weight=_single(std), bias=_single(mean))
    return [*made, after]


def temperature(champion: Champion) -> float:
    """What logits are divided by before they become probabilities."""
    return float(getattr(champion.facts, "temperature", None) or 1.0)


def memory(made: Sequence[Step]) -> Memory:
    """A place for every slot, such that none is overwritten before it was last read.

    What a step adds and nobody needs again is overwritten by the sum, number for number.
    """
    shapes = [made[0].below, *(step.output for step in made)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    last = [0] * len(shapes)
    for index, step in enumerate(made):
        for slot in (step.source, step.add):
            if slot is not None:
                last[slot] = index
    offsets, size = [0], sizes[0]
    for index, step in enumerate(made[:-1]):
        alive = [slot for slot in range(index + 1) if last[slot] >= index]
        over = step.add if step.add is not None and last[step.add] == index else None
        taken = sorted((offsets[slot], offsets[slot] + sizes[slot]) for slot in alive)
        place = offsets[over] if over not in (None, step.source) else _gap(taken, sizes[index + 1])
        offsets.append(place)
        size = max(size, place + sizes[index + 1])
    return Memory(tuple(offsets), size)


def _gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The lowest place with so much room between what is taken.

    >>> _gap([(0, 4), (10, 12)], 6), _gap([(0, 4), (10, 12)], 7), _gap([(3, 5)], 3)
    (4, 12, 0)
    """
    place = 0
    for begin, end in taken:
        if begin - place >= size:
            break
        place = max(place, end)
    return place


class _Builder:
    """Makes steps of a program's operations, one after the other."""

    def __init__(self, program: Program, numbers: Array, state: Array | None) -> None:
        self.steps: list[Step] = []
        self._slots = [0]  # the slot of ours that holds each slot of the program
        self._program, self._state = program, state
        self._readers = [0] * (len(program.operations) + 1)
        for operation, source in zip(program.operations, program.inputs, strict=True):
            self._readers[source] += 1
            if isinstance(operation, Add):
                self._readers[operation.other] += 1
        place = 0
        for index, (weights, biases) in enumerate(program.sizes):
            middle, end = place + weights, place + weights + biases
            self._take(index, numbers[place:middle], numbers[middle:end])
            place = end

    def _take(self, index: int, weight: Array, bias: Array) -> None:
        operation, source = self._program.operations[index], self._program.inputs[index]
        below, output = (_maps(self._program.shapes[slot]) for slot in (source, index + 1))
        plain = Step("each", self._slots[source], below, output)
        joined = self._joined(operation, source, weight, bias)
        if joined is not None:
            self.steps[-1] = joined
        elif isinstance(operation, Norm):
            factor, shift = self._norm(operation, weight, bias)
            self.steps.append(replace(plain, weight=_single(factor), bias=_single(shift)))
        elif isinstance(operation, Add):
            self.steps.append(replace(plain, add=self._slots[operation.other]))
        elif isinstance(operation, Activation):
            self.steps.append(replace(plain, activation=operation.name))
        else:
            self.steps.append(_weighted(operation, plain, weight, bias))
        self._slots.append(len(self.steps))

    def _joined(self, operation: Operation, source: int, weight: Array, bias: Array) -> Step | None:
        """The step before with an operation that only continues it."""
        if not self.steps or self._slots[source] != len(self.steps) or self._readers[source] > 1:
            return None
        before = self.steps[-1]
        open_end = before.activation is None and before.kind != "pool"
        if isinstance(operation, Activation) and open_end:
            return replace(before, activation=operation.name)
        if not open_end or before.add is not None or before.kind == "each":
            return None
        if isinstance(operation, Norm):
            factor, shift = self._norm(operation, weight, bias)
            rows = np.repeat(factor, _row_sizes(before))
            shifted = before.bias * factor + shift if len(before.bias) else shift
            return replace(before, weight=_single(before.weight * rows), bias=_single(shifted))
        if isinstance(operation, Add) and self._slots[operation.other] != len(self.steps):
            return replace(before, add=self._slots[operation.other])
        return None

    def _norm(self, norm: Norm, gamma: Array, beta: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A normalisation by its running statistics as a factor and a shift for each channel."""
        assert self._state is not None
        channels = len(gamma)
        mean, variance, self._state = np.split(self._state, [channels, 2 * channels])
        factor = gamma.astype(np.float64) / np.sqrt(variance.astype(np.float64) + norm.epsilon)
        return factor, beta - mean * factor


def _weighted(operation: Operation, plain: Step, weight: Array, bias: Array) -> Step:
    if isinstance(operation, Conv):
        kernels = tuple(_two(kernel) for kernel in operation.kernels)
        stride = _two(operation.stride or ())
        return replace(plain, kind="conv", weight=weight, bias=bias, kernels=kernels, stride=stride)
    if isinstance(operation, Full):
        rows = np.ascontiguousarray(weight.reshape(-1, operation.nodes).T).reshape(-1)
        return replace(plain, kind="full", weight=rows, bias=bias)
    assert isinstance(operation, Pool)
    return replace(plain, kind="pool", factor=operation.factor)


def _row_sizes(step: Step) -> list[int]:
    """How many weights each node has."""
    if step.kind == "full":
        return [int(np.prod(step.below))] * step.output[0]
    return [step.below[0] * height * width for height, width in step.kernels]


def _single(numbers: NDArray[np.floating]) -> Array:
    return numbers.astype(np.float32)


def _maps(shape: Sequence[int]) -> Maps:
    channels, *spatial = shape
    return (channels, *_two(spatial))


def _two(sizes: Sequence[int]) -> tuple[int, int]:
    height, width = (*(1 for _ in range(2 - len(sizes))), *sizes)
    return height, width
