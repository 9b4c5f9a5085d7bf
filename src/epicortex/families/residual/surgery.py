"""Weight surgery: carrying genes into another structure, matched by their ids.

What has a counterpart keeps its bits. A new node looks at all channels, and what was there before ignores it:
its weight towards a new node is exactly zero. A new block ends in a norm of factor zero. So whatever is only
added leaves the function as it was.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Array, Shape
from epicortex.families.genes import Genes
from epicortex.families.residual.drawing import draw_layer, draw_weight
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.layers import Layer, kernel_mask
from epicortex.families.residual.phenotype import Phenotype, learning

_Scalar = TypeVar("_Scalar", np.float32, np.bool_)


def refit(phenotype: Phenotype, genome: Genome, rng: np.random.Generator) -> Phenotype:
    """The phenotype's genes in another structure; what has no counterpart is drawn new."""
    phenotype = phenotype.without_state("average")
    old = {layer.key: (layer, genes) for layer, genes in phenotype.pairs()}
    fitted = []
    for layer in genome.layers:
        if layer.key in old:
            source, genes = old[layer.key]
            same = source.ids == layer.ids and source.sources == layer.sources
            unchanged = same and source.kernels == layer.kernels
            fitted.append(genes if unchanged else _refit(genes, source, layer, rng))
        else:
            drawn = draw_layer(layer, rng, gamma=0.0 if layer.role == "outer" else 1.0)
            fitted.append(_with_state(drawn, layer, phenotype.states))
    return Phenotype(genome, tuple(fitted))


def project(array: Array, source: Layer, target: Layer) -> tuple[Array, NDArray[np.bool_]]:
    """An array of one layer laid out as another has it, and where it has an entry there; 0 elsewhere."""
    rows = _matches(target.ids, source.ids)
    if array.ndim == 1:
        values, covered = np.zeros(target.nodes, np.float32), np.zeros(target.nodes, np.bool_)
        values[rows[0]], covered[rows[0]] = array[rows[1]], True
        return values, covered
    columns = _matches(target.sources, source.sources)
    values = np.zeros(target.weight_shape, np.float32)
    covered = np.zeros(target.weight_shape, np.bool_)
    into, out = np.ix_(rows[0], columns[0]), np.ix_(rows[1], columns[1])
    inside = np.broadcast_to(kernel_mask(source.kernels), source.weight_shape)
    values[into] = _centred(array[out], target.extent)
    covered[into] = _centred(inside[out], target.extent)
    covered &= kernel_mask(target.kernels)
    return np.where(covered, values, np.float32(0)), covered


def _refit(genes: Genes, source: Layer, target: Layer, rng: np.random.Generator) -> Genes:
    defaults = {"gamma": 1.0, "var": 1.0}
    known = set(source.ids)
    fresh = np.array([id not in known for id in target.ids])
    if not set(source.sources) & set(target.sources):
        fresh[:] = True  # nothing is left of what it looked at
    arrays = {}
    for name, array in genes.items():
        values, covered = project(array, source, target)
        if name == "weight" and fresh.any():
            values[fresh] = draw_weight(target, _deviation(array, source), rng)[fresh]
        elif name in defaults:
            values[~covered] = defaults[name]
        arrays[name] = values
    return Genes(**arrays)


def _deviation(weight: Array, layer: Layer) -> float:
    """The deviation of the entries of a layer's kernels."""
    found = math.sqrt(float(np.square(weight, dtype=np.float64).sum()) / layer.connections)
    return found or 1 / math.sqrt(layer.connections / layer.nodes)


def _with_state(genes: Genes, layer: Layer, states: tuple[str, ...]) -> Genes:
    held = {f"{state}_{name}": np.zeros_like(genes[name]) for state in states for name in learning(layer)}
    return genes.replace(**held)


def _matches(wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Where the same ids stand in both."""
    places = {id: place for place, id in enumerate(given)}
    both = [(place, places[id]) for place, id in enumerate(wanted) if id in places]
    return [pair[0] for pair in both], [pair[1] for pair in both]


def _centred(array: NDArray[_Scalar], extent: Shape) -> NDArray[_Scalar]:
    """An array [nodes, channels, *kernel] centred in another odd extent: cut, and zeros around it."""
    result = np.zeros((*array.shape[:2], *extent), array.dtype)
    into, out = [slice(None)] * 2, [slice(None)] * 2
    for old, new in zip(array.shape[2:], extent, strict=True):
        shared = min(old, new)
        into.append(slice((new - shared) // 2, (new + shared) // 2))
        out.append(slice((old - shared) // 2, (old + shared) // 2))
    result[tuple(into)] = array[tuple(out)]
    return result
