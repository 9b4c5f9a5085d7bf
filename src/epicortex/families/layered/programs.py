"""Layered networks as programs for the native arithmetic, and their weights as tensors in its order."""

from __future__ import annotations

from collections.abc import Sequence

from epicortex.families.activations import Activations
from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.native.program import Operation


def operations(genome: Genome, activations: Activations) -> list[Operation]:
    """What the network computes, from the bottom up.

    >>> from epicortex.families.layered.genome import ConvLayer, FullLayer
    >>> genome = Genome((1, 28, 28), (ConvLayer(((3, 3), (5, 1), (1, 7)), (2, 2)), FullLayer(32)), 10)
    >>> [type(operation).__name__ for operation in operations(genome, Activations())]
    ['Conv', 'Activation', 'Full', 'Activation', 'Full']
    """
    return [operation for layer in genome.layers for operation in layer.operations(activations)]


def tensors(phenotype: Phenotype) -> list[Array]:
    """Weight and bias of each layer in turn."""
    return [array for genes in phenotype.weights for array in (genes.weight, genes.bias)]


def with_tensors(phenotype: Phenotype, learned: Sequence[Array]) -> Phenotype:
    """The phenotype with other weights, in the order of `tensors`."""
    pairs = zip(learned[::2], learned[1::2], strict=True)
    return Phenotype(phenotype.genome, tuple(Genes(weight, bias) for weight, bias in pairs))
