"""The structure of a residual network: stages, blocks, kernels of individual shape, factors of its recipe.

Every stage, block and node carries an id that is drawn when it comes into being and inherited from then on,
so that relatives can tell which genes are kin. Weights live in `phenotype`; JSON is read by `reading`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from epicortex.errors import GenomeError
from epicortex.families.family import Shape
from epicortex.families.residual.layers import Layer

FORMAT_VERSION: Final = 1
#: What passes by the blocks, and from stage to stage: rectified maps, or the columns of a table.
Trunk: TypeAlias = Literal["relu", "linear"]
#: What no sane network exceeds; a file that claims more is refused before anything is allocated.
MAX_SPATIAL: Final = 3
MAX_STAGES: Final = 64
MAX_BLOCKS: Final = 1_000
MAX_NODES: Final = 100_000
MAX_EXTENT: Final = 31
MAX_STRIDE: Final = 16
MAX_POOL: Final = 16
MAX_SIZE: Final = 2**20
MAX_WEIGHTS: Final = 10**9
#: Ids are below this, which every reader of JSON holds exactly.
MAX_ID: Final = 2**53
#: How far the factors of a recipe may go, up and down.
MAX_FACTOR: Final = 16.0


#: What pooled maps are multiplied with before the output layer: means over maps are small.
POOLING_GAIN: Final = 4.0


@dataclass(frozen=True, slots=True)
class Block:
    """relu(x + norm(conv(relu(norm(conv x))))): the inner convolution has a width of its own.

    Along a linear trunk the outer relu is left out.
    """

    id: int
    ids: tuple[int, ...]
    """The ids of the inner nodes."""
    inner: tuple[Shape, ...]
    """The kernels of the inner nodes."""
    outer: tuple[Shape, ...]
    """The kernels of the outer convolution: one for each channel of the stage."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A (strided) convolution and the blocks behind it, all of one width."""

    id: int
    stride: Shape
    ids: tuple[int, ...]
    """The ids of the channels, which are the nodes of the first convolution."""
    kernels: tuple[Shape, ...]
    """The kernels of the first convolution."""
    blocks: tuple[Block, ...] = ()

    @property
    def width(self) -> int:
        """How many channels it has."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Factors on the configured training that evolve with the network; 1 means as configured."""

    rate: float = 1.0
    decay: float = 1.0
    augmentation: float = 1.0


@dataclass(frozen=True)
class Genome:
    """A network's structure. Valid by construction: an impossible one raises `GenomeError`.

    >>> stage = Stage(1, (2, 2), (2, 3), ((3, 3), (1, 5)), (Block(4, (5,), ((3, 3),), ((3, 3), (3, 3))),))
    >>> genome = Genome((1, 28, 28), (stage,), out=(6, 7))
    >>> print(genome)
    conv 2/2×2 (3×3 1×5) → block 2 (3×3) inner 1 → out 2
    >>> genome.parameters, genome.cost
    (66, 9804)
    """

    input_shape: Shape
    stages: tuple[Stage, ...]
    out: tuple[int, ...]
    """The ids of the output nodes."""
    pool: int = 1
    """The side of the map that pooling leaves; 1 is global average pooling."""
    recipe: Recipe = Recipe()
    trunk: Trunk = "relu"
    """A linear trunk begins with the columns of a table, normalised, and is rectified inside blocks only: to
    a linear model blocks add what is not linear."""

    def __post_init__(self) -> None:
        _validate(self)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def spatial(self) -> int:
        """How many spatial dimensions the input has; 0 for a table."""
        return len(self.input_shape) - 1

    @property
    def outputs(self) -> int:
        """How many numbers the network answers."""
        return len(self.out)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers in the order in which they are computed, the output layer last."""
        return tuple(_layers(self))

    @cached_property
    def parameters(self) -> int:
        """How many numbers can learn."""
        return sum(layer.parameters for layer in self.layers)

    @cached_property
    def cost(self) -> int:
        """The multiplications of one sample."""
        return sum(layer.cost for layer in self.layers)

    def replace_stage(self, index: int, **changes: Any) -> Genome:
        """The genome with one stage changed."""
        stages = list(self.stages)
        stages[index] = replace(stages[index], **changes)
        return replace(self, stages=tuple(stages))

    def replace_block(self, stage: int, index: int, **changes: Any) -> Genome:
        """The genome with one block changed."""
        blocks = list(self.stages[stage].blocks)
        blocks[index] = replace(blocks[index], **changes)
        return self.replace_stage(stage, blocks=tuple(blocks))

    def replace_kernels(self, layer: Layer, kernels: Sequence[Shape]) -> Genome:
        """The genome with other kernels in one of its convolutions."""
        if layer.role == "entry":
            return self.replace_stage(layer.stage, kernels=tuple(kernels))
        return self.replace_block(layer.stage, layer.block, **{layer.role: tuple(kernels)})

    def __str__(self) -> str:
        parts = [part for stage in self.stages for part in texts(stage)]
        if self.trunk == "linear":
            parts[0] = f"columns {self.stages[0].width}"
        return " → ".join([*parts, f"out {self.outputs}"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the version of the format; the usual trunk goes without saying."""
        return {
            "format": FORMAT_VERSION,
            "input_shape": list(self.input_shape),
            "stages": [_stage_to_dict(stage) for stage in self.stages],
            "out": list(self.out),
            "pool": self.pool,
            "recipe": {field.name: getattr(self.recipe, field.name) for field in fields(Recipe)},
            **({} if self.trunk == "relu" else {"trunk": self.trunk}),
        }


