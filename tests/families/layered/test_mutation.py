"""A mutation draws the direction first, then the type among those possible in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.errors import VariationError
from epicortex.families.family import Mutation, Turn
from epicortex.families.layered import (
    OPERATORS,
    Direction,
    KernelOperator,
    LayerOperator,
    Mutated,
    NodeOperator,
    Operator,
    Rules,
    StrideOperator,
    draw_phenotype,
    mutate,
)
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered.odds import follows
from tests.strategies import phenotypes, seeds

ALL = tuple(OPERATORS.values())
#: Every operator can go both ways here.
ROOMY = Genome((1, 12, 12), (ConvLayer(((3, 3), (1, 3)), (2, 2)), FullLayer(4)), 5)


FIRST = Rules(mutation_choice="fitness_first")


def test_in_the_published_reading_a_kernel_is_resized_by_fitness_and_fails_where_there_is_none() -> None:
    rng = np.random.default_rng(1)
    bare = Genome((1, 12, 12), (FullLayer(4),), 5)
    done = [run(ALL, rng, genome=bare, relative_fitness=0.3, rules=FIRST) for _ in range(400)]
    failed = [one for one in done if one.phenotype is None]
    assert {one.type for one in failed} == {"kernel"}
    assert {one.type for one in done if one.phenotype is not None} == {"layer", "node"}
    odds: dict[str, float] = {"fails": 0.3, "succeeds": 0.7}
    counts: Counter[str] = Counter("fails" if one.phenotype is None else "succeeds" for one in done)
    assert follows(counts, odds)


def test_in_the_published_reading_direction_and_type_are_drawn_together_among_the_possible() -> None:
    operators = [Fixed("a", 1.0, ["grow"]), Fixed("b", 3.0), Fixed("kernel", 9.0)]
    rng = np.random.default_rng(2)
    done: Counter[tuple[str, str]] = Counter(
        (one.type, one.direction)
        for one in (run(operators, rng, grow=0.2, relative_fitness=0.0, rules=FIRST) for _ in range(2000))
    )
    weights = {("a", "grow"): 0.2, ("b", "grow"): 0.6, ("b", "shrink"): 2.4}
    assert follows(done, {pair: weight / 3.2 for pair, weight in weights.items()})
    only = run([Fixed("a", 1.0, ["grow"])], rng, grow=0.0, relative_fitness=0.0, rules=FIRST)
    assert (only.type, only.direction) == ("a", "grow")


def test_types_are_drawn_by_their_credit_and_none_dies_out() -> None:
    operators = [Fixed("a", 1.0), Fixed("b", 1000.0), Fixed("c", 1.0)]
    credit = (("a grow", 0.9), ("b grow", 0.0))
    rng = np.random.default_rng(3)
    done = Counter(run(operators, rng, grow=1.0, rules=Rules(credit=credit)).type for _ in range(2000))
    odds: dict[str, float] = {"a": 0.9, "b": 0.05, "c": 0.5}
    assert follows(done, odds)


def test_where_adding_nodes_does_good_a_layer_may_double_in_one_mutation() -> None:
    rng = np.random.default_rng(4)
    wide = Genome((1, 12, 12), (FullLayer(20),), 10)
    for credit, expected in ((1.0, 21 + 15), (0.75, 21 + 7), (0.5, 21), (0.1, 21)):
        rules = Rules(credit=(("node grow", credit),))
        done = run([NodeOperator()], rng, genome=wide, grow=1.0, rules=rules)
        assert done.phenotype is not None
        assert done.phenotype.genome.hidden[0].nodes == expected


class Fixed:
    """An operator that is possible where it is told to be, weighs what it is told, and changes nothing."""

    def __init__(self, name: str, weight: float, ways: Sequence[Direction] = ("grow", "shrink")) -> None:
        self.name = name
        self._weight, self._ways = weight, ways

    def possible(self, genome: Genome, direction: Direction) -> bool:
        return direction in self._ways

    def weight(self, genome: Genome, rules: Rules) -> float:
        return self._weight

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        return Mutated(phenotype, 1)


def run(
    operators: Sequence[Operator],
    rng: np.random.Generator,
    *,
    genome: Genome = ROOMY,
    grow: float = 0.5,
    relative_fitness: float = 0.5,
    rules: Rules | None = None,
) -> Mutation[Phenotype]:
    return mutate(
        draw_phenotype(genome, rng=np.random.default_rng(0)),
        grow=grow,
        relative_fitness=relative_fitness,
        operators=operators,
        rules=rules or Rules(),
        rng=rng,
    )


@pytest.mark.parametrize("grow", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_it_grows_with_the_probability_given(grow: float) -> None:
    rng = np.random.default_rng(1)
    ways = Counter(run([Fixed("one", 1)], rng, grow=grow).direction for _ in range(1500))
    assert follows(Counter[str](ways), {"grow": grow, "shrink": 1 - grow})


def test_the_direction_does_not_depend_on_the_weights() -> None:
    """Direction first: a heavy operator that only grows does not make growing likelier."""
    rng = np.random.default_rng(2)
    operators = [Fixed("heavy", 1e6, ["grow"]), Fixed("light", 1e-6)]
    seen = Counter(
        (done.direction, done.type) for done in (run(operators, rng, grow=0.3) for _ in range(1500))
    )
    odds: dict[tuple[Turn, str], float] = {("grow", "heavy"): 0.3, ("shrink", "light"): 0.7}
    assert follows(seen, odds)


def test_the_type_is_drawn_by_weight_among_those_possible_in_the_direction() -> None:
    rng = np.random.default_rng(3)
    operators = [Fixed("a", 1), Fixed("b", 3), Fixed("c", 4, ["shrink"]), Fixed("never", 0)]
    growing = Counter(run(operators, rng, grow=1).type for _ in range(1500))
    shrinking = Counter(run(operators, rng, grow=0).type for _ in range(1500))
    assert follows(growing, {"a": 1, "b": 3})
    assert follows(shrinking, {"a": 1, "b": 3, "c": 4})


def test_the_other_direction_is_taken_where_none_is_possible() -> None:
    rng = np.random.default_rng(4)
    assert run([Fixed("up", 1, ["grow"])], rng, grow=0.0).direction == "grow"
    assert run([Fixed("down", 1, ["shrink"])], rng, grow=1.0).direction == "shrink"
    # the minimal network has nothing to lose
    done = run(ALL, rng, genome=Genome((1, 8, 8), (), 3), grow=0.0)
    assert (done.type, done.direction) == ("layer", "grow")


def test_a_mutation_fails_where_neither_direction_is_possible() -> None:
    minimal = Genome((1, 8, 8), (), 3)
    sets: list[list[Operator]] = [
        [NodeOperator()],
        [StrideOperator(), KernelOperator()],
        [Fixed("none", 1, [])],
    ]
    for operators in sets:
        done = run(operators, np.random.default_rng(5), genome=minimal)
        assert done.phenotype is None
        assert done.layer is None


@given(phenotypes(), seeds, st.floats(0, 1), st.sampled_from(["weights", "fitness", "even"]))
def test_a_mutation_says_what_it_did(
    phenotype: Phenotype, seed: int, grow: float, choice: Literal["weights", "fitness", "even"]
) -> None:
    rules = Rules(mutation_choice=choice, kernel_temperature=8.0)
    rng = np.random.default_rng(seed)
    done = mutate(phenotype, grow=grow, relative_fitness=0.4, operators=ALL, rules=rules, rng=rng)
    assert isinstance(done.phenotype, Phenotype)
    assert done.direction != "same"
    assert OPERATORS[done.type].possible(phenotype.genome, done.direction)
    before, after = phenotype.genome, done.phenotype.genome
    assert before != after
    assert done.layer is not None
    place, sign = done.layer - 1, 1 if done.direction == "grow" else -1
    change = {
        "layer": len(after.hidden) - len(before.hidden),
        "node": after.nodes - before.nodes,
        "stride": sum(getattr(before.layers[place], "stride", ()))
        - sum(getattr(after.layers[place], "stride", ()))
        if done.type == "stride"
        else 0,
        "kernel": sum(map(sum, getattr(after.layers[place], "kernels", ())))
        - sum(map(sum, getattr(before.layers[place], "kernels", ())))
        if done.type == "kernel"
        else 0,
    }[done.type]
    assert change == sign * (2 if done.type == "kernel" else 1)
    assert before.hidden[:place] == after.hidden[:place]


@pytest.mark.parametrize("fitness", [0.0, 0.25, 0.8, 1.0])
def test_the_published_reading_resizes_a_kernel_with_the_relative_fitness(fitness: float) -> None:
    """Else the others are drawn by their weights, here 1 : 3."""
    rules, rng = Rules(mutation_choice="fitness"), np.random.default_rng(6)
    operators = [Fixed("kernel", 1e6), Fixed("a", 1), Fixed("b", 3)]
    seen = Counter(run(operators, rng, relative_fitness=fitness, rules=rules).type for _ in range(1500))
    rest = 1 - fitness
    assert follows(seen, {"kernel": fitness, "a": rest / 4, "b": rest * 3 / 4})


def test_in_another_reading_all_possible_types_are_drawn_evenly() -> None:
    rules, rng = Rules(mutation_choice="even"), np.random.default_rng(9)
    operators = [Fixed("kernel", 1e6), Fixed("a", 1), Fixed("b", 0), Fixed("c", 1, ["shrink"])]
    seen = Counter(run(operators, rng, grow=1.0, rules=rules).type for _ in range(1500))
    assert follows(seen, {"kernel": 1, "a": 1, "b": 1})


def test_the_published_reading_needs_something_to_choose_from() -> None:
    rules, rng = Rules(mutation_choice="fitness"), np.random.default_rng(7)
    only_kernel = {run([Fixed("kernel", 1)], rng, relative_fitness=0.0, rules=rules).type for _ in range(20)}
    no_kernel = {
        run([Fixed("kernel", 1, []), Fixed("a", 1)], rng, relative_fitness=1.0, rules=rules).type
        for _ in range(20)
    }
    assert (only_kernel, no_kernel) == ({"kernel"}, {"a"})


def test_the_relative_fitness_does_not_matter_in_the_papers_reading() -> None:
    one = [run(ALL, np.random.default_rng(seed), relative_fitness=0.0).type for seed in range(50)]
    other = [run(ALL, np.random.default_rng(seed), relative_fitness=1.0).type for seed in range(50)]
    assert one == other


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), 0.0])
def test_an_operator_with_an_impossible_weight_is_named(weight: float) -> None:
    others = [Fixed("good", 1)] if weight else []
    with pytest.raises(VariationError, match="odd"):
        run([Fixed("odd", weight), *others], np.random.default_rng(8))


def test_the_papers_four_operators_are_there_by_name() -> None:
    assert list(OPERATORS) == ["layer", "node", "stride", "kernel"]
    kinds = [LayerOperator, NodeOperator, StrideOperator, KernelOperator]
    assert [type(operator) for operator in ALL] == kinds
    assert all(isinstance(operator, Operator) for operator in ALL)
