"""Crossover, connection by connection. A child has genes of its parents and no others."""

from __future__ import annotations

import numpy as np

from epicortex.families.unstructured.phenotype import Genes, Phenotype, of_genes


def cross(one: Phenotype, other: Phenotype, *, share: float, rng: np.random.Generator) -> Phenotype:
    """A child of two networks; `share` is the first one's part of their relative fitness.

    A connection of both parents is inherited, its weight from either. A connection of one parent is
    inherited with that parent's part as the probability, else it is skipped. Where the parents have
    different numbers of nodes (without species), the surplus comes all or not at all, in the same way.
    """
    larger = max(one, other, key=lambda parent: parent.genome.nodes)
    if one.genome.nodes == other.genome.nodes:
        nodes = one.genome.nodes
    else:
        part = share if larger is one else 1 - share
        smaller = min(one.genome.nodes, other.genome.nodes)
        nodes = larger.genome.nodes if rng.random() < part else smaller
    mine, yours = _within(one, nodes), _within(other, nodes)
    union = sorted({*mine, *yours})
    draws = rng.random(len(union)) < share
    genes: Genes = {}
    for connection, first in zip(union, draws.tolist(), strict=True):
        giver = mine if first else yours
        if connection in giver:
            genes[connection] = giver[connection]
    if not genes:
        # Nothing was inherited; a network that cannot compute is no child. One gene is enough.
        connection = union[rng.integers(len(union))]
        genes[connection] = {**yours, **mine}[connection]
    return of_genes(
        one.genome.inputs,
        one.genome.outputs,
        genes,
        _activations(one, other, nodes, share, rng),
        recurrent=one.genome.recurrent,
    )


def _within(parent: Phenotype, nodes: int) -> Genes:
    """The genes among the first nodes."""
    return {pair: weight for pair, weight in parent.genes.items() if max(pair) <= nodes}


def _activations(
    one: Phenotype, other: Phenotype, nodes: int, share: float, rng: np.random.Generator
) -> tuple[str, ...]:
    """Each node's activation from either parent, where both have the node."""
    mine, yours = one.genome.activations, other.genome.activations
    if mine == yours:
        return mine
    longest = mine if len(mine) >= len(yours) else yours
    common = min(len(mine), len(yours))
    chosen = [
        a if first else b
        for a, b, first in zip(mine, yours, (rng.random(common) < share).tolist(), strict=False)
    ]
    return (*chosen, *longest[common:])[: nodes - one.genome.inputs]


def similarity(one: Phenotype, other: Phenotype) -> float:
    """The overlap of two genomes, which are their ordered nodes: eq. 7 of the paper."""
    small, large = sorted((one.genome.nodes, other.genome.nodes))
    return small / large
