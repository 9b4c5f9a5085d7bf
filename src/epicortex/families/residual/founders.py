"""First networks: sensible skeletons, as wide as a limit of cost and of parameters allows.

Which skeleton and which width it is follows from the limits; kernels and weights are drawn. Which limits a
run has is left to whoever starts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from epicortex.families.family import Problem, Shape
from epicortex.families.residual.drawing import draw_phenotype, renewed
from epicortex.families.residual.genome import Block, Genome, Recipe, Stage, Trunk, columns
from epicortex.families.residual.phenotype import Phenotype

#: No first stage is wider than this: more cost than this is better spent on depth.
_WIDEST: Final = 256
#: Below these widths a skeleton is too deep for its limits, or widens too fast.
_NARROWEST: Final = 5
_TOO_NARROW: Final = 4
_MOST_STAGES: Final = 4
#: By how much stages widen: what a limit of cost allows is best spent where maps are small.
_WIDENING: Final = {2: 2.5, 3: 2.5, 4: 2.0}
_SCARCE: Final = 1.4
#: A shape that uses less than this part of the cost makes room for one with larger maps.
_USED: Final = 0.35


#: What networks on columns begin with: small steps, and a decay that holds a linear model back.
COLUMNS: Final = Recipe(rate=0.25, decay=16.0)
LINEAR: Final = Recipe(rate=0.125, decay=16.0)


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """A network but for its widths."""

    strides: tuple[Shape, ...]
    blocks: tuple[int, ...]
    widening: float = 2.0
    """How many times as wide as the one before a stage is."""
    trunk: Trunk = "relu"
    """Along a linear trunk, the widths are those inside of blocks."""


def sized_founder(
    problem: Problem,
    rng: np.random.Generator,
    *,
    max_cost: int | None = None,
    max_parameters: int | None = None,
    kernel_mix: float = 0.0,
    decay: float = 1.0,
    like: Phenotype | None = None,
) -> Phenotype:
    """A network of a sensible shape that nearly fills the limits, or the smallest there is if none does.

    Stages get wider, and every stage but the first halves its maps. Where the limits are too tight for that,
    blocks go first, then the widening. Where parameters are scarce and cost is not, more of them work on
    large maps. Of pictures and signals, a founder `like` another has its shape, unless it would be too thin;
    its weights decay times `decay`.

    >>> problem = Problem((3, 32, 32), 10)
    >>> founder = sized_founder(problem, np.random.default_rng(1), max_cost=5_000_000)
    >>> print(founder.genome, "·", founder.genome.parameters)  # doctest: +NORMALIZE_WHITESPACE
    conv 7 (3×3) → conv 18/2×2 (3×3) → block 18 (3×3) → conv 46/2×2 (3×3) → block 46 (3×3)
    → out 10 · 53563
    """
    usual, scarce = skeletons(problem.input_shape)
    if len(problem.input_shape) == 1:  # nobody knows how deep a network for a table should be
        usual = tuple(usual[place] for place in rng.permutation(len(usual)))

    def fits(genome: Genome) -> bool:
        return (max_cost is None or genome.cost <= max_cost) and (
            max_parameters is None or genome.parameters <= max_parameters
        )

    same = () if like is None or len(problem.input_shape) == 1 else (_skeleton(like.genome),)
    tried: list[tuple[int, _Skeleton, float]] = []
    for skeleton in (*same, *usual, *scarce):
        width = _width(problem, skeleton, fits)
        if width >= _NARROWEST:
            tried.append((_genome(problem, skeleton, width).cost, skeleton, width))
            if skeleton in same or max_cost is None or tried[-1][0] >= _USED * max_cost:
                break
    if tried:
        _, skeleton, width = max(tried, key=lambda one: one[0])
    else:
        skeleton, width = _smallest(problem, scarce[-1], fits)
    genome = _genome(problem, skeleton, width, kernel_mix, rng)
    if len(problem.input_shape) > 1:
        genome = replace(genome, recipe=Recipe(decay=decay))
    return draw_phenotype(renewed(genome, rng), rng)


def _smallest(
    problem: Problem, skeleton: _Skeleton, fits: Callable[[Genome], bool]
) -> tuple[_Skeleton, float]:
    """What is left where limits are tight: no blocks, and then no widening, and fewer nodes than columns."""
    plain = replace(skeleton, blocks=(0,) * len(skeleton.blocks))
    width = _width(problem, plain, fits)
    if width >= _TOO_NARROW:
        return plain, width
    even = replace(plain, widening=1.0, trunk="relu")
    return even, max(1.0, _width(problem, even, fits))


def skeletons(input_shape: Shape) -> tuple[tuple[_Skeleton, ...], tuple[_Skeleton, ...]]:
    """The shapes that a founder may have, for an input [channels, *spatial].

    First the usual ones, for maps the best of them first; then those that do more with few parameters.
    """
    spatial = input_shape[1:]
    if not spatial:
        tables = tuple(_Skeleton(((),), (blocks,), trunk="linear") for blocks in (1, 2, 3))
        return tables, tables[:1]
    strides, sizes = [tuple(_first_stride(size, len(spatial)) for size in spatial)], list(spatial)
    sizes = [-(-size // step) for size, step in zip(sizes, strides[0], strict=True)]
    while len(strides) < _MOST_STAGES and (max(sizes) > 8 or len(strides) < 2):
        step = tuple(2 if size >= 4 else 1 for size in sizes)
        strides.append(step)
        sizes = [-(-size // stride) for size, stride in zip(sizes, step, strict=True)]
    depth = len(strides)
    even = (1,) * depth
    lean, top = (0, *even[1:]), (0, *even[1:-1], 2)
    wide = tuple(_Skeleton(tuple(strides), blocks, _WIDENING[depth]) for blocks in (lean, top, even))
    return wide, (_Skeleton(tuple(strides), even, _SCARCE),)


def _skeleton(genome: Genome) -> _Skeleton:
    """What a network with maps is like, but for its widths."""
    stages = genome.stages
    widening = (stages[-1].width / stages[0].width) ** (1 / max(1, len(stages) - 1))
    return _Skeleton(
        tuple(stage.stride for stage in stages), tuple(len(stage.blocks) for stage in stages), widening
    )


def _first_stride(size: int, spatial: int) -> int:
    """Large images are seen in steps at first: 1 up to 48, then 2, then 4. Signals may be longer.

    >>> [_first_stride(size, 2) for size in (8, 28, 32, 64, 128, 224)], _first_stride(128, 1)
    ([1, 1, 1, 2, 4, 4], 2)
    """
    small = 96 if spatial == 1 else 48
    return 1 if size <= small else 2 if size <= 4 * small // spatial else 4


def _width(problem: Problem, skeleton: _Skeleton, fits: Callable[[Genome], bool]) -> float:
    """The largest first width that fits, in eighths, by bisection; 0 if none does."""
    low, high = 0, 8 * _WIDEST
    while low < high:
        middle = (low + high + 1) // 2
        if fits(_genome(problem, skeleton, middle / 8)):
            low = middle
        else:
            high = middle - 1
    return low / 8


def _genome(
    problem: Problem,
    skeleton: _Skeleton,
    width: float,
    kernel_mix: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Genome:
    """The skeleton at a first width; without a generator all kernels are alike."""
    spatial = len(problem.input_shape) - 1
    if skeleton.trunk == "linear":
        return _on_columns(problem, skeleton.blocks[0], width)

    def kernels(count: int) -> tuple[Shape, ...]:
        usual = (3 if spatial != 1 else 5,) * spatial
        if rng is None or not kernel_mix or not spatial:
            return (usual,) * count
        odd, narrow = rng.random(count) < kernel_mix, rng.integers(spatial, size=count)
        return tuple(
            tuple(1 if odd[node] and narrow[node] == axis else size for axis, size in enumerate(usual))
            for node in range(count)
        )

    stages = []
    for index, (stride, count) in enumerate(zip(skeleton.strides, skeleton.blocks, strict=True)):
        wide = max(1, round(width * skeleton.widening**index))
        ids = tuple(range(wide))
        blocks = tuple(Block(block, ids, kernels(wide), kernels(wide)) for block in range(count))
        stages.append(Stage(index, stride, ids, kernels(wide), blocks))
    return Genome(problem.input_shape, tuple(stages), tuple(range(problem.outputs)))


def linear_model(problem: Problem, rng: np.random.Generator) -> Phenotype:
    """The simplest network for a table: no blocks.

    >>> str(linear_model(Problem((4,), 3), np.random.default_rng(1)).genome)
    'columns 4 → out 3'
    """
    genome = replace(_on_columns(problem, 0, 1), recipe=LINEAR)
    return draw_phenotype(renewed(genome, rng), rng)


def _on_columns(problem: Problem, blocks: int, width: float) -> Genome:
    """A network for a table: a linear model of its columns, and blocks so wide inside."""
    ids, plain = columns(problem.input_shape), ((),)
    inner = tuple(range(max(1, round(width))))
    made = (Block(place, inner, plain * len(inner), plain * len(ids)) for place in range(blocks))
    stage = Stage(0, (), ids, plain * len(ids), tuple(made))
    return Genome(
        problem.input_shape, (stage,), tuple(range(problem.outputs)), recipe=COLUMNS, trunk="linear"
    )
