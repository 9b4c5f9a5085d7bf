"""The same networks on native arithmetic: answers, a training step and running statistics as with torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex import native
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([(3, 12, 10), (2, 17), (6,)]), st.integers(0, 2**31), st.integers(0, 8))
def test_a_training_step_and_the_answers_after_it_are_those_of_torch(
    shape: tuple[int, ...], seed: int, steps: int
) -> None:
    rng = np.random.default_rng(seed)
    family = ResidualFamily(Problem(shape, 4))
    phenotype = family.minimal(rng)
    for _ in range(steps):
        phenotype = family.grow(phenotype, rng)
    x = rng.normal(size=(48, *shape)).astype(np.float32)
    y = rng.integers(0, 4, 48)

    tensors, state = family.tensors(phenotype)
    program = native.Program(shape, family.operations(phenotype))
    assert program.parameters == family.parameters(phenotype)
    network = native.Network(program, program.flatten(tensors), state.copy())
    loss = network.step(x, np.arange(48), y, optimiser=native.SGD(lr=0.01))

    model = family.build(phenotype).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    expected = torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
    expected.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    assert loss == pytest.approx(expected.item(), rel=1e-4)

    learned = [array.astype(np.float32) for array in program.unflatten(network.parameters)]
    ours = family.with_tensors(phenotype, learned, network.state)
    theirs = family.learned(phenotype, model)
    for mine, yours in zip(ours.genes, theirs.genes, strict=True):
        for name in mine:
            assert np.allclose(mine[name], yours[name], rtol=1e-3, atol=1e-4), name
    with torch.inference_mode():
        answers = model.eval()(torch.from_numpy(x)).numpy()
    assert np.allclose(network.score(x), answers, rtol=1e-2, atol=1e-3)


def test_what_goes_there_and_back_is_the_same_network() -> None:
    family = ResidualFamily(Problem((1, 8, 8), 3))
    phenotype = family.minimal(np.random.default_rng(1))
    tensors, state = family.tensors(phenotype)
    assert family.with_tensors(phenotype, tensors, state).same_bits(phenotype)
