"""Outputs, losses and gradients against torch in float64.

Every tensor has several entries and every batch some samples: a sum of a few numbers that nearly cancel has
no digits left in float32, whoever adds them. A gradient that is exactly 0, such as that of a bias below a
norm, is compared with the largest of the network.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicortex import native
from epicortex.native import Activation, Add, Conv, CrossEntropy, Full, Norm, Operation, Pool, Program
from tests.native.reference import KINKED, Reference
from tests.native.worlds import World, kernels, programs, world

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

ONE, WHOLE = 1e-5, 1e-4
#: A tensor whose gradients are so much smaller than those of others has none but float64's rounding.
NONE = 1e-9
SMOOTH = tuple(name for name in native.ACTIVATIONS if name not in KINKED)


def torch_gradients(given: World) -> tuple[Reference, float]:
    """torch's own gradients and loss."""
    reference = Reference(given.program, given.parameters, given.state)
    loss = reference.loss(reference(torch.from_numpy(given.x).double(), training=True), given.answers)
    loss.backward()  # type: ignore[no-untyped-call]
    return reference, loss.item()


def worst_error(given: World) -> tuple[float, float]:
    """The largest error over the largest gradient of any tensor; how near a value came to a kink."""
    reference, expected = torch_gradients(given)
    network = given.network()
    loss = given.step(network)
    worst = abs(loss - expected) / max(abs(expected), 1e-2)
    found, gradients = given.program.unflatten(network.gradient.astype(np.float64)), reference.gradients()
    scales = [np.abs(exact).max() for exact in gradients]
    for mine, exact, own in zip(found, gradients, scales, strict=True):
        scale = own if own > NONE * max(scales) else max(scales)
        worst = max(worst, np.abs(mine - exact).max() / max(scale, 1e-12))
    if len(given.state):
        moved = np.abs(network.state - reference.state.numpy()).max()
        assert moved < 1e-5 * max(1.0, np.abs(reference.state.numpy()).max())
    return worst, reference.nearest_kink


def scored_error(given: World) -> float:
    """The largest error of an output or a sample's loss in scoring."""
    reference = Reference(given.program, given.parameters, given.state)
    with torch.no_grad():
        outputs = reference(torch.from_numpy(given.x).double(), training=False)
        losses = reference.loss(outputs, given.answers, reduction="none").numpy()
    network, rows = given.network(), np.arange(len(given.x))
    mine = network.score(given.x), network.losses(given.x, rows, given.answers)
    return max(
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1.0))
        for a, b in zip(mine, (outputs.numpy(), losses), strict=True)
    )


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs(names=SMOOTH), samples=st.integers(16, 40), seed=st.integers(0, 99))
def test_whole_networks(program: Program, samples: int, seed: int) -> None:
    drawn = world(program, samples, seed)
    assert worst_error(drawn)[0] < WHOLE
    assert scored_error(drawn) < WHOLE


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs(), samples=st.integers(16, 24), seed=st.integers(0, 99))
def test_whole_networks_with_kinks(program: Program, samples: int, seed: int) -> None:
    for attempt in range(5):
        drawn = world(program, samples, seed + 100 * attempt)
        assert scored_error(drawn) < WHOLE
        error, kink = worst_error(drawn)
        if kink > 1e-4:  # float32 is on the same side of every kink
            assert error < WHOLE
            return


def around(*operations: Operation, shape: tuple[int, ...] = (3, 9, 8)) -> Program:
    """Operations between a convolution, so that they get a gradient, and an output."""
    rank = len(shape) - 1
    return Program(shape, [Conv([(3,) * rank, (1,) * rank, (3,) * rank], bias=False), *operations, Full(4)])


@pytest.mark.parametrize("samples", [1, 16, 33])
@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name: str, samples: int) -> None:
    assert worst_error(world(around(Activation(name)), samples))[0] < ONE


@pytest.mark.parametrize("name", KINKED)
def test_activations_with_kinks(name: str) -> None:
    seeds = (world(around(Activation(name)), 3, seed) for seed in range(50))
    errors = [error for error, kink in map(worst_error, seeds) if kink > 1e-5]
    assert errors
    assert max(errors) < ONE


@pytest.mark.parametrize("samples", [16, 17, 50])
@pytest.mark.parametrize(
    "operations",
    [
        [Norm()],
        [Norm(epsilon=1e-3, momentum=0.3), Activation("silu")],
        [Norm(), Add(1), Activation("elu")],
        [Norm(), Activation("gelu"), Add(2), Activation("gelu")],
        [Add(1)],
        [Pool((2, 3))],
        [Pool((9, 8), 3.0)],
        [Pool()],
        [Full(20), Norm(), Activation("tanh")],
        [
            Conv([(3, 3)] * 12, (2, 2), bias=False),
            Norm(),
            Conv([(1, 1)] * 12, (2, 2), input=1),
            Norm(),
            Add(3),
        ],
    ],
    ids=str,
)
def test_operations(operations: list[Operation], samples: int) -> None:
    drawn = world(around(*operations), samples)
    assert worst_error(drawn)[0] < ONE
    assert scored_error(drawn) < ONE


def test_the_same_slot_twice() -> None:
    assert worst_error(world(around(Add(1), Activation("tanh")), 5))[0] < ONE
    assert worst_error(world(around(Add(1, input=1), Activation("tanh")), 5))[0] < ONE


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data(), samples=st.integers(8, 24))
def test_convolutions(data: st.DataObject, samples: int) -> None:
    rank = data.draw(st.integers(1, 2))
    shape = (data.draw(st.integers(1, 12)), *(data.draw(st.integers(1, 13)) for _ in range(rank)))
    stride = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    shapes = data.draw(st.lists(kernels(rank, 9), min_size=2, max_size=24))
    # a convolution below it, so that it passes a gradient on
    below = Conv([(1,) * rank] * shape[0])
    drawn = world(Program(shape, [below, Conv(shapes, stride), Full(3)]), samples)
    assert worst_error(drawn)[0] < ONE
    assert scored_error(drawn) < ONE


@pytest.mark.parametrize("samples", [1, 7, 40])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weights", [None, [0.2, 1.0, 3.0, 0.0]])
def test_cross_entropy(smoothing: float, weights: list[float] | None, samples: int) -> None:
    program = Program((5,), [Full(4)], CrossEntropy(smoothing, weights))
    drawn = world(program, samples)
    if weights is not None and not np.any(drawn.answers != 3):
        pytest.skip("the mean over weights of 0 is undefined")
    assert worst_error(drawn)[0] < ONE
    assert scored_error(drawn) < ONE


@pytest.mark.parametrize("loss", [native.SigmoidCrossEntropy(), native.SquaredError()])
def test_other_losses(loss: native.Loss) -> None:
    drawn = world(Program((5,), [Full(4)], loss), 19)
    assert worst_error(drawn)[0] < ONE
    assert scored_error(drawn) < ONE


def test_large_values_stay_exact() -> None:
    """A norm far from 0: sums of squares would cancel."""
    drawn = world(around(Norm(), Activation("smooth")), 64)
    far = World(drawn.program, drawn.parameters, drawn.state, drawn.x + 100.0, drawn.answers)
    assert worst_error(far)[0] < 1e-3


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_a_number_goes_through(value: float) -> None:
    for operations in (
        [],
        [Norm(), Activation("relu")],
        [Activation("leaky_relu"), Pool()],
        [Activation("gelu")],
    ):
        drawn = world(around(*operations), 20)
        drawn.x[3, 1, 2, 2] = value
        assert np.isnan(drawn.step(drawn.network()))
