"""Crossover: a child has the structure of one parent, and what is kin in both parents is averaged.

Genes are kin if they have the same ids in the same place: the same node of the same layer, and for a weight
the same channel below. All else comes from the parent that gives the structure.
"""

from __future__ import annotations

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.layers import Layer
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.surgery import project


def cross(one: Phenotype, other: Phenotype, *, share: float) -> Phenotype:
    """A child of two networks: the structure of the one with the larger share, kin averaged by their shares.

    Networks of different trunks have no kin, whatever their ids: the same weights mean something else there.
    The averaged norms' means and variances are a guess; whoever trains the child estimates them anew.
    """
    a, b = one.genome, other.genome
    if (a.input_shape, a.outputs) != (b.input_shape, b.outputs):
        raise VariationError(
            f"a network for {a.input_shape} → {a.outputs} outputs cannot mate with one for "
            f"{b.input_shape} → {b.outputs}"
        )
    one, other = (parent.without_state("average") for parent in (one, other))
    first, second, part = (one, other, share) if share >= 0.5 else (other, one, 1 - share)
    relatives = {layer.key: (layer, genes) for layer, genes in second.pairs() if a.trunk == b.trunk}
    child = []
    for layer, genes in first.pairs():
        relative = relatives.get(layer.key)
        child.append(genes if relative is None else _averaged(layer, genes, relative, part))
    return Phenotype(first.genome, tuple(child))


def kinship(one: Genome, other: Genome) -> float:
    """The share of nodes that are kin, from 0 to 1.

    >>> from epicortex.families.residual.genome import Stage
    >>> genome = Genome((4,), (Stage(1, (), (2, 3), ((), ())),), out=(6,))
    >>> kinship(genome, genome.replace_stage(0, ids=(2, 5, 8), kernels=((),) * 3))
    0.4
    """
    mine, yours = _nodes(one), _nodes(other)
    return len(mine & yours) / len(mine | yours)


def _nodes(genome: Genome) -> set[tuple[int | str, ...]]:
    return {(genome.trunk, *layer.key, id) for layer in genome.layers for id in layer.ids}


def _averaged(layer: Layer, genes: Genes, relative: tuple[Layer, Genes], part: float) -> Genes:
    source, others = relative
    arrays: dict[str, Array] = {}
    for name, array in genes.items():
        if name not in others:
            arrays[name] = array
            continue
        values, covered = project(others[name], source, layer)
        mixed = array * np.float32(part) + values * np.float32(1 - part)
        # what is equal in both stays as it is, to the bit
        arrays[name] = np.where(covered & (values != array), mixed, array)
    return Genes(**arrays)
