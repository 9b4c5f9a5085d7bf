"""The weights of the mutation types (eqs 3 to 6), against values worked out by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from epicortex.families.layered import OPERATORS, Rules, Statistics, draw_phenotype, mutate
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from tests.families.layered.odds import follows
from tests.strategies import genomes

MINIMAL = Genome((1, 28, 28), (), 10)
SMALL = Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 1)), (1, 1)), FullLayer(4)), 10)
DEEP = Genome(
    (3, 32, 32),
    (ConvLayer(((3, 3), (5, 1), (1, 7)), (2, 2)), ConvLayer(((1, 1),), (1, 2)), FullLayer(6), FullLayer(2)),
    10,
)


def weights(genome: Genome, **readings: str) -> dict[str, float]:
    rules = Rules(**readings)  # type: ignore[arg-type]
    kinds = OPERATORS if genome.convolutions else ("layer", "node")
    return {name: OPERATORS[name].weight(genome, rules) for name in kinds}


def test_the_minimal_network() -> None:
    # µ_c = 784·10 / 10 = 784; µ_n = 10, σ_n = 0
    assert weights(MINIMAL) == pytest.approx({"layer": 1 / 7840, "node": 1 / 784})


def test_a_convolution_and_a_full_layer() -> None:
    # weights: 1·(9 + 1) = 10, then 2·8·8·4 = 512, then 4·10 = 40; together 562 over 2 + 4 + 10 = 16 nodes
    # µ_c = 35.125; µ_n = 16/3; σ_n² = ((10/3)² + (4/3)² + (14/3)²) / 3 = 312/27, σ_n = 3.399346
    # N_cl = 1, µ_o = 2·8·8 = 128; N_k = 2, Ā_k = (9 + 1)/2 = 5
    expected = {
        "layer": 1 / (35.125 * (5.333333 + 3.399346)),
        "node": 1 / 35.125,
        "stride": 1 / 128,
        "kernel": 0.1,
    }
    assert weights(SMALL) == pytest.approx(expected, rel=1e-6)


def test_two_convolutions_with_strides_and_two_full_layers() -> None:
    # conv 1: 3·(9 + 5 + 7) = 63, gives 3·16·16 = 768; conv 2: 3·1 = 3, gives 1·16·8 = 128
    # full 6: 128·6 = 768; full 2: 6·2 = 12; out: 2·10 = 20; together 866 over 3 + 1 + 6 + 2 + 10 = 22 nodes
    # µ_c = 866/22; µ_n = 4.4; σ_n² = (1.4² + 3.4² + 1.6² + 2.4² + 5.6²)/5 = 53.2/5 = 10.64
    # N_cl = 2, µ_o = (768 + 128)/2 = 448; N_k = 4/2 = 2, Ā_k = (9 + 5 + 7 + 1)/4 = 5.5
    expected = {
        "layer": 1 / (866 / 22 * (4.4 + math.sqrt(10.64))),
        "node": 22 / 866,
        "stride": 1 / 896,
        "kernel": 1 / 11,
    }
    assert weights(DEEP) == pytest.approx(expected, rel=1e-9)


def test_the_other_reading_of_the_kernel_weight_takes_all_nodes() -> None:
    # µ_n in place of N_k: 16/3 · 5, and 4.4 · 5.5
    assert weights(SMALL, kernel_weight="nodes")["kernel"] == pytest.approx(3 / 80)
    assert weights(DEEP, kernel_weight="nodes")["kernel"] == pytest.approx(1 / 24.2)
    for name in ("layer", "node", "stride"):
        assert weights(DEEP, kernel_weight="nodes")[name] == weights(DEEP)[name]


@given(genomes())
def test_statistics_equal_a_naive_recomputation(genome: Genome) -> None:
    nodes = np.array([layer.nodes for layer in genome.layers])
    convs = [layer for layer in genome.hidden if isinstance(layer, ConvLayer)]
    per_node = []
    for layer, below in zip(genome.layers, genome.input_shapes, strict=True):
        if isinstance(layer, ConvLayer):
            per_node += [below[0] * math.prod(kernel) for kernel in layer.kernels]
        else:
            per_node += [math.prod(below)] * layer.nodes
    figures = Statistics.of(genome)
    assert figures.connections_per_node == pytest.approx(np.mean(per_node))
    assert figures.nodes_per_layer == pytest.approx(nodes.mean())
    assert figures.nodes_deviation == pytest.approx(nodes.std())
    assert figures.convolutions == len(convs)
    if convs:
        outputs = [math.prod(shape) for shape in genome.output_shapes[: len(convs)]]
        areas = [math.prod(kernel) for layer in convs for kernel in layer.kernels]
        assert figures.outputs_per_convolution == pytest.approx(np.mean(outputs))
        assert figures.kernels_per_convolution == pytest.approx(np.mean([layer.nodes for layer in convs]))
        assert figures.kernel_area == pytest.approx(np.mean(areas))


@pytest.mark.parametrize("reading", ["kernels", "nodes"])
def test_types_are_drawn_by_their_weights_among_the_possible(reading: str) -> None:
    """Growing `SMALL`: its stride is 1 and cannot fall, so three types are left."""
    rules = Rules(kernel_weight="kernels" if reading == "kernels" else "nodes")
    phenotype, rng = draw_phenotype(SMALL, rng=np.random.default_rng(1)), np.random.default_rng(2)
    operators = list(OPERATORS.values())
    drawn = Counter(
        mutate(phenotype, grow=1.0, relative_fitness=0.5, operators=operators, rules=rules, rng=rng).type
        for _ in range(3000)
    )
    kernel = 0.1 if reading == "kernels" else 3 / 80
    assert follows(drawn, {"layer": 1 / (35.125 * 8.732680), "node": 1 / 35.125, "kernel": kernel})
