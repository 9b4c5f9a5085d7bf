"""New ids and new weights, drawn from the generator that is given."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import MAX_ID, Block, Genome, Stage
from epicortex.families.residual.layers import Layer, kernel_mask
from epicortex.families.residual.phenotype import Phenotype

#: The deviation of new weights by √inputs. A norm follows every convolution, so that this sets no scale, but
#: how fast the weights turn at first.
CONV_GAIN: Final = math.sqrt(2.0)
#: The factor of the norm of a column, and what the squares of all of them add up to at most: of many columns
#: that say the same, none may count fully.
COLUMN_FACTOR: Final = 0.4
_COLUMNS_TOGETHER: Final = 8.0
#: The output weights of a linear model begin near zero: whatever is drawn, small steps must first unlearn.
_LITTLE: Final = 0.1
OUT_GAIN: Final = math.sqrt(1 / 3)


def draw_ids(count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Ids that nobody has: 53 random bits each.

    >>> len(set(draw_ids(1000, np.random.default_rng(1))))
    1000
    """
    return tuple(int(number) for number in rng.integers(MAX_ID, size=count))


def draw_id(rng: np.random.Generator) -> int:
    """One id."""
    return draw_ids(1, rng)[0]


def renewed(genome: Genome, rng: np.random.Generator) -> Genome:
    """The same structure with new ids: no kin of anyone. Columns of a table stay what they are."""
    stages: list[Stage] = []
    for stage in genome.stages:
        blocks = tuple(
            Block(draw_id(rng), draw_ids(len(block.ids), rng), block.inner, block.outer)
            for block in stage.blocks
        )
        id, ids = draw_id(rng), draw_ids(stage.width, rng)
        if genome.trunk == "linear" and not stages:
            ids = stage.ids
        stages.append(Stage(id, stage.stride, ids, stage.kernels, blocks))
    return replace(genome, stages=tuple(stages), out=draw_ids(genome.outputs, rng))


def draw_phenotype(genome: Genome, rng: np.random.Generator) -> Phenotype:
    """A genome with all weights drawn new; along a linear trunk blocks add nothing yet."""
    genes = []
    for layer in genome.layers:
        scale = _LITTLE if genome.trunk == "linear" and layer.role == "out" else 1.0
        genes.append(draw_layer(layer, rng, gamma=_first_factor(genome, layer), scale=scale))
    return Phenotype(genome, tuple(genes))


def _first_factor(genome: Genome, layer: Layer) -> float:
    """Of new norms. The smaller that of columns, the more weight decay holds a linear model back."""
    if not layer.sources:
        return min(COLUMN_FACTOR, math.sqrt(_COLUMNS_TOGETHER / layer.nodes))
    return 0.0 if layer.role == "outer" and genome.trunk == "linear" else 1.0


def draw_layer(layer: Layer, rng: np.random.Generator, *, gamma: float = 1.0, scale: float = 1.0) -> Genes:
    """New genes for one layer: weights as He et al. draw them, each by the size of its own kernel."""
    inputs = np.array([max(1, layer.below[0]) * math.prod(kernel) for kernel in layer.kernels])
    gain = (OUT_GAIN if layer.role == "out" else CONV_GAIN) * scale
    weight = draw_weight(layer, gain / np.sqrt(inputs), rng)
    fixed = {"weight": weight, "bias": _filled(layer, 0.0)}
    if layer.role == "out":
        return Genes(**fixed)
    return Genes(**fixed, gamma=_filled(layer, gamma), mean=_filled(layer, 0.0), var=_filled(layer, 1.0))


def draw_weight(layer: Layer, deviation: Array | float, rng: np.random.Generator) -> Array:
    """Normal weights of one deviation for all or one for each node; 0 around small kernels."""
    scale = np.broadcast_to(np.asarray(deviation, np.float32), (layer.nodes,))
    drawn = rng.standard_normal(layer.weight_shape, dtype=np.float32)
    scaled = drawn * scale.reshape(-1, *(1,) * (drawn.ndim - 1))
    return np.where(kernel_mask(layer.kernels), scaled, np.float32(0))


def _filled(layer: Layer, value: float) -> Array:
    return np.full(layer.nodes, value, np.float32)
