"""Hypothesis strategies for genomes and phenotypes, and quick random genomes for long chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from hypothesis import strategies as st

from epicortex.families.family import Problem, Shape
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.layers import HiddenLayer
from epicortex.families.layered.phenotype import Phenotype

#: The inputs that evolution must cope with: images, a wide one, a table, a signal, a volume.
INPUT_SHAPES: Final[tuple[Shape, ...]] = (
    (1, 28, 28),
    (3, 32, 32),
    (1, 8, 8),
    (3, 5, 64),
    (20,),
    (1, 128),
    (1, 8, 8, 8),
)
#: Small enough for references that look at every single weight.
SMALL_SHAPES: Final[tuple[Shape, ...]] = ((1, 8, 8), (2, 7, 6), (3, 2, 13), (5,), (2, 12), (1, 6, 4, 5))

seeds = st.integers(0, 2**32 - 1)
shares = st.floats(0.05, 0.95)


def odd_sizes(size: int) -> list[int]:
    """Every kernel extent allowed over an input of this size, found by trying."""
    return [extent for extent in range(1, size + 1, 2) if extent == 1 or 2 * extent <= size]


def strides(size: int) -> list[int]:
    """Every stride allowed over an input of this size, found by trying."""
    return [stride for stride in range(1, size + 1) if stride == 1 or 2 * stride <= size]


def build_genome(
    shape: Shape,
    classes: int,
    *,
    convolutions: int,
    full: Sequence[int],
    kernels: Callable[[], int],
    pick: Callable[[list[int]], int],
) -> Genome:
    """A genome within all limits; `kernels` says how many a layer gets, `pick` takes one of the allowed."""
    hidden: list[HiddenLayer] = []
    spatial = shape[1:]
    for _ in range(convolutions if spatial else 0):
        shapes = [tuple(pick(odd_sizes(size)) for size in spatial) for _ in range(kernels())]
        stride = tuple(pick(strides(size)) for size in spatial)
        hidden.append(ConvLayer(tuple(shapes), stride))
        spatial = tuple(len(range(0, size, step)) for size, step in zip(spatial, stride, strict=True))
    return Genome(shape, (*hidden, *map(FullLayer, full)), classes)


@st.composite
def genomes(
    draw: st.DrawFn, shapes: Sequence[Shape] = INPUT_SHAPES, *, nodes: int = 5, classes: int = 4
) -> Genome:
    """Any valid genome of a few layers."""
    return build_genome(
        draw(st.sampled_from(shapes)),
        draw(st.integers(1, classes)),
        convolutions=draw(st.integers(0, 3)),
        full=draw(st.lists(st.integers(1, nodes), max_size=2)),
        kernels=lambda: draw(st.integers(1, nodes)),
        pick=lambda allowed: draw(st.sampled_from(allowed)),
    )


@st.composite
def phenotypes(draw: st.DrawFn, shapes: Sequence[Shape] = SMALL_SHAPES) -> Phenotype:
    """A genome with drawn weights."""
    # a seed that no test uses itself: equal numbers by accident would look like inherited ones
    return draw_phenotype(draw(genomes(shapes)), rng=np.random.default_rng([draw(seeds), 1]))


@st.composite
def families(draw: st.DrawFn, shapes: Sequence[Shape] = SMALL_SHAPES) -> LayeredFamily:
    """Layered networks for any one problem."""
    return LayeredFamily(Problem(draw(st.sampled_from(shapes)), draw(st.integers(1, 4))))


@st.composite
def members(draw: st.DrawFn, family: LayeredFamily) -> Phenotype:
    """A network of this family, with drawn weights."""
    shape, classes = family.problem.input_shape, family.problem.outputs
    genome = Genome(shape, draw(genomes([shape])).hidden, classes)
    return draw_phenotype(genome, rng=np.random.default_rng([draw(seeds), 3]))


@st.composite
def parents(draw: st.DrawFn, shapes: Sequence[Shape] = SMALL_SHAPES) -> tuple[Phenotype, Phenotype]:
    """Two networks for the same input and classes, of any two species."""
    one = draw(phenotypes(shapes))
    other = draw(genomes([one.genome.input_shape]))
    mate = Genome(other.input_shape, other.hidden, one.genome.classes)
    return one, draw_phenotype(mate, rng=np.random.default_rng([draw(seeds), 2]))


def random_genome(rng: np.random.Generator, shape: Shape, classes: int = 10) -> Genome:
    """A random genome of up to three convolutions and two full layers, from a numpy generator.

    Most have small kernels and strides, as evolution draws them; some have any, some the largest.
    """
    style = rng.random()

    def pick(allowed: list[int]) -> int:
        if style < 0.2:
            return allowed[-1]
        if style < 0.4:
            return allowed[rng.integers(len(allowed))]
        return allowed[min(int(rng.exponential(1.0)), len(allowed) - 1)]

    return build_genome(
        shape,
        classes,
        convolutions=int(rng.integers(0, 4)),
        full=[int(nodes) for nodes in rng.integers(1, 9, size=rng.integers(0, 3))],
        kernels=lambda: int(rng.integers(1, 7)),
        pick=pick,
    )
