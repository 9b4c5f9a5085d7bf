"""A child has its fitter parent's structure; kin are averaged, all else is that parent's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.errors import VariationError
from epicortex.families.family import Array
from epicortex.families.residual import Phenotype
from epicortex.families.residual.crossover import cross, kinship
from epicortex.families.residual.layers import Layer, kernel_mask
from epicortex.families.residual.network import Network
from tests.families.residual.world import PROBLEMS, batch, experienced, family, trained
from tests.strategies import seeds, shares

kinds = st.sampled_from(sorted(PROBLEMS))


def cousins(kind: str, seed: int) -> tuple[Phenotype, Phenotype]:
    """Two networks of one ancestor, each mutated a few times and trained on other data."""
    rng, kin = np.random.default_rng(seed), family(kind)
    ancestor, found = experienced(kind, seed % 100), []
    for side in (1, 2):
        phenotype = ancestor
        for _ in range(2):
            phenotype = kin.mutate(phenotype, grow=0.5, relative_fitness=0.5, rng=rng).phenotype or phenotype
        network = Network(phenotype)
        trained(network, batch(kind, seed=side))
        found.append(network.phenotype())
    return found[0], found[1]


@given(seeds, kinds, shares)
@settings(max_examples=40)
def test_kin_are_averaged_entry_by_entry(seed: int, kind: str, share: float) -> None:
    one, other = cousins(kind, seed)
    child = cross(one, other, share=share)
    first, second, part = (one, other, share) if share >= 0.5 else (other, one, 1 - share)
    assert child.genome == first.genome
    entries = {
        place: value for layer, genes in second.pairs() for place, value in _entries(layer, genes.weight)
    }
    shared = 0
    for (layer, genes), made in zip(first.pairs(), child.genes, strict=True):
        mixed = dict(_entries(layer, made.weight))
        for place, value in _entries(layer, genes.weight):
            expected = value
            if place in entries:
                shared += 1
                expected = part * value + (1 - part) * entries[place]
            assert mixed[place] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert shared


def _entries(layer: Layer, weight: Array) -> list[tuple[tuple[int | str, ...], float]]:
    """Every weight of a layer by its node, the channel it looks at, and its place from the centre."""
    mask = np.broadcast_to(kernel_mask(layer.kernels), layer.weight_shape)
    return [
        (
            (
                *(layer.role, *layer.key, layer.ids[row], layer.sources[column]),
                *(p - size // 2 for p, size in zip(offset, layer.extent, strict=True)),
            ),
            float(weight[(row, column, *offset)]),
        )
        for row, column, *offset in np.argwhere(mask).tolist()
    ]


@given(seeds, kinds)
@settings(max_examples=20)
def test_norms_are_averaged_node_by_node(seed: int, kind: str) -> None:
    one, other = cousins(kind, seed)
    child = cross(one, other, share=0.5)
    found = {layer.key: (layer, genes) for layer, genes in other.pairs()}
    for (layer, genes), made in zip(one.pairs(), child.genes, strict=True):
        for name in set(genes) - {"weight"}:
            for node, id in enumerate(layer.ids):
                expected = genes[name][node]
                if layer.key in found and id in found[layer.key][0].ids:
                    source, values = found[layer.key]
                    expected = (expected + values[name][source.ids.index(id)]) / 2
                assert made[name][node] == pytest.approx(expected, rel=1e-5, abs=1e-7)


@given(seeds, kinds, shares)
@settings(max_examples=20)
def test_a_network_crossed_with_itself_is_itself(seed: int, kind: str, share: float) -> None:
    phenotype = experienced(kind, seed % 1000)
    assert cross(phenotype, phenotype, share=share).same_bits(phenotype)
    assert kinship(phenotype.genome, phenotype.genome) == 1.0


@given(seeds, kinds)
@settings(max_examples=20)
def test_networks_that_are_no_kin_do_not_mix(seed: int, kind: str) -> None:
    kin, rng = family(kind), np.random.default_rng(seed)
    one = experienced(kind, seed % 1000)
    other = kin.redraw(one, rng)
    assert kin.similarity(one, other) == 0.0
    assert cross(one, other, share=0.6).same_bits(one)
    assert cross(one, other, share=0.4).same_bits(other)


def test_networks_for_other_data_do_not_mate() -> None:
    with pytest.raises(VariationError, match="cannot mate"):
        cross(experienced("image", 1), experienced("table", 1), share=0.5)
