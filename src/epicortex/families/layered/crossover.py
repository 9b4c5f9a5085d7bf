"""Crossover: a child puts whole genes of its parents together, each with its weights and its bias.

Layers are aligned from the bottom within their type. Within a species nothing else happens; across species
the genes are fitted to the inputs they find in the child.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.genes import Genes
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.layer import Layer
from epicortex.families.layered.layers import TYPES
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the nodes of one layer of the child come from."""

    layer: Layer
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
    origins = [origin for kind in TYPES for origin in _draw_layers(kind, (a, b), share, rng)]
    child = a.replace([origin.layer for origin in origins[:-1]])  # type: ignore[misc]
    weights = tuple(
        _assemble(child, place, origin, (one, other), rules, rng) for place, origin in enumerate(origins)
    )
    return Phenotype(child, weights)


def _draw_layers(
    kind: type[Layer], genomes: tuple[Genome, Genome], share: float, rng: np.random.Generator
) -> list[_Origin]:
    """The child's layers of one type: aligned ones mixed, excess ones all or none."""
    places = [genome.places(kind) for genome in genomes]
    shared = min(map(len, places))
    drawn = [_mix(genomes, (places[0][i], places[1][i]), share, rng) for i in range(shared)]
    longer = 0 if len(places[0]) > len(places[1]) else 1
    excess = places[longer][shared:]
    if excess and rng.random() < (share, 1 - share)[longer]:
        for place in excess:
            layer = genomes[longer].layers[place]
            index = (place, None) if longer == 0 else (None, place)
            drawn.append(_Origin(layer, (longer,) * layer.nodes, index))
    return drawn


def _mix(
    genomes: tuple[Genome, Genome], index: tuple[int, int], share: float, rng: np.random.Generator
) -> _Origin:
    """An aligned pair of layers: node by node from either parent, excess nodes all or none."""
    mine, yours = genomes[0].layers[index[0]], genomes[1].layers[index[1]]
    shared = min(mine.nodes, yours.nodes)
    parent = [0 if draw < share else 1 for draw in rng.random(shared)]
    larger = 0 if mine.nodes > yours.nodes else 1
    excess = max(mine.nodes, yours.nodes) - shared
    if excess and rng.random() < (share, 1 - share)[larger]:
        parent += [larger] * excess
    return _Origin(mine.mixed(yours, parent, share=share, rng=rng), tuple(parent), index)


def _assemble(
    child: Genome,
    place: int,
    origin: _Origin,
    parents: tuple[Phenotype, Phenotype],
    rules: Rules,
    rng: np.random.Generator,
) -> Genes:
    """The genes of one layer of the child, fitted to what the layer looks at."""
    layer, below, parts = child.layers[place], child.input_shapes[place], []
    for who, parent in enumerate(parents):
        rows = [node for node, whose in enumerate(origin.parent) if whose == who]
        source = origin.index[who]
        if rows and source is not None:
            old, genes = parent.genome.layers[source].take(parent.weights[source], rows)
            before = parent.genome.input_shapes[source]
            fitted = layer.part(rows).refit(genes, old, before, below, rules=rules, rng=rng)
            parts.append((rows, fitted))
    return layer.join(below, parts)
