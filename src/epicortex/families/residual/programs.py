"""Residual networks as programs for the native arithmetic, and their genes as tensors in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import POOLING_GAIN, Genome
from epicortex.families.residual.layers import Layer
from epicortex.families.residual.phenotype import Phenotype, learning
from epicortex.native.program import Activation, Add, Conv, Full, Norm, Operation, Pool

RELU: Final = Activation("relu")


def operations(genome: Genome) -> list[Operation]:
    """What the network computes, in the order of its layers."""
    result: list[Operation] = []
    layers = iter(genome.layers)
    trunk = [RELU] if genome.trunk == "relu" else []
    for stage in genome.stages:
        result += [*_unit(next(layers)), *trunk]
        for _ in stage.blocks:
            entry = len(result)  # the slot that the last operation has filled
            result += [*_unit(next(layers)), RELU, *_unit(next(layers)), Add(entry), *trunk]
    if genome.spatial:
        result.append(Pool((genome.pool,) * genome.spatial, factor=POOLING_GAIN))
    return [*result, Full(next(layers).nodes)]


def tensors(phenotype: Phenotype) -> tuple[list[Array], Array]:
    """What learns: weight, then factor and shift of the norm; and all running means and variances."""
    *hidden, _ = phenotype.genes
    running = [array for genes in hidden for array in (genes["mean"], genes["var"])]
    return _learning(phenotype, ""), np.concatenate(running)


def momentum(phenotype: Phenotype) -> list[Array] | None:
    """The momentum that the genes hold, in the same order; None in a new network."""
    return _learning(phenotype, "momentum_") if "momentum" in phenotype.states else None


def with_tensors(
    phenotype: Phenotype, learned: Sequence[Array], state: Array, momentum: Sequence[Array] | None = None
) -> Phenotype:
    """The phenotype with what a network has learned, and its momentum, where that is kept."""
    *hidden, out = phenotype.genome.layers
    arrays = [own for _, own in _named(hidden, learned)]
    arrays.append({"weight": learned[-2].reshape(out.weight_shape), "bias": learned[-1]})
    if momentum is not None:
        for own, (_, held) in zip(arrays, _named(hidden, momentum), strict=False):
            own |= {f"momentum_{name}": array for name, array in held.items()}
        last = {"momentum_weight": momentum[-2].reshape(out.weight_shape), "momentum_bias": momentum[-1]}
        arrays[-1] |= last
    place = 0
    for layer, own in zip(hidden, arrays, strict=False):
        own.setdefault("weight", np.zeros(layer.weight_shape, np.float32))
        for name in ("mean", "var"):
            own[name] = state[place : place + layer.nodes].copy()
            place += layer.nodes
    return Phenotype(phenotype.genome, tuple(Genes(**own) for own in arrays))


def _learning(phenotype: Phenotype, prefix: str) -> list[Array]:
    *hidden, out = phenotype.genes
    layers = phenotype.genome.layers
    arrays = [
        genes[f"{prefix}{name}"]
        for layer, genes in zip(layers, hidden, strict=False)
        for name in _names(layer)
    ]
    return [*arrays, out[f"{prefix}weight"].reshape(len(out.bias), -1), out[f"{prefix}bias"]]


def _unit(layer: Layer) -> list[Operation]:
    """A convolution, or over a table a full layer, and its norm; of columns the norm alone."""
    if not layer.sources:
        return [Norm()]
    if not layer.stride:
        return [Full(layer.nodes, bias=False), Norm()]
    return [Conv(layer.kernels, layer.stride, bias=False), Norm()]


def _names(layer: Layer) -> Sequence[str]:
    """The arrays of a hidden layer that learn, in the order of the native arithmetic."""
    return [name for name in ("weight", "gamma", "bias") if name in learning(layer)]


def _named(hidden: Sequence[Layer], learned: Sequence[Array]) -> Iterator[tuple[Layer, dict[str, Array]]]:
    """Each hidden layer with those of the arrays that are its own, by name."""
    arrays = iter(learned)
    for layer in hidden:
        yield layer, {name: next(arrays) for name in _names(layer)}
