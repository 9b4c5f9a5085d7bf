"""Growth leaves the function as it was; what shrinks goes by magnitude; everything gives valid networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from epicortex.errors import VariationError
from epicortex.families.family import Direction
from epicortex.families.genes import Genes
from epicortex.families.residual import Phenotype, ResidualFamily, ResidualOptions
from epicortex.families.residual.momentum import with_momentum
from epicortex.families.residual.network import Network
from epicortex.families.residual.operators import Mutated
from epicortex.families.residual.outline import outline
from tests.families.residual.world import (
    DIRECTIONS,
    OPERATORS,
    PROBLEMS,
    batch,
    experienced,
    family,
    outputs,
    trained,
)
from tests.strategies import seeds

KEEPING = [name for name, operator in OPERATORS.items() if operator.keeps]
kinds = st.sampled_from(sorted(PROBLEMS))


def widened(before: Phenotype, rng: np.random.Generator) -> Phenotype:
    """With more channels, or over the columns of a table with more nodes inside of a block."""
    name = "width" if OPERATORS["width"].possible(before.genome, "grow") else "inner"
    assume(OPERATORS[name].possible(before.genome, "grow"))
    return OPERATORS[name].apply(before, "grow", rng).phenotype


def test_growth_by_all_but_map_sizes_and_reshaping_keeps_the_function() -> None:
    assert KEEPING == ["width", "inner", "block", "kernel", "recipe"]


@pytest.mark.parametrize("name", KEEPING)
@given(seeds, kinds)
@settings(max_examples=30)
def test_a_grown_network_computes_what_it_did_before(name: str, seed: int, kind: str) -> None:
    before, operator = experienced(kind, seed % 1000), OPERATORS[name]
    assume(operator.possible(before.genome, "grow"))
    x = batch(kind, seed=seed)

    after = operator.apply(before, "grow", np.random.default_rng(seed)).phenotype

    for training in (True, False):
        was, now = outputs(before, x, training=training), outputs(after, x, training=training)
        # a block adds exact zeros; other growth adds them inside of sums, which torch may order anew
        if name in ("block", "recipe"):
            assert torch.equal(was, now)
        else:
            torch.testing.assert_close(now, was, rtol=1e-4, atol=1e-5)


def test_columns_of_a_table_neither_come_nor_go() -> None:
    rng, kin = np.random.default_rng(1), family("table")
    phenotype = kin.minimal(rng)
    assert not any(OPERATORS["width"].possible(phenotype.genome, direction) for direction in DIRECTIONS)
    for _ in range(40):
        phenotype = kin.mutate(phenotype, grow=0.6, relative_fitness=0.5, rng=rng).phenotype or phenotype
        assert phenotype.genome.stages[0].ids == tuple(range(7))


@given(seeds, kinds)
@settings(max_examples=30)
def test_running_statistics_of_what_was_there_go_on_as_before(seed: int, kind: str) -> None:
    before = experienced(kind, seed % 1000)
    rng, x = np.random.default_rng(seed), batch(kind, seed=seed)
    after = widened(before, rng)
    old, new = Network(before).train(), Network(after).train()
    old(x)
    new(x)
    found = dict(zip((layer.key for layer in after.genome.layers), new.phenotype().genes, strict=True))
    for layer, genes in old.phenotype().pairs():
        if layer.role != "out":
            np.testing.assert_allclose(found[layer.key]["mean"][: layer.nodes], genes["mean"], 1e-4, 1e-5)
            np.testing.assert_allclose(found[layer.key]["var"][: layer.nodes], genes["var"], 1e-4, 1e-5)


@given(
    seeds,
    kinds,
    st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.sampled_from(DIRECTIONS)), max_size=30),
)
@settings(max_examples=40)
def test_any_sequence_of_operators_gives_valid_networks(
    seed: int, kind: str, steps: list[tuple[str, Direction]]
) -> None:
    rng = np.random.default_rng(seed)
    phenotype = family(kind).minimal(rng)
    for name, direction in steps:
        operator = OPERATORS[name]
        if phenotype.genome.parameters > 20_000 and direction == "grow":
            continue
        if not operator.possible(phenotype.genome, direction):
            with pytest.raises(VariationError):
                operator.apply(phenotype, direction, rng)
            continue
        phenotype = _applied(operator.name, phenotype, direction, rng).phenotype
    assert torch.isfinite(outputs(phenotype, batch(kind), training=True)).all()


def _applied(name: str, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
    """Apply an operator, and see that it leaves its input alone and does the same again."""
    frozen = [{key: array.tobytes() for key, array in genes.items()} for genes in phenotype.genes]
    state = rng.bit_generator.state
    done = OPERATORS[name].apply(phenotype, direction, rng)
    again = np.random.default_rng(0)
    again.bit_generator.state = state
    assert OPERATORS[name].apply(phenotype, direction, again).phenotype.same_bits(done.phenotype)
    assert frozen == [{key: array.tobytes() for key, array in genes.items()} for genes in phenotype.genes]
    assert done.phenotype.genome != phenotype.genome
    if done.layer is not None:
        both = outline(phenotype.genome).parts, outline(done.phenotype.genome).parts
        parts = both[0] if name == "block" and direction == "shrink" else both[1]
        expected = {"inner": "block", "block": "block"}.get(name)
        assert parts[done.layer - 1].kind == expected or expected is None
    return done


@given(seeds, kinds, st.sampled_from(["width", "inner", "block", "kernel", "reshape"]))
@settings(max_examples=40)
def test_directions_are_those_of_the_cost(seed: int, kind: str, name: str) -> None:
    before = experienced(kind, seed % 1000)
    for direction, sign in (("grow", 1), ("shrink", -1)):
        if OPERATORS[name].possible(before.genome, direction):  # type: ignore[arg-type]
            after = OPERATORS[name].apply(before, direction, np.random.default_rng(seed))  # type: ignore[arg-type]
            change = sign * (after.phenotype.genome.cost - before.genome.cost)
            assert change >= 0 if name == "reshape" else change > 0


def test_narrowing_removes_the_channels_with_the_smallest_factors() -> None:
    founder = family("rectified table").minimal(np.random.default_rng(1))
    entry, *others = founder.genes
    gamma = np.linspace(1, 2, len(entry.bias), dtype=np.float32)
    gamma[2] = 0.01
    marked = [
        genes.replace(gamma=np.ones_like(genes["gamma"])) if "gamma" in genes else genes for genes in others
    ]
    phenotype = Phenotype(founder.genome, (entry.replace(gamma=gamma), *marked))

    narrow = OPERATORS["width"].apply(phenotype, "shrink", np.random.default_rng(1)).phenotype

    ids, kept = founder.genome.stages[0].ids, narrow.genome.stages[0].ids
    gone = [place for place, id in enumerate(ids) if id not in kept]
    assert 2 in gone
    assert all(gamma[place] <= gamma[kept_place] for place in gone for kept_place in map(ids.index, kept))
    assert narrow.genes[0]["gamma"].tobytes() == gamma[[ids.index(id) for id in kept]].tobytes()


def test_the_block_with_the_smallest_factors_goes_first() -> None:
    rng = np.random.default_rng(1)
    phenotype = family("table").minimal(rng)
    while sum(len(stage.blocks) for stage in phenotype.genome.stages) < 3:
        phenotype = OPERATORS["block"].apply(phenotype, "grow", rng).phenotype
    genes = list(phenotype.genes)
    outer = [i for i, layer in enumerate(phenotype.genome.layers) if layer.role == "outer"]
    for index, value in zip(outer, (0.5, -0.1, 0.9), strict=True):
        genes[index] = genes[index].replace(gamma=np.full_like(genes[index]["gamma"], value))
    weakest = phenotype.genome.layers[outer[1]].key[1]

    rest = OPERATORS["block"].apply(Phenotype(phenotype.genome, tuple(genes)), "shrink", rng).phenotype

    assert weakest not in [block.id for stage in rest.genome.stages for block in stage.blocks]


def test_kernels_lose_the_borders_that_carry_least() -> None:
    founder = family("image", kernel_mix=0.0).minimal(np.random.default_rng(1))
    weights = [np.array(genes.weight) for genes in founder.genes]
    for weight in weights[:-1]:
        weight[0, :, 0, :] = weight[0, :, -1, :] = 1e-6  # the rows above and below the middle of the first
    genes = [old.replace(weight=weight) for old, weight in zip(founder.genes, weights, strict=True)]
    phenotype = Phenotype(founder.genome, tuple(genes))

    for name, shape in (("kernel", (1, 3)), ("reshape", (1, 5))):
        after = OPERATORS[name].apply(phenotype, "shrink", np.random.default_rng(2)).phenotype.genome
        (changed,) = [
            new
            for old, new in zip(founder.genome.layers, after.layers, strict=True)
            if new.kernels != old.kernels
        ]
        assert changed.kernels[0] == shape


@given(seeds, kinds)
@settings(max_examples=15)
def test_momentum_travels_with_the_genes_and_is_zero_in_new_ones(seed: int, kind: str) -> None:
    network = Network(experienced(kind, seed % 100))
    before = with_momentum(network, trained(network, batch(kind)).state)
    assert before.states == ("momentum",)

    after = widened(before, np.random.default_rng(seed))

    found = {layer.key: (layer, genes) for layer, genes in after.pairs()}
    for layer, genes in before.pairs():
        if not layer.sources:
            assert "momentum_weight" not in genes
            continue
        wider, momentum = found[layer.key][0], found[layer.key][1]["momentum_weight"]
        old = genes["momentum_weight"]
        rows, columns = layer.nodes, layer.below[0]
        middle = tuple(
            slice((new - size) // 2, (new + size) // 2)
            for size, new in zip(layer.extent, wider.extent, strict=True)
        )
        assert (momentum[(slice(rows), slice(columns), *middle)] == old).all()
        assert np.count_nonzero(momentum) == np.count_nonzero(old)
        assert np.count_nonzero(old)


def test_mutation_keeps_to_the_limits() -> None:
    kin = family(max_parameters=1_000, max_cost=60_000, start_cost=60_000)
    rng = np.random.default_rng(1)
    phenotype = kin.minimal(rng)
    types = set()
    for _ in range(150):
        done = kin.mutate(phenotype, grow=0.8, relative_fitness=0.5, rng=rng)
        assert done.phenotype is not None
        phenotype = done.phenotype
        types.add((done.type, done.direction))
        assert kin.parameters(phenotype) <= 1_000
        assert kin.cost(phenotype) <= 60_000
    assert len(types) > 10


def test_mutations_can_be_left_out() -> None:
    options = ResidualOptions(mutations=("width", "block"), start_parameters=900)
    kin = ResidualFamily(PROBLEMS["image"], options)
    rng = np.random.default_rng(1)
    phenotype = kin.minimal(rng)
    done = [kin.mutate(phenotype, grow=0.5, relative_fitness=0.5, rng=rng).type for _ in range(30)]
    assert set(done) == {"width", "block"}


class Failing:
    """An operator of a person's own that does not work."""

    name = "failing"
    keeps = False

    def possible(self, genome: object, direction: Direction) -> bool:
        return True

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        raise ZeroDivisionError("by design")


def test_an_operator_that_fails_is_a_reason_and_no_crash() -> None:
    kin = ResidualFamily(PROBLEMS["table"], ResidualOptions(mutations=()), [Failing()])
    rng = np.random.default_rng(1)
    phenotype = kin.minimal(rng)

    done = kin.mutate(phenotype, grow=1.0, relative_fitness=0.5, rng=rng)

    assert done.phenotype is None
    assert done.reason == "operator failing failed: ZeroDivisionError: by design"
    assert kin.grow(phenotype, rng) is phenotype


def test_genes_cannot_be_written() -> None:
    phenotype = family().minimal(np.random.default_rng(1))
    genes: Genes = phenotype.genes[0]
    with pytest.raises(ValueError, match="read-only"):
        genes.weight[0] = 1
