"""The layered family: what the ecosystem asks of it, and that nothing it is given ever changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.config import Config
from epicortex.errors import ConfigError, GenomeError
from epicortex.families.family import Problem, Shape
from epicortex.families.layered import KernelOperator, LayeredFamily, Rules, StrideOperator, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference
from tests.families.layered.odds import follows
from tests.strategies import odd_sizes, parents, phenotypes, seeds


def family_of(phenotype: Phenotype, rules: Rules | None = None) -> LayeredFamily:
    return LayeredFamily(Problem(phenotype.genome.input_shape, phenotype.genome.classes), rules=rules)


@pytest.mark.parametrize("name", [["relu"], {"relu": 1}, None, 7, "tan", "x" * 100_000])
def test_facts_from_a_file_that_name_no_activation_are_refused_in_one_line(name: object) -> None:
    facts = LayeredFamily(Problem((1, 8, 8), 10)).facts()
    for activation in ("conv_activation", "full_activation"):
        with pytest.raises(GenomeError) as refused:
            LayeredFamily.from_facts({**facts, activation: name})
        assert len(str(refused.value)) < 200


# ---- founders


def test_the_minimal_network_is_the_output_layer_with_weights_of_its_own() -> None:
    family, rng = LayeredFamily(Problem((1, 8, 8), 10)), np.random.default_rng(1)
    one, other = family.minimal(rng), family.minimal(rng)
    assert one.genome == other.genome == Genome((1, 8, 8), (), 10)
    assert not one.same_bits(other)


def test_a_start_genome_takes_the_place_of_the_minimal_one() -> None:
    start = Genome((1, 8, 8), (FullLayer(3),), 10)
    assert (
        LayeredFamily(Problem((1, 8, 8), 10), start=start).minimal(np.random.default_rng(1)).genome == start
    )
    for shape, classes in (((1, 8, 9), 10), ((1, 8, 8), 9)):
        with pytest.raises(ConfigError, match="start genome"):
            LayeredFamily(Problem(shape, classes), start=start)


def test_founders_grow_by_types_drawn_evenly_among_the_possible() -> None:
    genome = Genome((1, 8, 8), (ConvLayer(((1, 1),), (2, 1)), FullLayer(3)), 4)
    phenotype, rng = draw_phenotype(genome, rng=np.random.default_rng(1)), np.random.default_rng(2)
    family, kinds = family_of(phenotype), Counter[str]()
    for _ in range(800):
        grown = family.grow(phenotype, rng).genome
        old, new = genome.hidden[0], grown.hidden[0]
        if len(grown.hidden) > 2:
            kinds["layer"] += 1
        elif grown.nodes > genome.nodes:
            kinds["node"] += 1
        else:
            assert isinstance(old, ConvLayer)
            assert isinstance(new, ConvLayer)
            kinds["stride" if new.stride != old.stride else "kernel"] += 1
    assert follows(kinds, dict.fromkeys(["layer", "node", "stride", "kernel"], 1.0))


def test_a_founder_that_cannot_grow_stays_as_it_is() -> None:
    family = LayeredFamily(Problem((1, 8, 8), 4), operators=[StrideOperator(), KernelOperator()])
    minimal = family.minimal(np.random.default_rng(1))
    assert family.grow(minimal, np.random.default_rng(1)).same_bits(minimal)


@given(phenotypes(), seeds)
def test_a_redrawn_member_is_of_the_same_species_with_all_else_its_own(
    phenotype: Phenotype, seed: int
) -> None:
    family = family_of(phenotype, Rules(kernel_temperature=8.0))
    other = family.redraw(phenotype, np.random.default_rng(seed))
    assert family.key(other) == family.key(phenotype)
    assert reference.broken_limits(other.genome) == []
    for place, layer in enumerate(other.genome.layers):
        for node in range(layer.nodes):
            mine, theirs = reference.gene(other, place, node), reference.gene(phenotype, place, node)
            assert mine.bias != theirs.bias
            assert not set(mine.entries.values()) & set(theirs.entries.values())


def test_kernels_of_a_redrawn_member_follow_the_odds_of_new_ones() -> None:
    genome = Genome((1, 8, 8), (ConvLayer(((3, 3),) * 30, (1, 1)),), 2)
    phenotype, rng = draw_phenotype(genome, rng=np.random.default_rng(1)), np.random.default_rng(2)
    family, shapes = family_of(phenotype, Rules(kernel_temperature=8.0)), Counter[Shape]()
    for _ in range(40):
        layer = family.redraw(phenotype, rng).genome.hidden[0]
        assert isinstance(layer, ConvLayer)
        shapes.update(layer.kernels)
    odds = {shape: math.exp(-math.prod(shape) / 8) for shape in product(odd_sizes(8), repeat=2)}
    assert follows(shapes, odds)


# ---- clones


def test_a_clones_kernel_is_drawn_evenly_over_kernels_dimensions_and_directions() -> None:
    kernels = [((3, 1), (1, 3)), ((1, 1), (3, 3), (5, 1))]
    genome = Genome((1, 10, 6), tuple(ConvLayer(each, (1, 1)) for each in kernels), 2)
    phenotype, rng = draw_phenotype(genome, rng=np.random.default_rng(1)), np.random.default_rng(2)
    family, seen = family_of(phenotype), Counter[tuple[int, int, int, int]]()
    for _ in range(2000):
        clone = family.clone(phenotype, rng).genome
        changes = []
        for place, layer in enumerate(clone.hidden):
            assert isinstance(layer, ConvLayer)
            for node, dimension in product(range(layer.nodes), range(2)):
                change = layer.kernels[node][dimension] - kernels[place][node][dimension]
                if change:
                    changes.append((place, node, dimension, change))
        ((*which, change),) = changes
        seen[which[0], which[1], which[2], change] += 1
    possible = {
        (place, node, dimension, change): 1.0
        for place, layer_kernels in enumerate(kernels)
        for node, kernel in enumerate(layer_kernels)
        for dimension, change in product(range(2), (-2, 2))
        if 1 <= kernel[dimension] + change <= (5, 3)[dimension]
    }
    assert follows(seen, possible)


@given(phenotypes(), seeds)
def test_a_clone_keeps_all_but_one_kernel_and_its_species(phenotype: Phenotype, seed: int) -> None:
    clone = family_of(phenotype).clone(phenotype, np.random.default_rng(seed))
    assert clone.genome.species_key == phenotype.genome.species_key
    new = reference.drawn_new(phenotype, clone, range(len(phenotype.genome.layers)))
    resizable = any(KernelOperator().possible(phenotype.genome, way) for way in ("grow", "shrink"))
    assert clone.same_bits(phenotype) == (not resizable)
    assert len(new) == max(0, clone.genome.parameters - phenotype.genome.parameters)
    named = family_of(phenotype).cloned(phenotype, np.random.default_rng(seed))
    assert (named is not None) == resizable
    if named is not None:
        assert named.phenotype is not None
        assert named.phenotype.same_bits(clone)
        grew = clone.genome.parameters > phenotype.genome.parameters
        assert (named.type, named.direction) == ("kernel", "grow" if grew else "shrink")


# ---- key, similarity, settings


@given(parents())
def test_key_similarity_and_parameters_are_those_of_the_genomes(both: tuple[Phenotype, Phenotype]) -> None:
    one, other = both
    family = family_of(one)
    assert family.key(one) == one.genome.species_key
    assert family.similarity(one, other) == one.genome.similarity(other.genome)
    assert family.parameters(one) == one.genome.parameters


def test_rules_are_taken_from_the_settings_one_by_one() -> None:
    assert Rules.from_config(Config()) == Rules()
    drawing = {"weight_deviation": 0.3, "kernel_temperature": 3.0, "stride_temperature": 5.0}
    reading = {
        "kernel_start": "perimeter",
        "layer_choice": "type",
        "kernel_weight": "nodes",
        "mutation_choice": "fitness",
        "similarity": "strides",
        "targets": "size",
    }
    rules = Rules.from_config(Config.model_validate({"evolution": drawing, "layered": reading}))
    other = {**drawing, **reading}
    assert {name: getattr(rules, name) for name in other} == other
    # the credit of mutations is handed over, not set
    assert {*other, "credit"} == set(Rules.__slots__)


# ---- purity


Change = Callable[[LayeredFamily, Phenotype, Phenotype, np.random.Generator], Phenotype | None]


def _mutate(grow: float) -> Change:
    def change(
        family: LayeredFamily, one: Phenotype, _: Phenotype, rng: np.random.Generator
    ) -> Phenotype | None:
        return family.mutate(one, grow=grow, relative_fitness=0.5, rng=rng).phenotype

    return change


CHANGES: dict[str, Change] = {
    "minimal": lambda family, one, other, rng: family.minimal(rng),
    "grow": lambda family, one, other, rng: family.grow(one, rng),
    "redraw": lambda family, one, other, rng: family.redraw(one, rng),
    "clone": lambda family, one, other, rng: family.clone(one, rng),
    "mutate up": _mutate(1.0),
    "mutate down": _mutate(0.0),
    "cross": lambda family, one, other, rng: family.cross(one, other, share=0.5, rng=rng),
}


@settings(max_examples=25)
@given(parents(), seeds, st.sampled_from(["parameters", "type"]))
def test_everything_is_pure(both: tuple[Phenotype, Phenotype], seed: int, choice: str) -> None:
    """Inputs unchanged, the same generator state gives the same bits, and no global generator is used."""
    one, other = both
    family = family_of(one, Rules(layer_choice="type" if choice == "type" else "parameters"))
    before = [reference.fingerprint(each) for each in both]
    world = np.random.get_state(legacy=False)["state"]["key"].tobytes()  # noqa: NPY002
    for name, change in CHANGES.items():
        results = [change(family, one, other, np.random.default_rng(seed)) for _ in range(2)]
        assert [reference.fingerprint(each) for each in both] == before, name
        prints = [reference.fingerprint(each) for each in results if each is not None]
        assert len(prints) == 2
        assert prints[0] == prints[1], name
        result = results[0]
        assert result is not None
        for genes in result.weights:
            for array in genes.values():
                assert not array.flags.writeable, name
    assert np.random.get_state(legacy=False)["state"]["key"].tobytes() == world  # noqa: NPY002


def test_another_generator_gives_other_bits() -> None:
    genome = Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 3)), (1, 1)), FullLayer(3)), 4)
    rng = np.random.default_rng(1)
    one, other = draw_phenotype(genome, rng=rng), draw_phenotype(genome, rng=rng)
    family = family_of(one)
    for name, change in CHANGES.items():
        prints = set()
        for seed in range(6):
            result = change(family, one, other, np.random.default_rng(seed))
            assert result is not None
            prints.add(reference.fingerprint(result))
        assert len(prints) > 1, name
