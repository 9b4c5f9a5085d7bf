"""Each mutation does what its row of the table says, and touches nothing else."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from epicortex.errors import VariationError
from epicortex.families.family import Shape
from epicortex.families.genes import Genes
from epicortex.families.layered import OPERATORS, Direction, Mutated, Rules, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome, OutputLayer
from epicortex.families.layered.layers import HiddenLayer
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference
from tests.families.layered.odds import follows
from tests.strategies import odd_sizes, phenotypes, seeds, strides

RULES = Rules(kernel_temperature=8.0, stride_temperature=4.0)
DIRECTIONS: tuple[Direction, Direction] = ("grow", "shrink")
directions = st.sampled_from(DIRECTIONS)


def conv(*kernels: Shape, stride: Shape = (1, 1)) -> ConvLayer:
    return ConvLayer(kernels, stride)


def apply(
    name: str, phenotype: Phenotype, direction: Direction, seed: int = 1, rules: Rules = RULES
) -> Mutated:
    return OPERATORS[name].apply(phenotype, direction, rules=rules, rng=np.random.default_rng(seed))


def drawn(genome: Genome, seed: int = 1) -> Phenotype:
    return draw_phenotype(genome, rng=np.random.default_rng(seed))


def sources_after(before: Genome, after: Genome, place: int) -> list[int | None]:
    """Which old layer each new one continues, when one was inserted or removed at a place."""
    old: list[int | None] = list(range(len(before.layers)))
    if len(after.layers) > len(before.layers):
        old.insert(place, None)
    elif len(after.layers) < len(before.layers):
        del old[place]
    return old


def check(before: Phenotype, done: Mutated) -> list[float]:
    """Limits kept, zeros zero, kept weights bit-identical; gives what was drawn new."""
    after = done.phenotype
    assert reference.broken_limits(after.genome) == []
    assert reference.weights_around_kernels(after) == 0
    sources = sources_after(before.genome, after.genome, done.layer - 1)
    new = reference.drawn_new(before, after, sources)
    assert all(value != 0 for value in new), "a new weight was not drawn"
    for place in range(done.layer - 1):  # what is below is not touched at all
        assert after.genome.layers[place] == before.genome.layers[place]
        assert after.weights[place].same_bits(before.weights[place])
    return new


# ---- possible or not


@given(phenotypes())
def test_an_operator_is_possible_exactly_where_it_has_a_target(phenotype: Phenotype) -> None:
    genome, shapes = phenotype.genome, phenotype.genome.shapes
    convs = [(layer, shapes[i][1:]) for i, layer in enumerate(genome.hidden) if isinstance(layer, ConvLayer)]
    sizes = [
        (k, size)
        for layer, below in convs
        for kernel in layer.kernels
        for k, size in zip(kernel, below, strict=True)
    ]
    steps = [(s, size) for layer, below in convs for s, size in zip(layer.stride, below, strict=True)]
    expected = {
        ("layer", "grow"): True,
        ("layer", "shrink"): len(genome.hidden) > 0,
        ("node", "grow"): len(genome.hidden) > 0,
        ("node", "shrink"): any(layer.nodes > 1 for layer in genome.hidden),
        ("stride", "grow"): any(step > 1 for step, _ in steps),
        ("stride", "shrink"): any(step + 1 in strides(size) for step, size in steps),
        ("kernel", "grow"): any(kernel + 2 in odd_sizes(size) for kernel, size in sizes),
        ("kernel", "shrink"): any(kernel > 1 for kernel, _ in sizes),
    }
    for (name, direction), possible in expected.items():
        way: Direction = "grow" if direction == "grow" else "shrink"
        assert OPERATORS[name].possible(genome, way) == possible, (name, direction)
        if possible:
            check(phenotype, apply(name, phenotype, way))
        else:
            with pytest.raises(VariationError, match=f"'{name}' cannot {direction}"):
                apply(name, phenotype, way)


# ---- layers


@settings(max_examples=60)
@given(phenotypes(), seeds)
def test_a_layer_is_inserted_as_wide_as_the_mean_where_it_may_stand(phenotype: Phenotype, seed: int) -> None:
    before, done = phenotype.genome, apply("layer", phenotype, "grow", seed)
    after, place = done.phenotype.genome, done.layer - 1
    new = after.hidden[place]
    mean = sum(layer.nodes for layer in before.layers) / len(before.layers)
    assert new.nodes == max(1, math.floor(mean))
    assert len(after.hidden) == len(before.hidden) + 1
    kinds_below = [layer.type for layer in after.layers[:place]]
    kinds_above = [layer.type for layer in after.layers[place + 1 :]]
    if new.type == "conv":
        assert set(kinds_below) <= {"conv"}
        assert len(before.input_shape) > 1
    else:
        assert set(kinds_above) <= {"full", "out"}
    for old, layer in zip(before.hidden, (*after.hidden[:place], *after.hidden[place + 1 :]), strict=True):
        assert (old.type, old.nodes) == (layer.type, layer.nodes)
    assert len(check(phenotype, done)) >= new.nodes


def test_every_possible_place_and_type_is_a_candidate_and_no_other() -> None:
    genome = Genome((1, 8, 8), (conv((1, 1)), conv((3, 1)), FullLayer(3)), 2)
    phenotype = drawn(genome)
    places = Counter(
        (done.layer, done.phenotype.genome.hidden[done.layer - 1].type)
        for done in (apply("layer", phenotype, "grow", seed) for seed in range(400))
    )
    assert set(places) == {(1, "conv"), (2, "conv"), (3, "conv"), (3, "full"), (4, "full")}
    table = drawn(Genome((5,), (FullLayer(3),), 2))
    kinds = {
        (done.layer, done.phenotype.genome.hidden[done.layer - 1].type)
        for done in (apply("layer", table, "grow", seed) for seed in range(40))
    }
    assert kinds == {(1, "full"), (2, "full")}


#: One kernel shape and stride only, so that the candidates' parameters are known: 4 nodes on 1×2×2 inputs.
TINY = Genome((1, 2, 2), (FullLayer(4), FullLayer(2)), 6)


def inserted(rules: Rules, count: int) -> Counter[tuple[int, str]]:
    phenotype, rng, seen = drawn(TINY), np.random.default_rng(3), Counter[tuple[int, str]]()
    for _ in range(count):
        done = OPERATORS["layer"].apply(phenotype, "grow", rules=rules, rng=rng)
        seen[done.layer, done.phenotype.genome.hidden[done.layer - 1].type] += 1
    return seen


def test_a_new_layer_is_drawn_by_the_inverse_of_its_parameters() -> None:
    # ⌊(4 + 2 + 6)/3⌋ = 4 nodes. conv at 1: 4·1·1 + 4 = 8; full at 1: 4·4 + 4 = 20; at 2: 4·4 + 4 = 20;
    # full at 3 (on 2 nodes): 4·2 + 4 = 12
    odds = {(1, "conv"): 1 / 8, (1, "full"): 1 / 20, (2, "full"): 1 / 20, (3, "full"): 1 / 12}
    assert follows(inserted(Rules(), 2000), odds)


def test_a_new_layers_type_is_drawn_first_and_evenly_if_so_chosen() -> None:
    # half are convolutions; the others by inverse parameters 1/20 : 1/20 : 1/12, out of 11/60
    odds = {(1, "conv"): 0.5, (1, "full"): 3 / 22, (2, "full"): 3 / 22, (3, "full"): 5 / 22}
    assert follows(inserted(Rules(layer_choice="type"), 2000), odds)


def test_a_table_gets_full_layers_whatever_the_choice() -> None:
    done = apply("layer", drawn(Genome((5,), (), 2)), "grow", rules=Rules(layer_choice="type"))
    assert done.phenotype.genome == Genome((5,), (FullLayer(2),), 2)


def test_kernels_and_stride_of_an_inserted_layer_are_drawn_over_its_own_input() -> None:
    genome = Genome((1, 28, 28), (conv((1, 1), stride=(14, 7)),), 2)
    rules = Rules(kernel_temperature=1e6, stride_temperature=1e6, layer_choice="type")
    seen: dict[int, set[Shape]] = {1: set(), 2: set()}
    steps: dict[int, set[Shape]] = {1: set(), 2: set()}
    for seed in range(300):
        done = apply("layer", drawn(genome), "grow", seed, rules)
        layer = done.phenotype.genome.hidden[done.layer - 1]
        if isinstance(layer, ConvLayer):
            seen[done.layer] |= set(layer.kernels)
            steps[done.layer].add(layer.stride)
    assert seen[2] == {(1, 1)}  # over 2×4, half of which holds no 3×3
    assert steps[2] == {(1, 1), (1, 2)}
    assert all(max(kernel[d] for kernel in seen[1]) > 3 for d in range(2))
    assert all(max(step[d] for step in steps[1]) > 10 for d in range(2))


@settings(max_examples=60)
@given(phenotypes(), seeds)
def test_a_layer_is_removed_and_those_above_adapt(phenotype: Phenotype, seed: int) -> None:
    assume(phenotype.genome.hidden)
    done = apply("layer", phenotype, "shrink", seed)
    check(phenotype, done)
    hidden = phenotype.genome.hidden
    left = (*hidden[: done.layer - 1], *hidden[done.layer :])
    assert [(a.type, a.nodes) for a in left] == [(b.type, b.nodes) for b in done.phenotype.genome.hidden]


def test_the_layer_to_remove_is_drawn_by_the_inverse_of_its_parameters() -> None:
    # conv: 1·(9 + 1) + 2 = 12; full 3 over 2·8·8: 128·3 + 3 = 387; full 2: 3·2 + 2 = 8
    genome = Genome((1, 8, 8), (conv((3, 3), (1, 1)), FullLayer(3), FullLayer(2)), 4)
    phenotype = drawn(genome)
    counts = Counter(apply("layer", phenotype, "shrink", seed).layer for seed in range(2000))
    assert follows(counts, {1: 1 / 12, 2: 1 / 387, 3: 1 / 8})


# ---- nodes


@settings(max_examples=60)
@given(phenotypes(), directions, seeds)
def test_the_last_node_of_a_hidden_layer_comes_or_goes(
    phenotype: Phenotype, direction: Direction, seed: int
) -> None:
    assume(OPERATORS["node"].possible(phenotype.genome, direction))
    done = apply("node", phenotype, direction, seed)
    before, after, place = phenotype.genome, done.phenotype.genome, done.layer - 1
    check(phenotype, done)
    change = [new.nodes - old.nodes for old, new in zip(before.layers, after.layers, strict=True)]
    assert change == [(1 if direction == "grow" else -1) if i == place else 0 for i in range(len(change))]
    old, new = before.hidden[place], after.hidden[place]
    if isinstance(old, ConvLayer) and isinstance(new, ConvLayer):
        shared = min(old.nodes, new.nodes)
        assert old.kernels[:shared] == new.kernels[:shared]
        assert old.stride == new.stride
    assert before.hidden[:place] == after.hidden[:place]
    assert before.hidden[place + 1 :] == after.hidden[place + 1 :]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_nodes_layer_is_drawn_by_the_inverse_of_parameters_per_node(direction: Direction) -> None:
    # conv: (10 + 2)/2 = 6 per node; full 3: 387/3 = 129; full 2: 8/2 = 4; full 1: 3/1 = 3
    hidden = (conv((3, 3), (1, 1)), FullLayer(3), FullLayer(2), FullLayer(1))
    phenotype = drawn(Genome((1, 8, 8), hidden, 4))
    counts = Counter(apply("node", phenotype, direction, seed).layer for seed in range(2000))
    odds = {1: 1 / 6, 2: 1 / 129, 3: 1 / 4, 4: 1 / 3}
    if direction == "shrink":  # a layer keeps one node
        del odds[4]
    assert follows(counts, odds)


def test_a_new_kernel_is_drawn_over_the_layers_own_input() -> None:
    genome = Genome((1, 28, 28), (conv((1, 1), stride=(7, 7)), conv((1, 1))), 2)
    rules = Rules(kernel_temperature=1e6)
    seen: dict[int, set[Shape]] = {1: set(), 2: set()}
    for seed in range(400):
        done = apply("node", drawn(genome), "grow", seed, rules)
        layer = done.phenotype.genome.hidden[done.layer - 1]
        assert isinstance(layer, ConvLayer)
        seen[done.layer].add(layer.kernels[-1])
    assert seen[2] == {(1, 1)}  # over 4×4
    assert {kernel[0] for kernel in seen[1]} == {1, 3, 5, 7, 9, 11, 13}


# ---- strides


@settings(max_examples=60)
@given(phenotypes(), directions, seeds)
def test_a_stride_changes_by_one_in_one_dimension(
    phenotype: Phenotype, direction: Direction, seed: int
) -> None:
    assume(OPERATORS["stride"].possible(phenotype.genome, direction))
    done = apply("stride", phenotype, direction, seed)
    check(phenotype, done)
    old, new = phenotype.genome.hidden[done.layer - 1], done.phenotype.genome.hidden[done.layer - 1]
    assert isinstance(old, ConvLayer)
    assert isinstance(new, ConvLayer)
    steps = [b - a for a, b in zip(old.stride, new.stride, strict=True)]
    assert sorted(map(abs, steps)) == [0] * (len(steps) - 1) + [1]
    assert sum(steps) == (-1 if direction == "grow" else 1)
    assert old.kernels == new.kernels


def test_growing_a_stride_back_restores_the_shape_and_keeps_the_centre_of_what_looks_at_it() -> None:
    genome = Genome((1, 8, 8), (conv((1, 1)),), 2)
    smaller = apply("stride", drawn(genome), "shrink").phenotype
    assert math.prod(smaller.genome.shapes[1]) == 32
    larger = OPERATORS["stride"].apply(smaller, "grow", rules=RULES, rng=np.random.default_rng(5))
    assert larger.phenotype.genome == genome
    assert len(check(smaller, larger)) == 2 * 32


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_strides_are_drawn_evenly_over_layers_and_dimensions(direction: Direction) -> None:
    # the inputs are 8×9 and 4×9; half of 4 is 2, so the second layer's height is at its limit
    hidden: tuple[HiddenLayer, ...] = (
        conv((1, 1), stride=(2, 1)),
        conv((1, 1), (1, 1), (1, 1), stride=(2, 3)),
    )
    phenotype = drawn(Genome((1, 8, 9), hidden, 2))
    counts: Counter[tuple[int, int]] = Counter()
    for seed in range(2000):
        done = apply("stride", phenotype, direction, seed)
        old, new = hidden[done.layer - 1], done.phenotype.genome.hidden[done.layer - 1]
        assert isinstance(old, ConvLayer)
        assert isinstance(new, ConvLayer)
        counts[done.layer, next(d for d in range(2) if old.stride[d] != new.stride[d])] += 1
    possible = [(1, 0), (1, 1), (2, 1)] if direction == "shrink" else [(1, 0), (2, 0), (2, 1)]
    assert follows(counts, dict.fromkeys(possible, 1.0))


# ---- kernels


@settings(max_examples=60)
@given(phenotypes(), directions, seeds)
def test_one_kernel_changes_by_two_in_one_dimension_and_keeps_its_centre(
    phenotype: Phenotype, direction: Direction, seed: int
) -> None:
    assume(OPERATORS["kernel"].possible(phenotype.genome, direction))
    done = apply("kernel", phenotype, direction, seed)
    new = check(phenotype, done)
    before, after, place = phenotype.genome, done.phenotype.genome, done.layer - 1
    old_layer, new_layer = before.hidden[place], after.hidden[place]
    assert isinstance(old_layer, ConvLayer)
    assert isinstance(new_layer, ConvLayer)
    changed = [i for i in range(old_layer.nodes) if old_layer.kernels[i] != new_layer.kernels[i]]
    assert len(changed) == 1
    old, grown = old_layer.kernels[changed[0]], new_layer.kernels[changed[0]]
    assert sum(b - a for a, b in zip(old, grown, strict=True)) == (2 if direction == "grow" else -2)
    assert sum(a != b for a, b in zip(old, grown, strict=True)) == 1
    assert len(new) == max(0, before.shapes[place][0] * (math.prod(grown) - math.prod(old)))
    # no connection anywhere else comes or goes, and everything else is bit-identical
    assert (
        before.hidden[:place] + before.hidden[place + 1 :] == after.hidden[:place] + after.hidden[place + 1 :]
    )
    for other in set(range(len(before.layers))) - {place}:
        assert phenotype.weights[other].same_bits(done.phenotype.weights[other])
    for node in set(range(old_layer.nodes)) - set(changed):
        assert reference.gene(phenotype, place, node) == reference.gene(done.phenotype, place, node)


def test_growing_adds_a_row_on_both_sides_and_shrinking_drops_the_outer_two() -> None:
    genome = Genome((1, 8, 6), (conv((3, 3)),), 2)
    phenotype = drawn(Genome((1, 8, 6), (conv((1, 3)),), 2))
    grown = apply("kernel", phenotype, "grow")  # only the height has room
    assert grown.phenotype.genome == genome
    assert (grown.phenotype.weights[0].weight[0, 0, 1] == phenotype.weights[0].weight[0, 0, 0]).all()
    whole = drawn(genome)
    for seed in range(10):
        kept = apply("kernel", whole, "shrink", seed).phenotype
        middle = (
            (slice(1, 2), slice(None))
            if kept.genome.hidden[0] == conv((1, 3))
            else (slice(None), slice(1, 2))
        )
        assert (kept.weights[0].weight[0, 0] == whole.weights[0].weight[0, 0][middle]).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kernels_are_drawn_evenly_over_layers_kernels_and_dimensions(direction: Direction) -> None:
    hidden = (conv((3, 1), (1, 3)), conv((1, 1), (3, 3), (5, 1)))
    phenotype = drawn(Genome((1, 10, 6), hidden, 2))  # kernels up to 5×3 in both layers
    counts: Counter[tuple[int, int, int]] = Counter()
    for seed in range(1500):
        done = apply("kernel", phenotype, direction, seed)
        new = done.phenotype.genome.hidden[done.layer - 1]
        assert isinstance(new, ConvLayer)
        old = hidden[done.layer - 1].kernels
        ((node, dimension),) = [
            (i, d) for i in range(len(old)) for d in range(2) if old[i][d] != new.kernels[i][d]
        ]
        counts[done.layer, node, dimension] += 1
    limit, step = (5, 3), 2 if direction == "grow" else -2
    possible = {
        (index, node, dimension): 1.0
        for index, layer in enumerate(hidden, 1)
        for node, dimension in product(range(layer.nodes), range(2))
        if 1 <= layer.kernels[node][dimension] + step <= limit[dimension]
    }
    assert follows(counts, possible)


# ---- limits re-imposed, inputs adapted


def test_in_the_published_reading_kernels_grow_by_the_size_one_place_to_the_left() -> None:
    """Growing: height by the channels, width by the height. Shrinking: by the inverse of the same."""
    published = Rules(targets="size")
    before = drawn(Genome((4, 16, 16), (conv((3, 5), (5, 3)),), 3))
    sizes: dict[tuple[Shape, int], float]
    sizes = {((5, 5), 0): 4, ((3, 7), 0): 3, ((7, 3), 1): 4, ((5, 5), 1): 5}
    inverse: dict[tuple[Shape, int], float]
    inverse = {((1, 5), 0): 1 / 4, ((3, 3), 0): 1 / 3, ((3, 3), 1): 1 / 4, ((5, 1), 1): 1 / 5}
    for direction, odds in zip(DIRECTIONS, (sizes, inverse), strict=True):
        seen: Counter[tuple[Shape, int]] = Counter()
        for seed in range(600):
            after = apply("kernel", before, direction, seed, published).phenotype.genome.hidden[0].kernels
            index = next(i for i in (0, 1) if after[i] != before.genome.hidden[0].kernels[i])
            seen[after[index], index] += 1
        assert follows(seen, odds)


def test_in_the_published_reading_large_strides_grow_and_small_ones_shrink() -> None:
    published = Rules(targets="size")
    before = drawn(Genome((1, 16, 16), (conv((1, 1), stride=(2, 4)),), 3))
    smaller: dict[Shape, float] = {(1, 4): 1 / 2, (2, 3): 1 / 4}
    larger: dict[Shape, float] = {(3, 4): 2, (2, 5): 4}
    for direction, odds in zip(DIRECTIONS, (smaller, larger), strict=True):
        seen: Counter[Shape] = Counter(
            apply("stride", before, direction, seed, published).phenotype.genome.hidden[0].stride
            for seed in range(400)
        )
        assert follows(seen, odds)


def test_a_growing_stride_crops_the_kernels_above_to_their_new_limit_on_the_centre() -> None:
    genome = Genome((1, 12, 12), (conv((1, 1)), conv((5, 5), (1, 5), stride=(6, 6)), FullLayer(2)), 3)
    phenotype = drawn(genome)
    smaller = apply("stride", phenotype, "shrink", seed=1)
    above = smaller.phenotype.genome.hidden[1]
    assert isinstance(above, ConvLayer)
    first = smaller.phenotype.genome.hidden[0]
    assert isinstance(first, ConvLayer)
    dimension = first.stride.index(2)
    limits = [5, 5]
    limits[dimension] = 3  # over 6 in that dimension
    assert above.kernels == (tuple(limits), (1, limits[1]))
    assert above.stride[dimension] == 3
    assert check(phenotype, smaller) == []  # 2 outputs in each dimension before and after: nothing is new
    before, after = phenotype.weights[1].weight, smaller.phenotype.weights[1].weight
    crop = (slice(1, 4), slice(0, 5)) if dimension == 0 else (slice(0, 5), slice(1, 4))
    assert (before[0, 0][crop] == after[0, 0]).all()


@pytest.mark.parametrize(
    ("old", "new", "kept_from", "kept_to"),
    [
        # cropping 5 to 2 drops one on the low side and two on the high one
        (5, 2, [1, 2], [0, 1]),
        (5, 3, [1, 2, 3], [0, 1, 2]),
        (4, 1, [1], [0]),
        # padding 2 to 5 puts one on the low side and two on the high one
        (2, 5, [0, 1], [1, 2]),
        (3, 5, [0, 1, 2], [1, 2, 3]),
        (1, 4, [0], [1]),
    ],
)
def test_full_inputs_are_cropped_and_padded_on_the_centre(
    old: int, new: int, kept_from: list[int], kept_to: list[int]
) -> None:
    """The inputs of the output layer as [channel, height, width]; worked out by hand, in both dimensions."""
    rng = np.random.default_rng(1)
    for shape_old, shape_new, axis in (((3, old, 2), (2, new, 2), 0), ((3, 2, old), (4, 2, new), 1)):
        weight = rng.standard_normal((2, math.prod(shape_old)), dtype=np.float32)
        bias = rng.standard_normal(2, dtype=np.float32)
        layer = OutputLayer(2)
        fitted = layer.refit(Genes(weight, bias), layer, shape_old, shape_new, rules=RULES, rng=rng)
        source, target = weight.reshape(2, *shape_old), fitted.weight.reshape(2, *shape_new)
        channels = min(shape_old[0], shape_new[0])
        for channel, other, (a, b) in product(
            range(channels), range(2), zip(kept_from, kept_to, strict=True)
        ):
            at_old, at_new = ((a, other), (b, other)) if axis == 0 else ((other, a), (other, b))
            for node in range(2):
                assert source[(node, channel, *at_old)] == target[(node, channel, *at_new)]
        assert np.isin(target, source).sum() == 2 * channels * 2 * len(kept_to), "the rest must be new"
        assert (fitted.bias == bias).all()


def test_channels_are_matched_by_index_when_a_node_comes_or_goes_below() -> None:
    phenotype = drawn(Genome((1, 4, 4), (conv((1, 1), (1, 1)), conv((1, 1))), 2))
    for seed in range(10):
        done = apply("node", phenotype, "grow", seed)
        if done.layer == 1:
            above = done.phenotype.weights[1].weight
            assert above.shape[1] == 3
            assert (above[:, :2] == phenotype.weights[1].weight).all()
    gone = apply("node", phenotype, "shrink")
    assert gone.layer == 1
    assert (gone.phenotype.weights[1].weight == phenotype.weights[1].weight[:, :1]).all()


# ---- new weights


def test_new_weights_are_normal_with_a_deviation_of_a_tenth_in_every_mutation() -> None:
    genome = Genome((2, 12, 12), (conv((1, 1), (3, 3), stride=(2, 2)), conv((3, 1)), FullLayer(3)), 3)
    values: dict[str, list[float]] = {name: [] for name in OPERATORS}
    for seed, name in product(range(40), OPERATORS):
        phenotype = drawn(genome, seed)
        values[name] += check(phenotype, apply(name, phenotype, "grow", seed))
    for name, new in values.items():
        assert len(new) > 100, name
        spread = 4 / math.sqrt(len(new))
        assert abs(np.mean(new)) < 0.1 * spread, name
        assert np.std(new) == pytest.approx(0.1, rel=spread), name
        assert len(set(new)) > 0.99 * len(new), name


def test_the_deviation_of_new_weights_is_a_setting() -> None:
    wide = apply("layer", drawn(Genome((20,), (), 10)), "grow", rules=Rules(weight_deviation=3.0))
    assert np.std(wide.phenotype.weights[0].weight) == pytest.approx(3.0, rel=0.3)
