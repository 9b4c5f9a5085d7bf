"""The native optimisers against torch.optim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from epicortex import native
from epicortex.evaluation.optimisers import find_optimiser

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.15, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3}),
]


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=str)
def test_as_torch(name: str, arguments: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    mine = rng.normal(size=53).astype(np.float32)
    theirs = torch.nn.Parameter(torch.from_numpy(mine.copy()))
    optimiser, reference = (
        getattr(native, name)(**arguments),
        getattr(torch.optim, name)([theirs], **arguments),
    )
    for step in range(20):
        gradient = rng.normal(size=53).astype(np.float32)
        theirs.grad = torch.from_numpy(gradient.copy())
        if step == 10:
            optimiser.lr *= 0.5
            reference.param_groups[0]["lr"] *= 0.5
        reference.step()
        optimiser.step(mine, gradient)
    np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adadelta"])
def test_weight_decay_only_where_told(name: str) -> None:
    weights = np.ones(20, np.float32)
    mask = (np.arange(20) < 7).astype(np.float32)
    optimiser = getattr(native, name)(lr=0.1, weight_decay=0.5, decayed=mask)
    optimiser.step(weights, np.zeros(20, np.float32))
    assert (weights[7:] == 1).all()
    assert (weights[:7] < 1).all()


def test_another_vector_is_refused() -> None:
    optimiser = native.Adam()
    optimiser.step(np.zeros(4, np.float32), np.zeros(4, np.float32))
    with pytest.raises(native.NativeError, match="cannot step over 5 parameters"):
        optimiser.step(np.zeros(5, np.float32), np.zeros(5, np.float32))


def test_a_step_of_a_network_is_a_step_of_its_optimiser() -> None:
    program = native.Program((7,), [native.Full(3)])
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(20, 7)).astype(np.float32), rng.integers(0, 3, 20)
    start = rng.normal(size=program.parameters).astype(np.float32)
    one, two = (native.Network(program, start.copy()) for _ in range(2))
    within, apart = native.AdamW(), native.AdamW()
    for _ in range(3):
        one.step(x, range(20), labels, optimiser=within)
        two.step(x, range(20), labels)
        apart.step(two.parameters, two.gradient)
    assert np.array_equal(one.parameters, two.parameters)


@given(
    st.integers(1, 40),
    st.integers(1, 70),
    st.integers(0, 1000),
    st.floats(1e-6, 1e6),
)
def test_an_orthogonal_step_keeps_directions_and_makes_them_alike(
    rows: int, columns: int, seed: int, size: float
) -> None:
    """The step is U f(S) Vᵀ where the gradient is U S Vᵀ: f is the polynomial, applied five times."""
    gradient = np.random.default_rng(seed).normal(size=(rows, columns)) * size
    u, singular, v = np.linalg.svd(gradient, full_matrices=False)
    values = singular / np.sqrt(np.square(singular).sum())
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    expected = (u * values) @ v * np.sqrt(max(1.0, rows / columns))
    weights = np.zeros(rows * columns, np.float32)
    optimiser = native.OrthogonalSGD(lr=0.5, matrix_rate=0.5)
    optimiser.matrices = (native.Matrix(0, rows, columns, np.arange(rows * columns, dtype=np.int32)),)
    optimiser.step(weights, gradient.astype(np.float32).reshape(-1))
    np.testing.assert_allclose(weights.reshape(rows, columns), -0.25 * expected, atol=2e-3)
    if rows * 2 <= columns:  # far from singular
        assert (np.linalg.svd(weights.reshape(rows, columns))[1] / 0.25 > 0.5).all()
        assert (np.linalg.svd(weights.reshape(rows, columns))[1] / 0.25 < 1.3).all()


def test_what_is_no_matrix_takes_the_steps_of_sgd() -> None:
    rng = np.random.default_rng(1)
    mine, gradient = rng.normal(size=(2, 60)).astype(np.float32)
    others = np.r_[0:7, 37:60]
    arguments: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
    theirs = mine.copy()
    optimiser, plain = native.OrthogonalSGD(**arguments), native.SGD(**arguments)
    optimiser.matrices = (native.Matrix(7, 5, 6, np.arange(30, dtype=np.int32)),)
    for _ in range(3):
        optimiser.step(mine, gradient)
        plain.step(theirs, gradient)
    assert np.array_equal(mine[others], theirs[others])
    assert not np.isclose(mine[7:37], theirs[7:37]).any()


@pytest.mark.parametrize("nesterov", [True, False])
def test_orthogonal_steps_are_those_of_the_twin_in_torch(nesterov: bool) -> None:
    """A layer of kernels of several shapes, around which a gradient is 0, and one that is no convolution."""
    rng = np.random.default_rng(1)
    program = native.Program((3, 8, 8), [native.Conv([(3, 3)] * 9 + [(1, 3), (5, 1)]), native.Full(4)])
    arguments: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "nesterov": nesterov, "weight_decay": 0.01}
    arguments |= {"matrix_rate": 0.3, "matrix_decay": 0.1}
    mine = rng.normal(size=program.parameters).astype(np.float32)
    theirs = [torch.nn.Parameter(torch.from_numpy(one.copy())) for one in program.unflatten(mine)]
    optimiser, reference = (
        native.OrthogonalSGD(**arguments),
        find_optimiser("OrthogonalSGD")(theirs, **arguments),
    )
    optimiser.matrices = program.matrices()
    for _ in range(10):
        gradient = rng.normal(size=program.parameters).astype(np.float32)
        for one, own in zip(theirs, program.unflatten(gradient), strict=True):
            one.grad = torch.from_numpy(own.copy())
        optimiser.step(mine, gradient)
        reference.step()
    learned = program.flatten([one.detach().numpy() for one in theirs])
    np.testing.assert_allclose(mine, learned, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (native.Matrix(5, 3, 2, np.arange(6, dtype=np.int32)), "not among the parameters"),
        (native.Matrix(0, 0, 2, np.arange(6, dtype=np.int32)), "size of a matrix"),
        (native.Matrix(0, 2, 2, np.arange(6, dtype=np.int32)), "outside of its matrix"),
    ],
    ids=str,
)
def test_matrices_that_are_not_there_are_refused(matrix: native.Matrix, words: str) -> None:
    optimiser = native.OrthogonalSGD(lr=0.1)
    optimiser.matrices = (matrix,)
    with pytest.raises(native.NativeError, match=words):
        optimiser.step(np.zeros(10, np.float32), np.zeros(10, np.float32))


def test_other_matrices_count_from_the_next_step_on() -> None:
    places = np.arange(4, dtype=np.int32)
    first, second = native.Matrix(0, 2, 2, places), native.Matrix(4, 2, 2, places)
    changing = native.OrthogonalSGD(lr=0.1, matrix_rate=0.5, matrix_decay=0.0)
    weights, gradient = np.zeros(8, np.float32), np.arange(1, 9, dtype=np.float32)
    for matrices in ((first,), (second,), (first, second)):
        before = weights.copy()
        alone = native.OrthogonalSGD(lr=0.1, matrix_rate=0.5, matrix_decay=0.0)
        alone.matrices = changing.matrices = matrices
        changing.step(weights, gradient)
        expected = before.copy()
        alone.step(expected, gradient)
        np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize(
    "places",
    [
        np.arange(4),
        np.arange(4, dtype=np.int32).reshape(2, 2),
        np.arange(8, dtype=np.int32)[::2],
        np.arange(4, dtype=np.int32)[::-1],
    ],
    ids=["of 64 bits", "two dimensions", "every other", "backwards"],
)
def test_places_that_the_library_cannot_read_are_refused(places: Any) -> None:
    with pytest.raises(native.NativeError, match="contiguous vector of int32"):
        native.Matrix(0, 2, 2, places)


def test_orthogonal_steps_have_no_dampening() -> None:
    with pytest.raises(native.NativeError, match="no dampening"):
        native.OrthogonalSGD(lr=0.1, momentum=0.9, dampening=0.1)
