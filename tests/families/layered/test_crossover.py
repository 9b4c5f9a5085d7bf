"""A child is made of whole genes of its parents, aligned from the bottom within each type of layer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from epicortex.errors import VariationError
from epicortex.families.family import Problem, Shape
from epicortex.families.genes import Genes
from epicortex.families.layered import LayeredFamily, Rules, cross, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.layers import HiddenLayer
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference
from tests.families.layered.lineage import Lineage
from tests.families.layered.odds import follows
from tests.strategies import parents, phenotypes, seeds, shares

RULES = Rules()


def conv(*kernels: Shape, stride: Shape = (1, 1)) -> ConvLayer:
    return ConvLayer(kernels, stride)


def child_of(one: Phenotype, other: Phenotype, share: float = 0.5, seed: int = 1) -> Phenotype:
    return cross(one, other, share=share, rules=RULES, rng=np.random.default_rng(seed))


def pair(a: tuple[HiddenLayer, ...], b: tuple[HiddenLayer, ...], shape: Shape = (1, 8, 8)) -> list[Phenotype]:
    rng = np.random.default_rng(1)
    return [draw_phenotype(Genome(shape, hidden, 4), rng=rng) for hidden in (a, b)]


# ---- within a species


@settings(max_examples=60)
@given(phenotypes(), seeds, shares)
def test_within_a_species_every_gene_is_bit_for_bit_that_of_one_parent(
    one: Phenotype, seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    genome = one.genome
    other = LayeredFamily(
        Problem(genome.input_shape, genome.classes), rules=Rules(kernel_temperature=8.0)
    ).redraw(one, rng)
    child = cross(one, other, share=share, rules=RULES, rng=rng)
    assert child.genome.species_key == one.genome.species_key == other.genome.species_key
    assert reference.weights_around_kernels(child) == 0
    for place, layer in enumerate(child.genome.layers):
        for node in range(layer.nodes):
            genes = [reference.gene(parent, place, node) for parent in (one, other)]
            mine = reference.gene(child, place, node)
            assert mine in genes
            if isinstance(layer, ConvLayer):
                source = (one, other)[genes.index(mine)].genome.layers[place]
                assert isinstance(source, ConvLayer)
                assert layer.kernels[node] == source.kernels[node]


def test_a_gene_is_picked_by_the_share_of_its_parent_independently_of_the_others() -> None:
    one, other = pair((conv(*[(3, 3)] * 6), FullLayer(6)), (conv(*[(1, 3)] * 6), FullLayer(6)))
    for share in (0.1, 0.5, 0.731):
        origins, rng = [], np.random.default_rng(2)
        for _ in range(400):
            child = cross(one, other, share=share, rules=RULES, rng=rng)
            origins.append(Lineage(one, other, child).origins())
        flat = np.array([[who for layer in each for who in layer] for each in origins])
        assert flat.shape == (400, 16)
        taken = Counter(flat.ravel().tolist())
        assert follows(taken, {0: share, 1: 1 - share})
        # neighbours agree exactly as often as independent draws do, within a layer and across layers
        agree = Counter((flat[:, 1:] == flat[:, :-1]).ravel().tolist())
        both = share**2 + (1 - share) ** 2
        assert follows(agree, {True: both, False: 1 - both})
        for node in range(16):
            assert follows(Counter(flat[:, node].tolist()), {0: share, 1: 1 - share})


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_parent_with_the_whole_share_is_copied(share: float) -> None:
    one, other = pair((conv((3, 3), (1, 1)), FullLayer(2)), (conv((1, 3), (3, 1)), FullLayer(2)))
    for seed in range(5):
        assert child_of(one, other, share, seed).same_bits(one if share == 1 else other)


def test_a_network_crossed_with_itself_is_itself() -> None:
    one, _ = pair((conv((3, 3), (1, 1), stride=(2, 1)), FullLayer(2)), ())
    assert child_of(one, one).same_bits(one)


# ---- across species


@settings(max_examples=120)
@given(parents(), seeds, shares)
def test_across_species_a_child_is_what_its_parents_genes_allow(
    both: tuple[Phenotype, Phenotype], seed: int, share: float
) -> None:
    child = child_of(*both, share, seed)
    Lineage(*both, child).check()
    assert reference.broken_limits(child.genome) == []
    assert reference.weights_around_kernels(child) == 0


def test_layers_are_aligned_from_the_bottom_within_their_type() -> None:
    one, other = pair(
        (conv((1, 1)), conv((3, 3), (3, 3)), FullLayer(2), FullLayer(3)),
        (conv((3, 1)), FullLayer(2)),
    )
    taken: Counter[tuple[int, int]] = Counter()
    for seed in range(200):
        child = child_of(one, other, 0.4, seed)
        convs, full = child.genome.convolutions, len(child.genome.hidden) - child.genome.convolutions
        taken[convs, full] += 1
        biases = [layer.bias for layer in child.weights]
        assert biases[0][0] in (one.weights[0].bias[0], other.weights[0].bias[0])
        assert all(biases[convs][i] in (one.weights[2].bias[i], other.weights[1].bias[i]) for i in range(2))
        if convs == 2:  # the excess layer comes whole, as it was
            assert (biases[1] == one.weights[1].bias).all()
            assert child.genome.hidden[1] == one.genome.hidden[1]
        if full == 2:
            assert (biases[-2] == one.weights[3].bias).all()
    assert set(taken) == {(1, 1), (1, 2), (2, 1), (2, 2)}


@pytest.mark.parametrize("swap", [False, True])
def test_excess_layers_come_all_or_none_by_the_share_of_who_has_them(swap: bool) -> None:
    """The first has 2 convolutions more, the other 2 full layers more; each type is drawn on its own."""
    one, other = pair((conv((1, 1)),) * 3, (conv((1, 1)), FullLayer(2), FullLayer(2)))
    if swap:
        one, other = other, one
    share, rng = 0.3, np.random.default_rng(4)
    shapes: Counter[tuple[int, int]] = Counter()
    for _ in range(1500):
        child = cross(one, other, share=share, rules=RULES, rng=rng).genome
        shapes[child.convolutions, len(child.hidden) - child.convolutions] += 1
    conv_in, full_in = (0.7, 0.3) if swap else (0.3, 0.7)
    odds = {
        (3, 2): conv_in * full_in,
        (3, 0): conv_in * (1 - full_in),
        (1, 2): (1 - conv_in) * full_in,
        (1, 0): (1 - conv_in) * (1 - full_in),
    }
    assert follows(shapes, odds)


@pytest.mark.parametrize("swap", [False, True])
def test_excess_nodes_come_all_or_none_by_the_share_of_the_larger_layer(swap: bool) -> None:
    """conv 1 | 4 and full 5 | 2: each layer is drawn on its own."""
    one, other = pair((conv((1, 1)), FullLayer(5)), (conv(*[(1, 1)] * 4), FullLayer(2)))
    if swap:
        one, other = other, one
    share, rng = 0.3, np.random.default_rng(5)
    nodes: Counter[tuple[int, int]] = Counter()
    for _ in range(1500):
        child = cross(one, other, share=share, rules=RULES, rng=rng)
        first, second = (layer.nodes for layer in child.genome.hidden)
        nodes[first, second] += 1
    conv_in, full_in = (0.3, 0.7) if swap else (0.7, 0.3)
    odds = {
        (4, 5): conv_in * full_in,
        (4, 2): conv_in * (1 - full_in),
        (1, 5): (1 - conv_in) * full_in,
        (1, 2): (1 - conv_in) * (1 - full_in),
    }
    assert follows(nodes, odds)


def test_a_layers_stride_comes_whole_from_one_parent_by_its_share() -> None:
    one, other = pair((conv((1, 1), stride=(2, 3)),), (conv((1, 1), stride=(3, 1)),))
    rng = np.random.default_rng(6)
    seen: Counter[tuple[Shape, int]] = Counter()
    for _ in range(1500):
        child = cross(one, other, share=0.3, rules=RULES, rng=rng)
        layer = child.genome.hidden[0]
        assert isinstance(layer, ConvLayer)
        seen[layer.stride, int(child.weights[0].bias[0] == one.weights[0].bias[0])] += 1
    # on its own: the stride says nothing about where the kernel came from
    odds: dict[tuple[Shape, int], float] = {
        ((2, 3), 1): 0.09,
        ((2, 3), 0): 0.21,
        ((3, 1), 1): 0.21,
        ((3, 1), 0): 0.49,
    }
    assert follows(seen, odds)


def test_missing_channels_are_drawn_new_and_surplus_ones_dropped() -> None:
    """Worked by hand: conv 2 → conv 1 | conv 3 → conv 1, the second layer's kernel from either."""
    one, other = pair((conv((1, 1), (1, 1)), conv((3, 3))), (conv(*[(1, 1)] * 3), conv((3, 1))))
    cases: set[tuple[int, bool]] = set()
    for seed in range(60):
        child = child_of(one, other, seed=seed)
        weight, channels = child.weights[1].weight, child.genome.hidden[0].nodes
        mine = child.weights[1].bias[0] == one.weights[1].bias[0]
        source = (one if mine else other).weights[1].weight
        shared = min(channels, source.shape[1])
        assert (weight[:, :shared] == source[:, :shared]).all()
        assert weight[:, shared:].all()
        assert not np.isin(weight[:, shared:], source).any()
        cases.add((channels, bool(mine)))
    assert cases == {(2, True), (2, False), (3, True), (3, False)}


