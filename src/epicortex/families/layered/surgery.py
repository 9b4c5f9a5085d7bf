"""Surgery on whole networks: carrying learned weights from one structure into another.

How a layer's own weights are fitted is the layer's business; here is which layer continues which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules


def draw_phenotype(genome: Genome, *, rules: Rules | None = None, rng: np.random.Generator) -> Phenotype:
    """A genome with all weights and biases drawn new."""
    rules = rules or Rules()
    pairs = zip(genome.layers, genome.input_shapes, strict=True)
    return Phenotype(genome, tuple(layer.draw(below, rules=rules, rng=rng) for layer, below in pairs))


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
            weights.append(layer.draw(below, rules=rules, rng=rng))
        else:
            genes, before = phenotype.weights[source], old.input_shapes[source]
            weights.append(layer.refit(genes, old.layers[source], before, below, rules=rules, rng=rng))
    return Phenotype(genome, tuple(weights))