def columns(input_shape: Shape) -> tuple[int, ...]:
    """The ids of what a network looks at.

    >>> columns((3,))
    (0, 1, 2)
    """
    return tuple(range(input_shape[0]))


def times(shape: Shape) -> str:
    """A shape as people write it.

    >>> times((3, 5))
    '3×5'
    """
    return "×".join(map(str, shape))


def texts(stage: Stage) -> Iterator[str]:
    """The parts of a stage for people: its first convolution, then its blocks."""
    stride = f"/{times(stage.stride)}" if set(stage.stride) - {1} else ""
    kind = "conv" if stage.stride else "full"
    yield f"{kind} {stage.width}{stride}{_mix(stage.kernels)}"
    for block in stage.blocks:
        inner = f" inner {len(block.ids)}" if len(block.ids) != stage.width else ""
        yield f"block {stage.width}{_mix(block.inner + block.outer)}{inner}"


def _mix(kernels: Sequence[Shape]) -> str:
    counts = Counter(kernels)
    if () in counts:
        return ""
    if len(set(counts.values())) == 1:
        return f" ({' '.join(map(times, counts))})"
    return f" ({' '.join(f'{count}·{times(kernel)}' for kernel, count in counts.most_common())})"


def _layers(genome: Genome) -> Iterator[Layer]:
    below, sources = genome.input_shape, columns(genome.input_shape)
    still = (1,) * genome.spatial
    for s, stage in enumerate(genome.stages):
        name = f"stages.{s}"
        if genome.trunk == "linear" and s == 0:
            below, sources = (0,), ()  # the columns themselves: nodes without weights
        entry = Layer(
            name, "entry", (stage.id, 0), s, -1, stage.kernels, stage.stride, stage.ids, sources, below
        )
        yield entry
        below, sources = entry.output, stage.ids
        for b, block in enumerate(stage.blocks):
            part, key = f"{name}.blocks.{b}", (stage.id, block.id)
            yield Layer(
                f"{part}.inner", "inner", (*key, 1), s, b, block.inner, still, block.ids, sources, below
            )
            middle = (len(block.ids), *below[1:])
            yield Layer(
                f"{part}.outer", "outer", (*key, 2), s, b, block.outer, still, stage.ids, block.ids, middle
            )
    pooled = (genome.pool,) * genome.spatial
    yield Layer(
        "out", "out", (), -1, -1, (pooled,) * genome.outputs, still, genome.out, sources, (below[0], *pooled)
    )


