"""Random programs of every kind, with data and parameters to run them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicortex.native import (
    ACTIVATIONS,
    Activation,
    Add,
    Conv,
    CrossEntropy,
    Full,
    Loss,
    Network,
    Norm,
    Operation,
    Pool,
    Program,
    SigmoidCrossEntropy,
    SquaredError,
)


@dataclass(frozen=True)
class World:
    """A program with all that it takes to run it."""

    program: Program
    parameters: NDArray[np.float32]
    state: NDArray[np.float32]
    x: NDArray[np.float32]
    answers: NDArray[Any]

    def network(self, simd: str | None = None) -> Network:
        return Network(self.program, self.parameters.copy(), self.state.copy(), simd=simd)

    def step(self, network: Network, **arguments: Any) -> float:
        return network.step(self.x, np.arange(len(self.x)), self.answers, **arguments)


def world(program: Program, samples: int, seed: int = 1) -> World:
    """The program with drawn numbers that keep values near 1."""
    rng = np.random.default_rng(seed)
    tensors = []
    for shape in program.tensor_shapes():
        if len(shape) == 1:
            tensors.append(rng.uniform(0.5, 1.5, shape))
        else:
            tensors.append(rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape))
    x = rng.normal(0, 1, (samples, *program.input_shape)).astype(np.float32)
    if isinstance(program.loss, CrossEntropy):
        answers: NDArray[Any] = rng.integers(0, program.outputs, samples)
    else:
        answers = rng.random((samples, program.outputs), np.float32)
    state = np.abs(rng.normal(1, 0.2, program.state_size)).astype(np.float32)
    return World(program, program.flatten(tensors), state, x, answers)


def kernels(rank: int, most: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*(st.sampled_from(range(1, most + 1, 2)) for _ in range(rank)))


@st.composite
def losses(draw: st.DrawFn, outputs: int) -> Loss:
    kind = draw(st.integers(0, 3))
    if kind > 1:
        return SigmoidCrossEntropy() if kind == 2 else SquaredError()
    weights = draw(st.none() | st.lists(st.floats(0.1, 3), min_size=outputs, max_size=outputs))
    return CrossEntropy(draw(st.sampled_from((0.0, 0.1))), weights)


@st.composite
def programs(draw: st.DrawFn, *, names: tuple[str, ...] = tuple(ACTIVATIONS), norms: bool = True) -> Program:
    """Convolutions, norms, residual blocks, pooling, full layers; over two dimensions, one or none."""
    rank = draw(st.integers(0, 2))
    # a norm takes the scale away: a kernel of a single entry below it has hardly a gradient; so two channels
    shape = (draw(st.integers(2, 4)), *(draw(st.integers(3, 11)) for _ in range(rank)))
    operations: list[Operation] = []

    def normed() -> list[Operation]:
        return [Norm()] if norms and draw(st.booleans()) else []

    for _ in range(draw(st.integers(1, 3)) if rank else 0):
        width = draw(st.integers(2, 11))
        stride = tuple(draw(st.integers(1, 3)) for _ in range(rank))
        shapes = draw(st.lists(kernels(rank), min_size=width, max_size=width))
        operations += [Conv(shapes, stride, bias=draw(st.booleans())), *normed()]
        operations.append(Activation(draw(st.sampled_from(names))))
        if draw(st.booleans()):
            begin = len(operations)
            inner = draw(st.lists(kernels(rank), min_size=width, max_size=width))
            operations += [
                Conv(inner, bias=draw(st.booleans())),
                *normed(),
                Activation(draw(st.sampled_from(names))),
            ]
            operations += [Conv(inner[::-1], bias=False), *normed(), Add(begin)]
            operations += [Activation(draw(st.sampled_from(names)))] if draw(st.booleans()) else []
    if rank and draw(st.booleans()):
        sizes = Program(shape, operations).shapes[-1][1:]
        operations.append(
            Pool(tuple(draw(st.integers(1, size)) for size in sizes), draw(st.sampled_from((1.0, 4.0))))
        )
    for _ in range(draw(st.integers(0, 2))):
        operations += [Full(draw(st.integers(2, 30)), bias=draw(st.booleans())), *normed()]
        operations.append(Activation(draw(st.sampled_from(names))))
    outputs = draw(st.integers(2, 6))
    return Program(shape, [*operations, Full(outputs)], draw(losses(outputs)))
