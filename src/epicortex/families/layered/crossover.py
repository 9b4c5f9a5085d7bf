"""Crossover: a child puts whole genes of its parents together, each with its weights and its bias.

Layers are aligned from the bottom within their type. Within a species nothing else happens; across species
the genes are fitted to the inputs they find in the child.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome, HiddenLayer, LayerType
from epicortex.families.layered.phenotype import LayerWeights, Phenotype
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.surgery import join, part_of, refit, take


@dataclass(frozen=True, slots=True)
class _Genes:
    """Where the nodes of one layer of the child come from."""

    layer: HiddenLayer | None
    """None for the output layer."""
    parent: tuple[int, ...]
    """For each node the parent it comes from, 0 or 1."""
    index: tuple[int | None, int | None]
    """The layer in each parent; None where that parent has none there."""


def cross(
    one: Phenotype, other: Phenotype, *, share: float, rules: Rules, rng: np.random.Generator
) -> Phenotype:
    """A child of two networks; every gene comes from `one` with probability `share`, else from `other`."""
    a, b = one.genome, other.genome
    if (a.input_shape, a.classes) != (b.input_shape, b.classes):
        raise VariationError(
            f"a network for {a.input_shape} → {a.classes} classes cannot mate with one for "
            f"{b.input_shape} → {b.classes}"
        )
    genes = [gene for kind in ("conv", "full", "out") for gene in _draw_layers(kind, (a, b), share, rng)]
    child = a.replace([gene.layer for gene in genes if gene.layer is not None])
    weights = tuple(
        _assemble(child, place, gene, (one, other), rules, rng) for place, gene in enumerate(genes)
    )
    return Phenotype(child, weights)


def _draw_layers(
    kind: LayerType, genomes: tuple[Genome, Genome], share: float, rng: np.random.Generator
) -> list[_Genes]:
    """The child's layers of one type: aligned ones mixed, excess ones all or none."""
    places = [[i for i, layer in enumerate(genome.layers) if layer.type == kind] for genome in genomes]
    shared = min(map(len, places))
    drawn = [_mix(genomes, (places[0][i], places[1][i]), share, rng) for i in range(shared)]
    longer = 0 if len(places[0]) > len(places[1]) else 1
    excess = places[longer][shared:]
    if excess and rng.random() < (share, 1 - share)[longer]:
        for place in excess:
            layer = genomes[longer].layers[place]
            assert layer.type != "out"
            index = (place, None) if longer == 0 else (None, place)
            drawn.append(_Genes(layer, (longer,) * layer.nodes, index))
    return drawn


def _mix(
    genomes: tuple[Genome, Genome], index: tuple[int, int], share: float, rng: np.random.Generator
) -> _Genes:
    """An aligned pair of layers: node by node from either parent, excess nodes all or none."""
    layers = genomes[0].layers[index[0]], genomes[1].layers[index[1]]
    shared = min(layer.nodes for layer in layers)
    parent = [0 if draw < share else 1 for draw in rng.random(shared)]
    larger = 0 if layers[0].nodes > layers[1].nodes else 1
    excess = layers[larger].nodes - shared
    if excess and rng.random() < (share, 1 - share)[larger]:
        parent += [larger] * excess
    if layers[0].type == "conv" and layers[1].type == "conv":
        strides = layers[0].stride, layers[1].stride
        stride = strides[0] if rng.random() < share else strides[1]
        kernels = (layers[0].kernels, layers[1].kernels)
        chosen = tuple(kernels[who][node] for node, who in enumerate(parent))
        return _Genes(ConvLayer(chosen, stride), tuple(parent), index)
    hidden = FullLayer(len(parent)) if layers[0].type == "full" else None
    return _Genes(hidden, tuple(parent), index)


def _assemble(
    child: Genome,
    place: int,
    genes: _Genes,
    parents: tuple[Phenotype, Phenotype],
    rules: Rules,
    rng: np.random.Generator,
) -> LayerWeights:
    """The weights of one layer of the child, fitted to what the layer looks at."""
    layer, below, parts = child.layers[place], child.input_shapes[place], []
    for who, parent in enumerate(parents):
        rows = [node for node, origin in enumerate(genes.parent) if origin == who]
        source = genes.index[who]
        if rows and source is not None:
            old, weights = take(parent.genome.layers[source], parent.weights[source], rows)
            before, after = (old, parent.genome.input_shapes[source]), (part_of(layer, rows), below)
            parts.append((rows, refit(weights, before, after, rules=rules, rng=rng)))
    return join(layer, below, parts)