def _stage_to_dict(stage: Stage) -> dict[str, Any]:
    blocks = [
        {"id": b.id, "ids": list(b.ids), "inner": [*map(list, b.inner)], "outer": [*map(list, b.outer)]}
        for b in stage.blocks
    ]
    return {
        "id": stage.id,
        "stride": list(stage.stride),
        "ids": list(stage.ids),
        "kernels": [*map(list, stage.kernels)],
        "blocks": blocks,
    }


def _validate(genome: Genome) -> None:
    shape = genome.input_shape
    if not 1 <= len(shape) <= 1 + MAX_SPATIAL or not all(1 <= size <= MAX_SIZE for size in shape):
        raise GenomeError(
            f"input shape {times(shape)} must be channels and at most {MAX_SPATIAL} sizes, "
            f"each from 1 to {MAX_SIZE}"
        )
    if not 1 <= len(genome.stages) <= MAX_STAGES:
        raise GenomeError(f"a residual network has 1 to {MAX_STAGES} stages, not {len(genome.stages)}")
    if sum(len(stage.blocks) for stage in genome.stages) > MAX_BLOCKS:
        raise GenomeError(f"more than {MAX_BLOCKS} blocks")
    if not 1 <= genome.pool <= MAX_POOL or (genome.pool > 1 and not genome.spatial):
        raise GenomeError(f"pool must be from 1 to {MAX_POOL}, and 1 for a table, not {genome.pool}")
    if genome.trunk not in get_args(Trunk):
        raise GenomeError(f"trunk must be {' or '.join(get_args(Trunk))}, not {genome.trunk!r:.80}")
    if genome.trunk == "linear" and (genome.spatial or genome.stages[0].ids != columns(shape)):
        raise GenomeError("a linear trunk needs a table, and a first stage whose channels are its columns")
    _validate_recipe(genome.recipe)
    for stage in genome.stages:
        _validate_ids("a stage", [block.id for block in stage.blocks], least=0)
        for step in stage.stride:
            if not 1 <= step <= MAX_STRIDE:
                raise GenomeError(f"stride {times(stage.stride)} must be from 1 to {MAX_STRIDE}")
        if len(stage.stride) != genome.spatial:
            raise GenomeError(f"stride {times(stage.stride)} needs {genome.spatial} dimensions")
    _validate_ids("the network", [stage.id for stage in genome.stages])
    _validate_ids("out", genome.out)
    for layer in genome.layers[:-1]:
        _validate_layer(layer, genome.spatial)
    if any(math.prod(layer.weight_shape) > MAX_WEIGHTS for layer in genome.layers):
        raise GenomeError(f"a layer of more than {MAX_WEIGHTS} weights")


def _validate_recipe(recipe: Recipe) -> None:
    for field in fields(Recipe):
        factor = getattr(recipe, field.name)
        if not math.isfinite(factor) or not 1 / MAX_FACTOR <= factor <= MAX_FACTOR:
            raise GenomeError(
                f"recipe: {field.name} must be from 1/{MAX_FACTOR:g} to {MAX_FACTOR:g}, not {factor}"
            )


def _validate_ids(where: str, ids: Sequence[int], *, least: int = 1) -> None:
    if not least <= len(ids) <= MAX_NODES:
        raise GenomeError(f"{where}: needs {least} to {MAX_NODES} nodes, has {len(ids)}")
    if len(set(ids)) != len(ids) or not all(0 <= id < MAX_ID for id in ids):
        raise GenomeError(f"{where}: ids must differ and be from 0 to {MAX_ID - 1}")


def _validate_layer(layer: Layer, spatial: int) -> None:
    _validate_ids(layer.name, layer.ids)
    if len(layer.kernels) != layer.nodes:
        raise GenomeError(f"{layer.name}: {layer.nodes} nodes need as many kernels, not {len(layer.kernels)}")
    for number, kernel in enumerate(layer.kernels, 1):
        if len(kernel) != spatial:
            raise GenomeError(f"{layer.name}, kernel {number}: {times(kernel)} needs {spatial} dimensions")
        if not all(size % 2 == 1 and 1 <= size <= MAX_EXTENT for size in kernel):
            raise GenomeError(
                f"{layer.name}, kernel {number}: {times(kernel)} must be odd and from 1 to {MAX_EXTENT}"
            )
