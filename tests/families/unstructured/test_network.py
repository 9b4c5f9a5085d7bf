"""What unstructured networks compute, node by node."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from epicortex.errors import ConfigError, GenomeError
from epicortex.families.family import HasGraph, Problem
from epicortex.families.unstructured import (
    Genome,
    Network,
    Phenotype,
    UnstructuredFamily,
    UnstructuredOptions,
)
from tests.families.unstructured.world import FIRST, parent
from tests.strategies import seeds


def test_figure_2_has_nine_nodes_and_thirteen_connections() -> None:
    genome = Genome(4, 2, FIRST)
    assert (genome.nodes, list(genome.out), list(genome.hidden)) == (9, [5, 6], [7, 8, 9])
    assert len(genome.connections) == 13
    assert UnstructuredFamily(Problem((4,), 2)).key(parent(FIRST, 1)) == "9 nodes"


def test_the_network_of_figure_2_computes_what_a_hand_computes() -> None:
    phenotype = parent(FIRST, 0.1)
    w, x = phenotype.genes, [0.0, 0.3, -0.7, 0.2, 1.1]
    node = {number: x[number] for number in (1, 2, 3, 4)}
    node[7] = math.tanh(sum(w[7, source] * node[source] for source in (1, 2, 3, 4)))
    node[8] = math.tanh(w[8, 1] * node[1])
    node[9] = math.tanh(w[9, 2] * node[2] + w[9, 4] * node[4])
    node[5] = math.tanh(w[5, 7] * node[7] + w[5, 8] * node[8])
    node[6] = math.tanh(w[6, 1] * node[1] + w[6, 3] * node[3] + w[6, 8] * node[8] + w[6, 9] * node[9])
    assert Network(phenotype).act(x[1:]) == pytest.approx([node[5], node[6]], rel=1e-12)
    assert Network(phenotype)(np.array([x[1:]]))[0] == pytest.approx([node[5], node[6]], rel=1e-12)


def test_a_recurrent_network_remembers_until_it_is_reset() -> None:
    # output 2 hears the input and itself: a sum of all inputs
    genome = Genome(1, 1, {2: (1, 2)}, ("linear",), recurrent=True)
    network = Network(Phenotype(genome, np.ones(2, np.float32)))
    assert [network.act([1.0])[0] for _ in range(3)] == [1.0, 2.0, 3.0]
    network.reset()
    assert network.act([5.0]) == [5.0]
    assert Network(Phenotype(genome, np.ones(2, np.float32)), steps=3).act([1.0]) == [3.0]


@given(seeds)
@settings(max_examples=25)
def test_without_connections_backwards_recurrence_changes_nothing(seed: int) -> None:
    family, rng = UnstructuredFamily(Problem((3,), 2)), np.random.default_rng(seed)
    phenotype = family.grow(family.grow(family.minimal(rng), rng), rng)
    genome = phenotype.genome
    other = Genome(genome.inputs, genome.outputs, genome.inward, genome.activations, recurrent=True)
    network = Network(Phenotype(other, phenotype.weights))
    for x in rng.normal(size=(4, 3)).tolist():
        assert network.act(x) == Network(phenotype).act(x)


@pytest.mark.parametrize(
    "inward",
    [
        {3: (1,), 4: (5,), 5: (4,)},  # hidden 4 hears hidden 5
        {3: (1,), 4: (3,)},  # a hidden node hears an output
        {3: (1, 1)},
        {3: (9,)},
        {3: (-1,)},
        {4: (1,)},
    ],
)
def test_what_could_run_in_a_circle_is_no_feed_forward_genome(inward: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(GenomeError):
        Genome(2, 1, inward)


def test_the_graph_has_every_node_above_those_it_hears() -> None:
    family = UnstructuredFamily(Problem((4,), 2))
    assert isinstance(family, HasGraph)
    graph = family.graph(parent(FIRST, 1))
    level = {node.id: node.level for node in graph.nodes}
    assert len(graph.edges) == 13
    assert all(level[source] < level[target] for source, target, _ in graph.edges)
    assert set(level) == set(range(1, 10))


def test_rates_that_leave_nothing_for_weights_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"sum to 1\.5"):
        UnstructuredOptions(node_rate=0.75, connection_rate=0.7, redraw_rate=0.05, activation_rate=0.0)
