"""The native optimisers against torch.optim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from epicortex import native

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