def test_full_genes_are_matched_as_a_map_never_as_a_flat_vector() -> None:
    """Output over [1, 8, 8] in one parent and over [1, 3, 8] in the other; worked by hand."""
    one, other = pair((conv((1, 1)),), (conv((1, 1), stride=(3, 1)),))
    seen = set()
    for seed in range(60):
        child = child_of(one, other, seed=seed)
        height = child.genome.shapes[1][1]
        maps = child.weights[1].weight.reshape(4, height, 8)
        for node in range(4):
            mine = child.weights[1].bias[node] == one.weights[1].bias[node]
            source = one if mine else other
            plane = source.weights[1].weight.reshape(4, -1, 8)[node]
            if height == 3 and mine:  # 8 rows to 3: two go on the low side, three on the high one
                assert (maps[node] == plane[2:5]).all()
            elif height == 8 and not mine:  # 3 rows to 8: two come on the low side, three on the high one
                assert (maps[node, 2:5] == plane).all()
                assert not np.isin(maps[node, [0, 1, 5, 6, 7]], plane).any()
            else:
                assert (maps[node] == plane).all()
            seen.add((height, bool(mine)))
    assert len(seen) == 4


def test_kernels_that_no_longer_fit_are_cropped_on_their_centre() -> None:
    """Over 12×12 a 5×5 kernel stands on a stride of 1; in the child it may stand on one of 3."""
    one, other = pair((conv((1, 1)), conv((5, 5))), (conv((1, 1), stride=(2, 3)),), shape=(1, 12, 12))
    cropped = 0
    for seed in range(60):
        child = child_of(one, other, seed=seed)
        if child.genome.convolutions == 2 and child.genome.shapes[1][1:] == (6, 4):
            cropped += 1
            assert child.genome.hidden[1] == conv((3, 1))
            assert (child.weights[1].weight[0, 0] == one.weights[1].weight[0, 0, 1:4, 2:3]).all()
    assert cropped > 5


