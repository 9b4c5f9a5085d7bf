"""The way in: gathering, scaling, moving, mirroring, cropping and resizing; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn import functional

from epicortex import native
from epicortex.native import Conv, Full, NativeError, Network, Norm, Pool, Program, Scaling

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def identity(shape: tuple[int, ...]) -> Network:
    """A network whose outputs are its inputs, one after another."""
    program = Program(shape, [Full(int(np.prod(shape)), bias=False)], native.SquaredError())
    return Network(program, program.flatten([np.eye(int(np.prod(shape)), dtype=np.float32)]))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), seed=st.integers(0, 999))
def test_gathering(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(0, 2))
    shape = (data.draw(st.integers(1, 3)), *(data.draw(st.integers(1, 20)) for _ in range(rank)))
    stored = (rng.normal(0, 100, (9, *shape)) % 256).astype(
        data.draw(st.sampled_from((np.uint8, np.float32)))
    )
    rows = rng.integers(0, 9, data.draw(st.integers(1, 35)))
    scaling = Scaling(255.0, list(rng.random(shape[0])), list(rng.random(shape[0]) + 0.5))
    scale, offset = (part.reshape(-1, *(1,) * rank) for part in scaling.factors(shape[0]))
    expected = stored[rows].astype(np.float32) * scale + offset
    arguments: dict[str, Any] = {}
    if rank and data.draw(st.booleans()):
        moves = rng.integers(-3, 4, (len(rows), rank))
        arguments["moves"] = moves
        expected = np.stack([moved(image, move) for image, move in zip(expected, moves, strict=True)])
    if rank and data.draw(st.booleans()):
        flips = rng.random(len(rows)) < 0.5
        arguments["flips"] = flips
        expected = np.where(flips.reshape(-1, *(1,) * (rank + 1)), expected[..., ::-1], expected)
    found = identity(shape).score(stored, rows, scaling=scaling, **arguments)
    assert np.array_equal(found, expected.reshape(len(rows), -1))


def moved(image: NDArray[np.float32], move: NDArray[np.int64]) -> NDArray[np.float32]:
    """As `epicortex.training.samples.moved` does it."""
    for dimension, step in enumerate(move, 1):
        size = image.shape[dimension]
        image = image.take(np.clip(np.arange(size) + step, 0, size - 1), dimension)
    return image


def test_crops() -> None:
    stored = np.arange(2 * 5 * 6, dtype=np.uint8).reshape(2, 1, 5, 6)
    found = identity((1, 3, 3)).score(stored, [1, 0], moves=np.array([[2, 3], [0, 1]]), crop=True)
    assert np.array_equal(found[0], stored[1, 0, 2:5, 3:6].ravel())
    assert np.array_equal(found[1], stored[0, 0, 0:3, 1:4].ravel())


@pytest.mark.parametrize("size", [(2, 3), (4, 6), (6, 6)])
def test_smaller_images_are_averages(size: tuple[int, int]) -> None:
    stored = np.random.default_rng(1).random((3, 2, 12, 12), np.float32)
    expected = functional.interpolate(torch.from_numpy(stored), size, mode="area")
    found = identity((2, *size)).score(stored)
    np.testing.assert_allclose(found, expected.flatten(1).numpy(), rtol=1e-5)


def test_any_size_keeps_the_mean() -> None:
    stored = np.ones((3, 2, 32, 32), np.uint8)
    np.testing.assert_allclose(identity((2, 20, 20)).score(stored), 1.0, rtol=1e-6)
    np.testing.assert_allclose(identity((2, 45, 33)).score(stored), 1.0, rtol=1e-6)


def test_one_network_at_two_sizes() -> None:
    program = Program((3, 12, 12), [Conv([(3, 3)] * 4), Norm(), Pool(), Full(2)])
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=program.parameters).astype(np.float32)
    state = program.initial_state()
    large, small = (Network(each, parameters, state) for each in (program, program.resized((6, 6))))
    x, labels = rng.integers(0, 256, (20, 3, 12, 12), dtype=np.uint8), np.arange(20) % 2
    before = parameters.copy()
    for network in (small, large):
        network.step(x, np.arange(20), labels, scaling=Scaling(255.0), optimiser=native.SGD(lr=0.1))
    assert not np.array_equal(before, parameters)
    assert small.parameters is large.parameters
    with pytest.raises(NativeError, match="do not fit"):
        Program((1, 8, 8), [Full(2)]).resized((4, 4))


X, ROWS, LABELS = np.zeros((4, 1, 6, 6), np.uint8), np.arange(4), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, [4], [0]), "row 4 of 4 samples"),
        ((X, [-1], [0]), "row -1 of 4 samples"),
        ((X, [], []), "from 1 to"),
        ((X, ROWS, [0, 0, 0, 3]), "label 3 where there are 3 outputs"),
        ((X, ROWS, [0, 0, 0, -1]), "label -1"),
        ((X, ROWS, [0.5] * 4), "whole numbers"),
        ((X, ROWS, [0]), "expected an array of"),
        ((X[:, :, 0], ROWS, LABELS), "4 dimensions"),
        ((X.astype(np.float64), ROWS, LABELS), "float32"),
        ((np.zeros((4, 2, 6, 6), np.uint8), ROWS, LABELS), "data of 2 channels, where the program has 1"),
    ],
)
def test_wrong_batches_are_refused(arguments: Any, message: str) -> None:
    program = Program((1, 6, 6), [Full(3)])
    network = Network(program, np.zeros(program.parameters, np.float32))
    with pytest.raises(NativeError, match=message):
        network.step(*arguments)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([], "number of operations"),
        ([Full(0)], "nodes must be"),
        ([Conv([(2, 3)]), Full(2)], "odd"),
        ([Conv([]), Full(2)], "number of kernels"),
        ([Conv([(3, 3)]), Norm(input=0), Full(2)], "nothing reads slot 1"),
        ([Conv([(3, 3)]), native.Add(0), native.Add(5), Full(2)], "other slot must be"),
        ([Conv([(3, 3)] * 2), native.Add(0), Full(2)], "different shapes"),
        ([Conv([(3, 3)])], "one number for each output"),
        ([Pool()], "nothing that could learn"),
        ([Pool((7, 7)), Full(2)], "rows must be"),
        ([Full(2**20), Full(2**20)], "too many parameters"),
        ([Norm(epsilon=-1.0), Full(2)], "epsilon must be"),
        ([Norm(epsilon=float("nan")), Full(2)], "epsilon must be"),
        ([native.Activation("sine"), Full(2)], "no activation 'sine'"),
        ([Full(2, input=3)], "no slot 3"),
        ([Conv([(3,)]), Full(2)], "dimensions"),
    ],
    ids=str,
)
def test_wrong_programs_are_refused(operations: list[native.Operation], message: str) -> None:
    with pytest.raises((NativeError, ValueError), match=message):
        Network(Program((1, 6, 6), operations), np.zeros(0, np.float32))


def test_what_is_too_large_is_refused_before_it_is_allocated() -> None:
    program = Program((64, 2048, 1024), [Conv([(1, 1)]), Full(1)])
    with pytest.raises(NativeError, match="too large"):
        Network(program, np.zeros(program.parameters, np.float32))
