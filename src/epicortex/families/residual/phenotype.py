"""A residual genome with its genes, as plain read-only arrays: what evolves, is inherited, stored and sent.

A convolution's genes are `weight` [nodes, channels, *extent], with exact zeros around small kernels, and the
norm of each node: its factor `gamma`, its shift `bias`, and the running `mean` and `var`. Columns of a table
look at nothing, so their weight is empty. The output layer has `weight` and `bias`. Optimiser state may
travel along as arrays such as `momentum_weight`, and so may the mean of the last weights and norms as arrays
such as `average_weight`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Arrays, Shape
from epicortex.families.genes import Genes, check_genes
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.layers import Layer, kernel_mask

#: What a gene may carry besides: the momentum of each array that learns, which is 0 in new genes; and the
#: average of all its arrays, which is lost with any change.
STATES: Final = ("momentum", "average")


@dataclass(frozen=True, slots=True, eq=False)
class Phenotype:
    """A genome with genes that fit it, a `Genes` for each of its layers."""

    genome: Genome
    genes: tuple[Genes, ...]

    def __post_init__(self) -> None:
        layers = self.genome.layers
        if len(self.genes) != len(layers):
            raise GenomeError(f"{len(layers)} layers need as many genes, not {len(self.genes)}")
        states = self.states
        for layer, genes in zip(layers, self.genes, strict=True):
            check_genes(genes, array_shapes(layer, states), layer.name)
            _check_surroundings(layer, genes)

    @property
    def states(self) -> tuple[str, ...]:
        """The optimiser state that the genes carry: that of all layers, or none."""
        return tuple(state for state in STATES if f"{state}_bias" in self.genes[0])

    def pairs(self) -> Iterator[tuple[Layer, Genes]]:
        """Every layer with its genes, in the order in which they are computed."""
        return zip(self.genome.layers, self.genes, strict=True)

    def same_bits(self, other: Phenotype) -> bool:
        """Whether both have the same genome and, bit for bit, the same genes."""
        return self.genome == other.genome and all(
            mine.same_bits(yours) for mine, yours in zip(self.genes, other.genes, strict=True)
        )

    def without_state(self, *which: str) -> Phenotype:
        """The same network without its momentum and its average, or without those named."""
        left = tuple(state for state in self.states if which and state not in which)
        if left == self.states:
            return self
        genes = (
            Genes(**{name: genes[name] for name in array_shapes(layer, left)})
            for layer, genes in self.pairs()
        )
        return Phenotype(self.genome, tuple(genes))

    def with_average(self, average: Phenotype) -> Phenotype:
        """The same network, holding another of its genome as its average."""
        if average.genome != self.genome:
            raise GenomeError("the average of a network has the network's genome")
        genes = (
            own.replace(**{f"average_{name}": other[name] for name in array_shapes(layer)})
            for (layer, own), other in zip(self.pairs(), average.genes, strict=True)
        )
        return Phenotype(self.genome, tuple(genes))

    def settled(self) -> Phenotype:
        """The network to use: its average, if it holds one, and nothing besides."""
        if "average" not in self.states:
            return self.without_state()
        genes = (
            Genes(**{name: own[f"average_{name}"] for name in array_shapes(layer)})
            for layer, own in self.pairs()
        )
        return Phenotype(self.genome, tuple(genes))


def learning(layer: Layer) -> tuple[str, ...]:
    """The arrays of a layer that learn."""
    if not layer.sources:
        return ("bias", "gamma")
    return ("weight", "bias") if layer.role == "out" else ("weight", "bias", "gamma")


def array_shapes(layer: Layer, states: tuple[str, ...] = ()) -> dict[str, Shape]:
    """The arrays of a layer and their shapes."""
    shapes = dict.fromkeys(("weight", *learning(layer)), (layer.nodes,)) | {"weight": layer.weight_shape}
    running = {} if layer.role == "out" else {"mean": (layer.nodes,), "var": (layer.nodes,)}
    kept = {"momentum": {name: shapes[name] for name in learning(layer)}, "average": shapes | running}
    held = {f"{state}_{name}": shape for state in states for name, shape in kept[state].items()}
    return shapes | running | held


def to_arrays(phenotype: Phenotype) -> Arrays:
    """All arrays by the names that files have for them, such as `stages.0.blocks.1.inner.weight`."""
    return {
        f"{layer.name}.{name}": array for layer, genes in phenotype.pairs() for name, array in genes.items()
    }


def from_arrays(genome: Genome, arrays: Mapping[str, Array]) -> Phenotype:
    """The phenotype of a genome and of what `to_arrays` gave; anything else raises `GenomeError`."""
    found: dict[str, dict[str, Array]] = {layer.name: {} for layer in genome.layers}
    for full_name, array in arrays.items():
        layer_name, _, name = full_name.rpartition(".")
        if layer_name not in found:
            raise GenomeError(f"the array {full_name[:80]!r} belongs to no layer of this genome")
        if not isinstance(array, np.ndarray):
            raise GenomeError(f"{full_name}: not an array")
        found[layer_name][name] = array
    for layer_name, named in found.items():
        if not {"weight", "bias"} <= named.keys():
            raise GenomeError(f"{layer_name}: its weight or bias is missing")
    return Phenotype(genome, tuple(Genes(**found[layer.name]) for layer in genome.layers))


def _check_surroundings(layer: Layer, genes: Genes) -> None:
    if len(set(layer.kernels)) == 1:
        return
    mask = kernel_mask(layer.kernels)
    for name in genes:
        if name.endswith("weight"):
            rows = np.where(mask, np.float32(0), genes[name]).nonzero()[0]
            if rows.size:
                raise GenomeError(f"{layer.name}, kernel {rows[0] + 1}: the {name} around it must be 0")
