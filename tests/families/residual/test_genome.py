"""A genome is valid or it does not exist, and says of itself what counting on the network finds."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from epicortex.errors import GenomeError
from epicortex.families.residual import Block, Genome, Recipe, Stage
from epicortex.families.residual.drawing import draw_phenotype
from epicortex.families.residual.layers import kernel_mask
from epicortex.families.residual.network import Network
from epicortex.families.residual.phenotype import from_arrays, to_arrays
from epicortex.families.residual.programs import operations
from epicortex.families.residual.reading import genome_from_dict, genome_from_json
from tests.families.residual.world import PROBLEMS, experienced, family
from tests.strategies import seeds

STAGE = Stage(1, (2, 1), (2, 3), ((3, 3), (1, 5)), (Block(4, (5,), ((3, 3),), ((1, 1), (3, 3))),))
GENOME = Genome((2, 9, 8), (STAGE,), out=(6, 7, 8), recipe=Recipe(rate=1.25))


def test_three_stages_with_a_block_each_have_the_parameters_counted_by_hand() -> None:
    stages = []
    for place, width in enumerate((12, 24, 48)):
        ids, kernels = tuple(range(width)), ((3, 3),) * width
        stride = (1, 1) if place == 0 else (2, 2)
        stages.append(Stage(place, stride, ids, kernels, (Block(0, ids, kernels, kernels),)))
    assert Genome((3, 32, 32), tuple(stages), tuple(range(10))).parameters == 68_710


@given(seeds, st.sampled_from(sorted(PROBLEMS)))
def test_parameters_and_cost_are_those_that_counting_on_the_network_finds(seed: int, kind: str) -> None:
    phenotype = experienced(kind, seed % 1000)
    network = Network(phenotype).eval()

    assert phenotype.genome.parameters == network.parameter_count()
    assert phenotype.genome.cost == _counted(network, PROBLEMS[kind].input_shape)


def _counted(network: Network, shape: tuple[int, ...]) -> int:
    """Positions of each output map times real kernel entries, watched while one sample passes."""
    total = 0

    def watch(unit: Any, _: object, maps: torch.Tensor) -> None:
        nonlocal total
        layer = network.genome.layers[list(network.units).index(unit)]
        if not layer.sources:
            return
        entries = int(kernel_mask(layer.kernels).sum()) * unit.weight.shape[1]
        total += entries * maps[0, 0].numel()

    for unit in network.units:
        unit.register_forward_hook(watch)
    network(torch.zeros(1, *shape))
    assert isinstance(network.out, nn.Linear)
    return total + network.out.weight.numel()


def test_a_genome_survives_json_pickle_and_hashing() -> None:
    again = genome_from_dict(json.loads(json.dumps(GENOME.to_dict())))

    assert again == GENOME == pickle.loads(pickle.dumps(GENOME))
    assert hash(again) == hash(GENOME)
    assert str(GENOME) == "conv 2/2×1 (3×3 1×5) → block 2 (2·3×3 1·1×1) inner 1 → out 3"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), []),
        (("format",), 2),
        (("format",), True),
        (("stages",), []),
        (("stages",), [None] * 65),
        (("input_shape",), [2, 9]),
        (("input_shape",), [2, 0, 8]),
        (("input_shape",), [2, 2**40, 8]),
        (("out",), []),
        (("out",), [6, 6]),
        (("out",), [6.0]),
        (("out",), [2**53]),
        (("out",), [-1]),
        (("pool",), 0),
        (("pool",), 10**9),
        (("recipe",), {"rate": 1.0}),
        (("recipe", "rate"), float("nan")),
        (("recipe", "rate"), 1e9),
        (("recipe", "rate"), 10**400),
        (("recipe", "rate"), "1"),
        (("stages", 0, "id"), None),
        (("stages", 0, "more"), 1),
        (("stages", 0, "stride"), [0, 1]),
        (("stages", 0, "stride"), [2]),
        (("stages", 0, "stride"), [10**6, 1]),
        (("stages", 0, "ids"), [2]),
        (("stages", 0, "ids"), [2, 2]),
        (("stages", 0, "kernels", 0), [3, 2]),
        (("stages", 0, "kernels", 0), [3]),
        (("stages", 0, "kernels", 0), [33, 1]),
        (("stages", 0, "kernels", 0), [-1, 1]),
        (("stages", 0, "kernels"), {"0": [3, 3]}),
        (("stages", 0, "blocks", 0, "ids"), []),
        (("stages", 0, "blocks", 0, "outer"), [[3, 3]]),
        (("stages", 0, "blocks", 0, "inner"), [[3, 3], [3, 3]]),
    ],
)
def test_whatever_is_not_exactly_a_genome_is_refused(path: tuple[Any, ...], value: object) -> None:
    data: Any = deepcopy(GENOME.to_dict())
    target = data
    for name in path[:-1]:
        target = target[name]
    if path:
        target[path[-1]] = value
    else:
        data = value

    with pytest.raises(GenomeError):
        genome_from_dict(data)


OLD = (
    '{"format":1,"input_shape":[4],"stages":[{"id":7,"stride":[],"ids":[5,6],"kernels":[[],[]],"blocks":'
    '[{"id":8,"ids":[9],"inner":[[]],"outer":[[],[]]}]}],"out":[1,2,3],"pool":1,'
    '"recipe":{"rate":1.0,"decay":1.0,"augmentation":1.0}}'
)


def test_a_genome_of_before_is_a_network_with_rectifiers_everywhere() -> None:
    genome = genome_from_json(OLD)

    assert genome.trunk == "relu"
    assert json.dumps(genome.to_dict(), separators=(",", ":")) == OLD  # its hash stays what it was
    assert [type(one).__name__ for one in operations(genome)] == [
        *("Full", "Norm", "Activation"),
        *("Full", "Norm", "Activation", "Full", "Norm", "Add", "Activation", "Full"),
    ]
    model = Network(draw_phenotype(genome, np.random.default_rng(1))).eval()
    seen: list[torch.Tensor] = []
    model.out.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(torch.randn(50, 4, generator=torch.Generator().manual_seed(1)))
    assert seen[0].min() == 0


def test_a_linear_trunk_says_so_and_is_for_the_columns_of_a_table_only() -> None:
    genome = family("table").minimal(np.random.default_rng(1)).genome
    data = genome.to_dict()

    assert data["trunk"] == "linear"
    assert genome_from_dict(json.loads(json.dumps(data))) == genome
    assert str(genome).startswith("columns 7 → ")
    for wrong in (
        {**data, "trunk": "tanh"},
        {**data, "trunk": ["linear"]},
        {**data, "input_shape": [6]},
        {**GENOME.to_dict(), "trunk": "linear"},
        {**json.loads(OLD), "trunk": "linear"},
    ):
        with pytest.raises(GenomeError):
            genome_from_dict(wrong)


def test_a_layer_of_a_billion_weights_is_refused_before_anything_is_allocated() -> None:
    wide = Stage(1, (1, 1), tuple(range(40_000)), ((1, 1),) * 40_000)
    with pytest.raises(GenomeError, match="weights"):
        Genome((3, 8, 8), (wide, replace(wide, id=2)), out=(1,))


def test_arrays_that_do_not_fit_the_genome_are_refused() -> None:
    phenotype = experienced("image", 1)
    arrays = to_arrays(phenotype)
    bad: list[dict[str, Any]] = [
        {name: array for name, array in arrays.items() if name != "out.weight"},
        {name: array for name, array in arrays.items() if name != "stages.0.gamma"},
        arrays | {"stages.9.weight": arrays["out.weight"]},
        arrays | {"out.gamma": arrays["out.bias"]},
        arrays | {"out.bias": arrays["out.bias"].astype(np.float64)},
        arrays | {"out.bias": arrays["out.bias"][:-1]},
        arrays | {"out.bias": [0.0]},
        arrays | {"stages.0.momentum_weight": arrays["stages.0.weight"]},
    ]
    for wrong in bad:
        with pytest.raises(GenomeError):
            from_arrays(phenotype.genome, wrong)


def test_weights_around_a_small_kernel_are_refused() -> None:
    genome = Genome((1, 8, 8), (Stage(1, (1, 1), (2, 3), ((3, 3), (1, 3))),), out=(4,))
    rng = np.random.default_rng(1)
    arrays = {
        "stages.0.weight": rng.normal(size=(2, 1, 3, 3)).astype(np.float32),
        **{f"stages.0.{name}": np.ones(2, np.float32) for name in ("bias", "gamma", "mean", "var")},
        "out.weight": np.ones((1, 2, 1, 1), np.float32),
        "out.bias": np.ones(1, np.float32),
    }
    with pytest.raises(GenomeError, match=r"stages\.0, kernel 2: the weight around it must be 0"):
        from_arrays(genome, arrays)
