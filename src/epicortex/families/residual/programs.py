"""Residual networks as programs for the native arithmetic, and their genes as tensors in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import POOLING_GAIN, Genome
from epicortex.families.residual.layers import Layer
from epicortex.families.residual.phenotype import Phenotype
from epicortex.native.program import Activation, Add, Conv, Full, Norm, Operation, Pool

RELU = Activation("relu")


def operations(genome: Genome) -> list[Operation]:
    """What the network computes, in the order of its layers."""
    result: list[Operation] = []
    layers = iter(genome.layers)
    for stage in genome.stages:
        result += [*_unit(next(layers)), RELU]
        for _ in stage.blocks:
            entry = len(result)  # the slot that the last operation has filled
            result += [*_unit(next(layers)), RELU, *_unit(next(layers)), Add(entry), RELU]
    if genome.spatial:
        result.append(Pool((genome.pool,) * genome.spatial, factor=POOLING_GAIN))
    return [*result, Full(next(layers).nodes)]


def tensors(phenotype: Phenotype) -> tuple[list[Array], Array]:
    """What learns: weight, then factor and shift of the norm; and all running means and variances."""
    *hidden, (_, out) = phenotype.pairs()
    learning = [array for _, genes in hidden for array in (genes.weight, genes["gamma"], genes.bias)]
    running = [array for _, genes in hidden for array in (genes["mean"], genes["var"])]
    return [*learning, out.weight.reshape(len(out.bias), -1), out.bias], np.concatenate(running)


def with_tensors(phenotype: Phenotype, learned: Sequence[Array], state: Array) -> Phenotype:
    """The phenotype with what a network has learned; optimiser state, which is of before, is dropped."""
    *hidden, out = phenotype.genome.layers
    genes, place = [], 0
    for layer, (weight, gamma, shift) in zip(hidden, _threes(learned), strict=True):
        mean, var = (state[at : at + layer.nodes].copy() for at in (place, place + layer.nodes))
        genes.append(Genes(weight=weight, bias=shift, gamma=gamma, mean=mean, var=var))
        place += 2 * layer.nodes
    last = Genes(weight=learned[-2].reshape(out.weight_shape), bias=learned[-1])
    return Phenotype(phenotype.genome, (*genes, last))


def _unit(layer: Layer) -> list[Operation]:
    """A convolution, or over a table a full layer, and its norm."""
    if not layer.stride:
        return [Full(layer.nodes, bias=False), Norm()]
    return [Conv(layer.kernels, layer.stride, bias=False), Norm()]


def _threes(learned: Sequence[Array]) -> Iterator[tuple[Array, Array, Array]]:
    hidden = learned[:-2]
    return zip(hidden[::3], hidden[1::3], hidden[2::3], strict=True)
