"""The same bits with every instruction set that the machine has, whatever the size of a batch."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicortex import native
from epicortex.native import Program
from tests.native.worlds import programs, world

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), samples=st.integers(1, 35), seed=st.integers(0, 99))
def test_instruction_sets_agree(program: Program, samples: int, seed: int) -> None:
    drawn = world(program, samples, seed)
    results = []
    for simd in native.instruction_sets():
        network = drawn.network(simd)
        optimiser = native.OrthogonalSGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
        optimiser.matrices = program.matrices()
        losses = [drawn.step(network, optimiser=optimiser) for _ in range(2)]
        scores = network.score(drawn.x)
        results.append(
            (
                losses,
                network.parameters.tobytes(),
                network.state.tobytes(),
                network.gradient.tobytes(),
                scores.tobytes(),
            )
        )
    assert all(result == results[0] for result in results[1:])


def test_a_sample_scores_alike_in_any_company() -> None:
    drawn = world(Program((2, 6, 6), [native.Conv([(3, 3), (5, 1)]), native.Norm(), native.Full(3)]), 40)
    network = drawn.network()
    every = network.score(drawn.x)
    for rows in ([7], [39, 7, 7], list(range(17))):
        assert np.array_equal(network.score(drawn.x, rows), every[rows])


def test_steps_repeat_exactly() -> None:
    drawn = world(Program((2, 6, 6), [native.Conv([(3, 3), (5, 1)]), native.Norm(), native.Full(3)]), 40)
    first, second = drawn.network(), drawn.network()
    drawn.step(second)  # larger memory, used before
    second.state[:] = first.state
    rows = np.arange(21)
    for network in (first, second):
        network.step(drawn.x, rows, drawn.answers[:21])
    assert np.array_equal(first.gradient, second.gradient)
    assert np.array_equal(first.state, second.state)


def test_optimisers_agree() -> None:
    code = (
        "import sys, numpy as np\n"
        "from epicortex import native\n"
        "rng = np.random.default_rng(1)\n"
        "w, g = rng.normal(size=(2, 1003)).astype(np.float32)\n"
        "w = w.copy()\n"
        "o = [native.SGD(lr=.1, momentum=.9, weight_decay=.01), native.Adadelta()]\n"
        "o += [native.Adam(), native.AdamW()]\n"
        "for _ in range(3): [each.step(w, g.copy()) for each in o]\n"
        "print(w.tobytes().hex())\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "EPICORTEX_SIMD": simd},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for simd in native.instruction_sets()
    }
    assert len(seen) == 1


LOSSES = (
    native.CrossEntropy(),
    native.CrossEntropy(label_smoothing=0.1),
    native.SigmoidCrossEntropy(),
    native.SquaredError(),
)


@pytest.mark.parametrize("loss", LOSSES)
@given(
    samples=st.integers(0, 40), outputs=st.integers(1, 20), size=st.floats(0.1, 50), seed=st.integers(0, 99)
)
def test_losses_of_samples_are_those_of_float64_with_the_same_bits_everywhere(
    loss: native.Loss, samples: int, outputs: int, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    answers = (size * rng.standard_normal((samples, outputs))).astype(np.float32)
    labelled = isinstance(loss, native.CrossEntropy)
    smoothing = loss.label_smoothing if isinstance(loss, native.CrossEntropy) else 0.0
    right = rng.integers(0, outputs, samples) if labelled else rng.random((samples, outputs), np.float32)
    found = [native.sample_losses(loss, answers, right, simd=simd) for simd in native.instruction_sets()]
    assert len({one.tobytes() for one in found}) == 1
    z = answers.astype(np.float64)
    if labelled:
        own, any_label = z[np.arange(samples), right], z.mean(1)
        expected = np.logaddexp.reduce(z, 1) - (1 - smoothing) * own - smoothing * any_label
    elif isinstance(loss, native.SquaredError):
        expected = ((z - right) ** 2).mean(1)
    else:
        expected = (np.logaddexp(0, z) - right * z).mean(1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6 * max(1, size))


def test_losses_of_what_does_not_fit_are_refused() -> None:
    answers = np.zeros((3, 2), np.float32)
    for loss, right in ((LOSSES[0], np.array([0, 1, 2])), (LOSSES[0], np.zeros(2)), (LOSSES[3], np.zeros(3))):
        with pytest.raises(native.NativeError):
            native.sample_losses(loss, answers, right)


def test_an_unknown_instruction_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICORTEX_SIMD", "neon")
    with pytest.raises(native.NativeError, match="EPICORTEX_SIMD is 'neon'"):
        native.instruction_set()
