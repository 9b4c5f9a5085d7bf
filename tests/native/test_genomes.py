"""Whole networks as evolution makes them, of both families: gradients and answers against float64.

Batches have 16 samples or more. Where a norm sees fewer numbers, the gradients below it are differences of
nearly equal ones, which no float32 can hold: with two samples of a table they are all 0.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from epicortex import native
from epicortex.families.activations import Activations
from epicortex.families.family import Problem
from epicortex.families.layered import draw_phenotype, programs
from epicortex.families.layered.genome import Genome
from epicortex.families.residual import ResidualFamily, ResidualOptions
from tests.native.test_gradients import SMOOTH, WHOLE, scored_error, worst_error
from tests.native.worlds import World
from tests.strategies import genomes, seeds

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

#: Farther from 0 than float32 can be off: both are on the same side of every rectifier.
CLEAR = 1e-5
quick = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def layered(genome: Genome, activations: Activations, samples: int, seed: int) -> World:
    """A network of the layered family, weights as they are drawn at birth."""
    rng = np.random.default_rng(seed)
    program = native.Program(genome.input_shape, programs.operations(genome, activations))
    tensors = programs.tensors(draw_phenotype(genome, rng=rng))
    x = rng.normal(size=(samples, *genome.input_shape)).astype(np.float32)
    answers = rng.integers(0, program.outputs, samples)
    return World(program, program.flatten(tensors), program.initial_state(), x, answers)


def residual(shape: tuple[int, ...], mutations: int, samples: int, seed: int) -> World:
    """A network of the residual family after some mutations."""
    rng = np.random.default_rng(seed)
    family = ResidualFamily(Problem(shape, 4), ResidualOptions(start_parameters=900, kernel_mix=0.3))
    phenotype = family.minimal(rng)
    for _ in range(mutations):
        done = family.mutate(phenotype, grow=0.7, relative_fitness=0.5, rng=rng)
        phenotype = done.phenotype or phenotype
    tensors, state = family.tensors(phenotype)
    program = native.Program(shape, family.operations(phenotype))
    x = rng.normal(size=(samples, *shape)).astype(np.float32)
    return World(program, program.flatten(tensors), state.copy(), x, rng.integers(0, 4, samples))


FLAT = ((1, 8, 8), (2, 7, 6), (3, 2, 13), (5,), (2, 12))


@quick
@given(genomes(FLAT), st.sampled_from(SMOOTH), st.sampled_from(SMOOTH), st.integers(16, 64), seeds)
def test_layered_networks(genome: Genome, conv: str, full: str, samples: int, seed: int) -> None:
    drawn = layered(genome, Activations(conv, full), samples, seed)
    assert worst_error(drawn)[0] < WHOLE
    assert scored_error(drawn) < WHOLE


@quick
@given(genomes(FLAT), st.sampled_from(["leaky_relu", "relu"]), st.integers(16, 32), seeds)
def test_layered_networks_with_rectifiers(genome: Genome, conv: str, samples: int, seed: int) -> None:
    drawn = layered(genome, Activations(conv), samples, seed)
    assert scored_error(drawn) < WHOLE
    error, kink = worst_error(drawn)
    assume(kink > CLEAR)
    assert error < WHOLE


@quick
@given(st.sampled_from([(3, 8, 7), (1, 8, 8), (2, 17), (6,)]), st.integers(0, 6), st.integers(16, 64), seeds)
def test_residual_networks(shape: tuple[int, ...], mutations: int, samples: int, seed: int) -> None:
    drawn = residual(shape, mutations, samples, seed)
    assert scored_error(drawn) < WHOLE
    error, kink = worst_error(drawn)
    assume(kink > CLEAR)
    assert error < WHOLE