def test_drawn_weights_are_normal_with_a_deviation_of_a_tenth() -> None:
    one, other = pair((conv((1, 1)),), (conv(*[(1, 1)] * 6), FullLayer(6)))
    new: list[float] = []
    for seed in range(40):
        new += Lineage(one, other, child_of(one, other, seed=seed)).check()
    assert len(new) > 2000
    assert np.std(new) == pytest.approx(0.1, rel=0.1)
    assert abs(np.mean(new)) < 0.01


def test_zeros_of_a_larger_kernel_beside_it_are_not_inherited() -> None:
    """A 1×1 kernel beside a 3×3 one brings one weight per channel, also where it stands alone later."""
    one, other = pair((conv((1, 1), (3, 3)),), (conv((1, 1), (1, 1)),))
    for seed in range(40):
        child = child_of(one, other, seed=seed)
        layer = child.genome.hidden[0]
        assert isinstance(layer, ConvLayer)
        assert child.weights[0].weight.shape[2:] == layer.extent == max(layer.kernels)


def test_networks_for_other_data_cannot_mate() -> None:
    rng = np.random.default_rng(1)
    one = draw_phenotype(Genome((1, 8, 8), (), 4), rng=rng)
    for shape, classes in (((1, 8, 8), 5), ((1, 8, 9), 4), ((64,), 4)):
        with pytest.raises(VariationError, match="cannot mate"):
            child_of(one, draw_phenotype(Genome(shape, (), classes), rng=rng))


def test_nan_weights_are_carried_like_any_others() -> None:
    one, other = pair((conv((3, 3)),), (conv((3, 3)),))
    spoilt = Phenotype(
        one.genome,
        (Genes(one.weights[0].weight * np.float32(np.nan), one.weights[0].bias), one.weights[1]),
    )
    child = child_of(spoilt, other, share=1.0)
    assert np.isnan(child.weights[0].weight).all()
