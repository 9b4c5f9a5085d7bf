"""Weight surgery: carrying learned weights from one structure into another.

Nodes and channels are matched by index, kernels on their centres, and the inputs of a full layer as
[channel, *spatial], centred. What has no counterpart is drawn new; what is not touched stays bit-identical.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome, Layer, OutputLayer, Shape
from epicortex.families.layered.phenotype import Array, LayerWeights, Phenotype, kernel_mask, weight_shape
from epicortex.families.layered.rules import Rules

_Scalar = TypeVar("_Scalar", np.float32, np.bool_)


def draw_phenotype(genome: Genome, *, rules: Rules | None = None, rng: np.random.Generator) -> Phenotype:
    """A genome with all weights and biases drawn new."""
    rules = rules or Rules()
    pairs = zip(genome.layers, genome.input_shapes, strict=True)
    return Phenotype(genome, tuple(draw_layer(layer, below, rules=rules, rng=rng) for layer, below in pairs))


def draw_layer(layer: Layer, below: Shape, *, rules: Rules, rng: np.random.Generator) -> LayerWeights:
    """New weights and biases for one layer over an input [channels, *spatial]."""
    weight = _draw(weight_shape(layer, below), rules, rng)
    if layer.type == "conv":
        weight = np.where(kernel_mask(layer.kernels), weight, np.float32(0))
    return LayerWeights(weight, _draw((layer.nodes,), rules, rng))


def adapt(
    phenotype: Phenotype,
    genome: Genome,
    sources: Sequence[int | None],
    *,
    rules: Rules,
    rng: np.random.Generator,
) -> Phenotype:
    """The phenotype's weights fitted to another genome.

    `sources` names for every layer of the new genome the old layer it continues, by its index, or None where
    it is new.
    """
    old, weights = phenotype.genome, []
    for layer, below, source in zip(genome.layers, genome.input_shapes, sources, strict=True):
        if source is None:
            weights.append(draw_layer(layer, below, rules=rules, rng=rng))
        else:
            before = (old.layers[source], old.input_shapes[source])
            weights.append(refit(phenotype.weights[source], before, (layer, below), rules=rules, rng=rng))
    return Phenotype(genome, tuple(weights))


def refit(
    weights: LayerWeights,
    before: tuple[Layer, Shape],
    after: tuple[Layer, Shape],
    *,
    rules: Rules,
    rng: np.random.Generator,
) -> LayerWeights:
    """A layer's weights fitted to other nodes, kernels or inputs; both sides are (layer, input shape)."""
    (old, old_below), (new, new_below) = before, after
    if old == new and old_below == new_below:
        return weights
    if old.type == "conv" and new.type == "conv":
        weight = _refit_kernels(weights.weight, old, new, new_below[0], rules, rng)
    else:
        source = weights.weight.reshape(old.nodes, *old_below)
        target = _paste(source, (new.nodes, *new_below), rules, rng)
        weight = target.reshape(new.nodes, -1)
    if new.nodes == old.nodes:
        return LayerWeights(weight, weights.bias)
    return LayerWeights(weight, _paste(weights.bias, (new.nodes,), rules, rng))


def part_of(layer: Layer, rows: Sequence[int]) -> Layer:
    """A layer with only some of its nodes."""
    if layer.type == "conv":
        return ConvLayer(tuple(layer.kernels[row] for row in rows), layer.stride)
    return FullLayer(len(rows)) if layer.type == "full" else OutputLayer(len(rows))


def take(layer: Layer, weights: LayerWeights, rows: Sequence[int]) -> tuple[Layer, LayerWeights]:
    """Some of a layer's genes, whole, as a layer of their own."""
    part = part_of(layer, rows)
    weight, bias = weights.weight[list(rows)], weights.bias[list(rows)]
    return part, LayerWeights(_place(weight, part.extent) if part.type == "conv" else weight, bias)


def join(layer: Layer, below: Shape, parts: Iterable[tuple[Sequence[int], LayerWeights]]) -> LayerWeights:
    """A layer put together from genes: each part says which nodes its rows become."""
    weight = np.zeros(weight_shape(layer, below), np.float32)
    bias = np.zeros(layer.nodes, np.float32)
    for rows, part in parts:
        nodes = np.asarray(rows)
        weight[nodes] = _place(part.weight, weight.shape[2:])
        bias[nodes] = part.bias
    return LayerWeights(weight, bias)


def _draw(shape: Shape, rules: Rules, rng: np.random.Generator) -> Array:
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(rules.weight_deviation)


def _refit_kernels(
    weight: Array, old: ConvLayer, new: ConvLayer, channels: int, rules: Rules, rng: np.random.Generator
) -> Array:
    nodes, shared = min(old.nodes, new.nodes), min(weight.shape[1], channels)
    mask = kernel_mask(new.kernels)
    kept = np.zeros_like(mask)
    kept[:nodes] = _place(kernel_mask(old.kernels)[:nodes], new.extent) & mask[:nodes]
    everything_kept = shared == channels and bool((kept == mask).all())
    result = np.zeros((new.nodes, channels, *new.extent), np.float32)
    if not everything_kept:
        np.copyto(result, _draw(result.shape, rules, rng), where=mask)
    moved = _place(weight[:nodes, :shared], new.extent)
    np.copyto(result[:nodes, :shared], moved, where=kept[:nodes])
    return result


def _paste(source: Array, shape: Shape, rules: Rules, rng: np.random.Generator) -> Array:
    """The source's values in an array of another shape, the rest drawn: nodes and channels by index."""
    covered = all(new <= old for old, new in zip(source.shape, shape, strict=True))
    target = np.empty(shape, np.float32) if covered else _draw(shape, rules, rng)
    into, out = [], []
    for axis, (old, new) in enumerate(zip(source.shape, shape, strict=True)):
        if axis < 2:
            both = slice(0, min(old, new))
            into.append(both)
            out.append(both)
        else:
            outer, inner = _centred(new, old)
            into.append(outer)
            out.append(inner)
    target[tuple(into)] = source[tuple(out)]
    return target


def _centred(size: int, other: int) -> tuple[slice, slice]:
    """Where two centred extents overlap, in the coordinates of each; the smaller half is on the low side."""
    shared, gap = min(size, other), abs(size - other) // 2
    whole, part = slice(0, shared), slice(gap, gap + shared)
    return (part, whole) if size >= other else (whole, part)


def _place(array: NDArray[_Scalar], extent: Shape) -> NDArray[_Scalar]:
    """An array [nodes, channels, *kernel] centred in another extent, zeros around it."""
    if array.shape[2:] == extent:
        return array
    result = np.zeros((*array.shape[:2], *extent), array.dtype)
    into, out = [slice(None)] * 2, [slice(None)] * 2
    for old, new in zip(array.shape[2:], extent, strict=True):
        outer, inner = _centred(new, old)
        into.append(outer)
        out.append(inner)
    result[tuple(into)] = array[tuple(out)]
    return result
