"""An operator of one's own: one class in one file, handed to the family beside the paper's four."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from epicortex.errors import ConfigError
from epicortex.families.family import Problem
from epicortex.families.genes import Genes
from epicortex.families.layered import (
    OPERATORS,
    Direction,
    LayeredFamily,
    Mutated,
    Operator,
    Rules,
    adapt,
    draw_phenotype,
)
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference


@dataclass(frozen=True)
class DuplicateNode:
    """Grows a hidden layer by a copy of one of its nodes, weights and all; it never shrinks anything."""

    name: str = "duplicate"

    def possible(self, genome: Genome, direction: Direction) -> bool:
        return direction == "grow" and bool(genome.hidden)

    def weight(self, genome: Genome, rules: Rules) -> float:
        return 1.0

    def apply(
        self, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
    ) -> Mutated:
        genome = phenotype.genome
        place = int(rng.integers(len(genome.hidden)))
        layer = genome.hidden[place]
        node = int(rng.integers(layer.nodes))
        if isinstance(layer, ConvLayer):
            wider: ConvLayer | FullLayer = ConvLayer((*layer.kernels, layer.kernels[node]), layer.stride)
        else:
            wider = FullLayer(layer.nodes + 1)
        hidden = (*genome.hidden[:place], wider, *genome.hidden[place + 1 :])
        fitted = adapt(phenotype, genome.replace(hidden), range(len(genome.layers)), rules=rules, rng=rng)
        weight, bias = phenotype.weights[place].values()
        copied = Genes(np.concatenate([weight, weight[node : node + 1]]), np.append(bias, bias[node]))
        weights = (*fitted.weights[:place], copied, *fitted.weights[place + 1 :])
        return Mutated(Phenotype(fitted.genome, weights), place + 1)


GENOME = Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 3)), (1, 1)), FullLayer(3)), 4)
FAMILY = LayeredFamily(Problem((1, 8, 8), 4), operators=(*OPERATORS.values(), DuplicateNode()))


def test_it_is_an_operator_without_inheriting_anything() -> None:
    assert isinstance(DuplicateNode(), Operator)


def test_the_family_draws_it_beside_the_papers_and_the_result_is_a_good_network() -> None:
    phenotype, rng = draw_phenotype(GENOME, rng=np.random.default_rng(1)), np.random.default_rng(2)
    types: Counter[str] = Counter()
    for _ in range(200):
        done = FAMILY.mutate(phenotype, grow=1.0, relative_fitness=0.5, rng=rng)
        types[done.type] += 1
        if done.type == "duplicate":
            assert done.layer is not None
            assert done.phenotype is not None
            place = done.layer - 1
            new = done.phenotype.genome.hidden[place].nodes - 1
            last = reference.gene(done.phenotype, place, new)
            assert last in [reference.gene(phenotype, place, node) for node in range(new)]
            drawn = reference.drawn_new(phenotype, done.phenotype, range(3))
            assert all(value != 0 for value in drawn)
    assert types["duplicate"] > 100  # its weight of 1 is far above the others'
    assert len(types) > 2


def test_it_is_not_asked_to_do_what_it_cannot() -> None:
    phenotype, rng = draw_phenotype(GENOME, rng=np.random.default_rng(1)), np.random.default_rng(3)
    done = [FAMILY.mutate(phenotype, grow=0.0, relative_fitness=0.5, rng=rng) for _ in range(50)]
    assert all(each.direction == "shrink" and each.type in OPERATORS for each in done)


def test_founders_grow_by_it_too() -> None:
    phenotype, rng = draw_phenotype(GENOME, rng=np.random.default_rng(1)), np.random.default_rng(4)
    only = LayeredFamily(Problem((1, 8, 8), 4), operators=[DuplicateNode()])
    assert only.grow(phenotype, rng).genome.nodes == GENOME.nodes + 1


def test_two_operators_of_one_name_or_none_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match="duplicate"):
        LayeredFamily(Problem((1, 8, 8), 4), operators=[DuplicateNode(), DuplicateNode()])
    with pytest.raises(ConfigError, match="at least one"):
        LayeredFamily(Problem((1, 8, 8), 4), operators=[])
