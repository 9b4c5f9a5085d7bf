"""A genome with its weights, as plain read-only arrays: what evolves, is inherited, stored and sent.

Each layer has its `Genes`: for a convolution one dense weight [nodes, channels, *extent] with exact zeros
around its smaller kernels, for a full layer [nodes, inputs], and a bias a node. `network` makes modules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Arrays
from epicortex.families.genes import Genes
from epicortex.families.layered.genome import Genome


@dataclass(frozen=True, slots=True, eq=False)
class Phenotype:
    """A genome with weights that fit it. The arrays are read-only: nobody writes into a parent."""

    genome: Genome
    weights: tuple[Genes, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.genome.layers):
            raise GenomeError(
                f"{len(self.genome.layers)} layers need as many weights, not {len(self.weights)}"
            )
        places = zip(self.genome.layers, self.genome.input_shapes, self.weights, strict=True)
        for index, (layer, below, genes) in enumerate(places, 1):
            layer.check_genes(genes, below, f"layer {index} ({layer.type})")

    @property
    def parameters(self) -> int:
        """How many weights and biases the network has."""
        return self.genome.parameters

    def same_bits(self, other: Phenotype) -> bool:
        """Whether both have the same genome and, bit for bit, the same weights."""
        return self.genome == other.genome and all(
            mine.same_bits(yours) for mine, yours in zip(self.weights, other.weights, strict=True)
        )


def encode(phenotype: Phenotype) -> tuple[Any, Arrays]:
    """The genome as JSON values, and each layer's arrays, named `1.weight`, `1.bias` from the bottom."""
    arrays = {
        f"{index}.{name}": array
        for index, genes in enumerate(phenotype.weights, 1)
        for name, array in genes.items()
    }
    return phenotype.genome.to_dict(), arrays


def decode(description: Any, arrays: Mapping[str, Array]) -> Phenotype:
    """Back from `encode`; whatever does not fit together is a `GenomeError`."""
    genome = _genome(description)
    layers: list[Arrays] = [{} for _ in genome.layers]
    for name, array in arrays.items():
        number, _, part = name.partition(".")
        if not number.isdecimal() or not 1 <= int(number[:6]) <= len(layers) or not part.isidentifier():
            raise GenomeError(f"{len(layers)} layers have no array {name[:40]!r}")
        layers[int(number) - 1][part] = array
    if not all({"weight", "bias"} <= layer.keys() for layer in layers):
        raise GenomeError(f"{len(layers)} layers need a weight and a bias each")
    return Phenotype(genome, tuple(Genes(**layer) for layer in layers))


def _genome(description: Any) -> Genome:
    """A description's genome. The same come back from every training: known ones are not checked again."""
    try:
        text = json.dumps(description)
    except (TypeError, ValueError, RecursionError):
        return Genome.from_dict(description)
    return _known(text)


@lru_cache(maxsize=1024)
def _known(text: str) -> Genome:
    return Genome.from_dict(json.loads(text))
