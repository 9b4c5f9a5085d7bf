"""A genotype with a weight for every connection: what evolves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Arrays
from epicortex.families.unstructured.genome import Genome

#: (target, source) -> weight.
Genes = dict[tuple[int, int], float]


@dataclass(frozen=True, slots=True, eq=False)
class Phenotype:
    """A network by value. The weights stand in the order of the genome's connections."""

    genome: Genome
    weights: Array

    @property
    def genes(self) -> Genes:
        """The weight of each connection."""
        return dict(zip(self.genome.connections, self.weights.tolist(), strict=True))

    def with_weights(self, weights: Array) -> Phenotype:
        """The same genotype with other weights, which are never written again."""
        return Phenotype(self.genome, frozen(weights))


def of_genes(
    inputs: int, outputs: int, genes: Genes, activations: tuple[str, ...], *, recurrent: bool
) -> Phenotype:
    """A network from its genes; every node that has an activation is there, connected or not."""
    inward: dict[int, list[int]] = {inputs + place: [] for place in range(1, len(activations) + 1)}
    for target, source in sorted(genes):
        inward[target].append(source)
    genome = Genome(inputs, outputs, {n: tuple(found) for n, found in inward.items()}, activations, recurrent)
    weights = np.array([genes[connection] for connection in genome.connections], np.float32)
    return Phenotype(genome, frozen(weights))


def from_arrays(genome: Genome, arrays: Mapping[str, Array]) -> Phenotype:
    """Back from `to_arrays`; whatever does not fit the genome is a `GenomeError`."""
    expected = (len(genome.connections),)
    weights = arrays.get("weights")
    if set(arrays) != {"weights"} or weights is None or weights.shape != expected:
        raise GenomeError(f"an unstructured network of this genome has {expected[0]} weights, nothing else")
    if weights.dtype != np.float32 or not np.isfinite(weights).all() or not len(weights):
        raise GenomeError("the weights of an unstructured network are numbers in single precision")
    return Phenotype(genome, frozen(weights))


def to_arrays(phenotype: Phenotype) -> Arrays:
    """The weights by name."""
    return {"weights": phenotype.weights}


def frozen(weights: Array) -> Array:
    """The weights, which can no longer be written."""
    weights = np.ascontiguousarray(weights, np.float32)
    if weights.flags.writeable:
        weights = weights.copy() if weights.base is not None else weights
        weights.flags.writeable = False
    return weights
