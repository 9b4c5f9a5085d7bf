"""A genome is immutable plain data, valid by construction, and knows all that follows from structure."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from epicortex.errors import GenomeError
from epicortex.families.layered.genome import (
    FORMAT_VERSION,
    MAX_LAYERS,
    ConvLayer,
    FullLayer,
    Genome,
)
from epicortex.families.layered.layers import HiddenLayer
from epicortex.families.layered.shapes import kernel_limit, stride_limit
from epicortex.families.layered.values import MAX_NODES
from tests.families.layered.reference import broken_limits, shapes_of
from tests.strategies import INPUT_SHAPES, SMALL_SHAPES, genomes, odd_sizes, strides

IMAGE = (1, 28, 28)


def conv(*kernels: tuple[int, ...], stride: tuple[int, ...] = (1, 1)) -> ConvLayer:
    return ConvLayer(kernels, stride)


# ---- limits and validation


@given(st.integers(1, 500))
def test_limits_are_half_of_the_input_and_at_least_one(size: int) -> None:
    assert kernel_limit(size) == max(odd_sizes(size))
    assert stride_limit(size) == max(strides(size))


@pytest.mark.parametrize(
    ("shape", "hidden", "classes", "names"),
    [
        (IMAGE, (conv((3, 3), (2, 3)),), 10, ["layer 1 (conv)", "kernel 2", "2×3", "odd"]),
        (IMAGE, (conv((15, 1)),), 10, ["layer 1 (conv)", "kernel 1", "15×1", "13×13", "28×28"]),
        (IMAGE, (conv((-1, 1)),), 10, ["layer 1 (conv)", "kernel 1", "-1×1"]),
        (IMAGE, (conv((3,)),), 10, ["layer 1 (conv)", "kernel 1", "2 dimensions"]),
        (IMAGE, (conv((3, 3), (3.0, 3)),), 10, ["layer 1 (conv)", "kernel 2", "3.0×3"]),  # type: ignore[arg-type]
        (IMAGE, (conv((1, 1), stride=(14, 14)), conv((3, 1))), 10, ["layer 2 (conv)", "kernel 1", "2×2"]),
        (IMAGE, (conv((1, 1), stride=(1, 15)),), 10, ["layer 1 (conv)", "stride 1×15", "14×14"]),
        (IMAGE, (conv((1, 1), stride=(0, 1)),), 10, ["layer 1 (conv)", "stride 0×1"]),
        (IMAGE, (conv((1, 1), stride=(1, True)),), 10, ["layer 1 (conv)", "stride"]),
        (IMAGE, (conv((1, 1), stride=(1,)),), 10, ["layer 1 (conv)", "stride 1", "2 dimensions"]),
        (IMAGE, (ConvLayer((), (1, 1)),), 10, ["layer 1 (conv)", "nodes"]),
        (IMAGE, (FullLayer(3), FullLayer(0)), 10, ["layer 2 (full)", "nodes"]),
        (IMAGE, (FullLayer(MAX_NODES + 1),), 10, ["layer 1 (full)", "nodes"]),
        (IMAGE, (FullLayer(2.5),), 10, ["layer 1 (full)", "2.5"]),  # type: ignore[arg-type]
        (IMAGE, (FullLayer(True),), 10, ["layer 1 (full)", "True"]),
        (IMAGE, (FullLayer(3), conv((1, 1))), 10, ["layer 2 (conv)", "cannot stand on a full layer"]),
        ((20,), (ConvLayer(((3,),), (1,)),), 10, ["layer 1 (conv)", "table"]),
        (IMAGE, (), 0, ["out", "class"]),
        (IMAGE, (), 2.0, ["classes", "2.0"]),
        ((1, 0), (), 2, ["input shape", "(1, 0)"]),
        ((), (), 2, ["input shape"]),
        ((1, 2, 3, 4, 5), (), 2, ["input shape", "(1, 2, 3, 4, 5)"]),
        ((1, 2.5), (), 2, ["input shape", "2.5"]),
        (IMAGE, (FullLayer(1),) * (MAX_LAYERS + 1), 2, ["1000 layers"]),
        ((1, 4000, 4000), (FullLayer(10_000),), 2, ["parameters"]),
        (IMAGE, [FullLayer(3)], 2, ["immutable"]),
        ([1, 28, 28], (), 2, ["immutable"]),
        (IMAGE, (ConvLayer([(1, 1)], (1, 1)),), 2, ["immutable"]),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_genome_is_refused_by_naming_layer_and_kernel(
    shape: Any, hidden: Any, classes: Any, names: list[str]
) -> None:
    with pytest.raises(GenomeError) as error:
        Genome(shape, hidden, classes)
    assert all(name in str(error.value) for name in names), str(error.value)
    assert "\n" not in str(error.value)


@given(genomes())
def test_valid_genomes_are_accepted_and_the_reference_agrees(genome: Genome) -> None:
    assert broken_limits(genome) == []


@settings(max_examples=150)
@given(
    st.sampled_from(SMALL_SHAPES[:3]),
    st.lists(
        st.one_of(
            st.builds(FullLayer, st.integers(0, 3)),
            st.builds(
                ConvLayer,
                st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=2).map(tuple),
                st.tuples(st.integers(0, 7), st.integers(0, 7)),
            ),
        ),
        max_size=3,
    ),
)
def test_exactly_the_genomes_that_break_no_limit_are_accepted(
    shape: tuple[int, ...], hidden: list[HiddenLayer]
) -> None:
    unchecked = object.__new__(Genome)
    unchecked.__dict__.update(input_shape=shape, hidden=tuple(hidden), classes=3)
    try:
        broken = broken_limits(unchecked)
    except ZeroDivisionError:  # a stride of 0
        broken = ["stride"]
    if broken:
        with pytest.raises(GenomeError):
            Genome(shape, tuple(hidden), 3)
    else:
        assert Genome(shape, tuple(hidden), 3).hidden == tuple(hidden)


# ---- counts and shapes


def count_like_torch(genome: Genome) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
    """Weights and biases per layer, counted on stock modules kernel by kernel; shapes by running them."""
    kinds: dict[int, Any] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    x = torch.zeros(1, *genome.input_shape)
    weights, parameters, shapes = [], [], []
    with torch.no_grad():
        for layer in genome.layers:
            modules: list[nn.Module] = []
            if isinstance(layer, ConvLayer):
                for kernel in layer.kernels:
                    padding = tuple(size // 2 for size in kernel)
                    modules.append(
                        kinds[genome.spatial](x.shape[1], 1, kernel, stride=layer.stride, padding=padding)
                    )
                x = torch.cat([module(x) for module in modules], dim=1)
            else:
                modules.append(nn.Linear(x.flatten(1).shape[1], layer.nodes))
                x = modules[0](x.flatten(1)).reshape(1, layer.nodes, *(1 for _ in genome.input_shape[1:]))
            shapes.append(tuple(x.shape[1:]))
            weights.append(sum(module.get_parameter("weight").numel() for module in modules))
            parameters.append(sum(p.numel() for module in modules for p in module.parameters()))
    return weights, parameters, shapes


@settings(max_examples=60)
@given(genomes())
def test_counts_and_shapes_equal_what_torch_counts(genome: Genome) -> None:
    weights, parameters, shapes = count_like_torch(genome)
    assert list(genome.layer_connections) == weights
    assert list(genome.layer_parameters) == parameters
    assert genome.connections == sum(weights)
    assert genome.parameters == sum(parameters)
    assert list(genome.output_shapes) == shapes
    assert list(genome.shapes) == shapes_of(genome)
    assert genome.input_shapes == (genome.input_shape, *genome.output_shapes[:-1])


def test_counts_worked_by_hand() -> None:
    genome = Genome((3, 32, 32), (conv((3, 3), (5, 1), (1, 7), stride=(2, 2)), FullLayer(6)), 10)
    # 3 channels × (9 + 5 + 7), then 3×16×16 inputs for each of 6 nodes, then 6 × 10
    assert genome.layer_connections == (63, 4608, 60)
    assert genome.layer_parameters == (66, 4614, 70)
    assert (genome.connections, genome.parameters, genome.nodes) == (4731, 4750, 19)
    assert genome.shapes == ((3, 32, 32), (3, 16, 16), (6, 1, 1), (10, 1, 1))


@pytest.mark.parametrize("shape", INPUT_SHAPES)
def test_the_output_is_as_large_as_the_input_at_stride_one_whatever_the_kernels(
    shape: tuple[int, ...],
) -> None:
    if len(shape) == 1:
        assert Genome(shape, (), 2).shapes == (shape, (2,))
        return
    limits = tuple(max(odd_sizes(size)) for size in shape[1:])
    kernels = (limits, tuple(1 for _ in limits))
    assert Genome(shape, (ConvLayer(kernels, tuple(1 for _ in limits)),), 2).shapes[1] == (2, *shape[1:])


# ---- species, similarity, human form


def test_the_species_key_is_types_node_counts_and_strides() -> None:
    base = Genome(IMAGE, (conv((3, 3), (1, 1)), FullLayer(4)), 10)
    same = Genome(IMAGE, (conv((1, 5), (3, 1)), FullLayer(4)), 10)
    others = [
        Genome(IMAGE, (conv((3, 3)), FullLayer(4)), 10),
        Genome(IMAGE, (conv((3, 3), (1, 1), stride=(1, 2)), FullLayer(4)), 10),
        Genome(IMAGE, (conv((3, 3), (1, 1), stride=(2, 1)), FullLayer(4)), 10),
        Genome(IMAGE, (conv((3, 3), (1, 1)), FullLayer(5)), 10),
        Genome(IMAGE, (conv((3, 3), (1, 1)),), 10),
        Genome(IMAGE, (FullLayer(2), FullLayer(4)), 10),
    ]
    assert base.species_key == same.species_key == "conv 2/1×1 → full 4 → out 10"
    assert len({genome.species_key for genome in (base, *others)}) == 1 + len(others)


@given(genomes([(1, 8, 8)]), genomes([(1, 8, 8)]))
def test_keys_are_equal_exactly_for_equal_skeletons(one: Genome, other: Genome) -> None:
    def skeleton(genome: Genome) -> list[tuple[Any, ...]]:
        return [(layer.type, layer.nodes, getattr(layer, "stride", None)) for layer in genome.layers]

    assert (one.species_key == other.species_key) == (skeleton(one) == skeleton(other))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # equal node counts; strides and kernels do not matter
        ((conv((3, 3), (1, 1)),), (conv((1, 1), (5, 5), stride=(2, 2)),), 1.0),
        # full 6 | full 4, full 6: overlap min(6, 4) + 10 = 14; 16 + 20 − 14 = 22
        ((FullLayer(6),), (FullLayer(4), FullLayer(6)), 14 / 22),
        # types never align with each other: overlap 10 of 13 + 13 − 10
        ((FullLayer(3),), (conv((1, 1), (1, 1), (1, 1)),), 10 / 16),
        # conv 2, full 5 | conv 4, conv 1, full 3: overlap 2 + 3 + 10 = 15; 17 + 18 − 15 = 20
        (
            (conv((1, 1), (1, 1)), FullLayer(5)),
            (conv((1, 1), (1, 1), (1, 1), (1, 1)), conv((1, 1)), FullLayer(3)),
            15 / 20,
        ),
    ],
)
def test_similarity_worked_by_hand(
    one: tuple[HiddenLayer, ...], other: tuple[HiddenLayer, ...], expected: float
) -> None:
    assert Genome(IMAGE, one, 10).similarity(Genome(IMAGE, other, 10)) == pytest.approx(expected, abs=1e-15)


@given(genomes([(1, 8, 8)]), genomes([(1, 8, 8)]))
def test_similarity_is_symmetric_positive_and_one_exactly_for_equal_node_counts(
    one: Genome, other: Genome
) -> None:
    def counts(genome: Genome) -> list[tuple[str, int]]:
        return [(layer.type, layer.nodes) for layer in genome.layers]

    assert one.similarity(other) == other.similarity(one)
    assert 0 < one.similarity(other) <= 1
    assert (one.similarity(other) == 1) == (counts(one) == counts(other))


def test_in_the_published_reading_only_layers_of_equal_stride_overlap() -> None:
    plain, strided = conv((1, 1), (1, 1)), conv((1, 1), (1, 1), stride=(2, 2))

    def similarity(one: tuple[HiddenLayer, ...], other: tuple[HiddenLayer, ...]) -> float:
        return Genome(IMAGE, one, 10).similarity(Genome(IMAGE, other, 10), strides=True)

    assert similarity((strided, FullLayer(5)), (strided, FullLayer(5))) == 1
    assert similarity((plain,), (strided,)) == pytest.approx(10 / 14)
    # a stride that is the other's alone is passed over, so it depends on who is asked
    assert similarity((plain,), (strided, plain)) == pytest.approx(12 / 14)
    assert similarity((strided, plain), (plain,)) == pytest.approx(10 / 16)


def test_a_person_reads_a_genome_in_one_line() -> None:
    layers = (conv((3, 3), (5, 1), (1, 7), stride=(2, 2)), conv((1, 1)), FullLayer(32))
    assert str(Genome(IMAGE, layers, 10)) == "conv[3×3 5×1 1×7]/2×2 → conv[1×1] → full 32 → out 10"
    assert str(Genome((1, 128), (ConvLayer(((3,), (7,)), (4,)),), 2)) == "conv[3 7]/4 → out 2"
    assert str(Genome((20,), (), 3)) == "out 3"


# ---- immutability


@given(genomes())
def test_a_genome_is_a_value(genome: Genome) -> None:
    twin = Genome(genome.input_shape, genome.hidden, genome.classes)
    assert genome == twin
    assert hash(genome) == hash(twin)
    assert genome.shapes  # what is computed once must not be part of the value
    assert genome == twin
    assert len(pickle.dumps(genome)) == len(pickle.dumps(twin))
    for again in (pickle.loads(pickle.dumps(genome)), copy.deepcopy(genome), copy.copy(genome)):
        assert (again, hash(again), str(again)) == (genome, hash(genome), str(genome))
        assert again.parameters == genome.parameters


def test_nothing_of_a_genome_can_be_changed() -> None:
    genome = Genome(IMAGE, (conv((3, 3)), FullLayer(4)), 10)
    for owner, name in ((genome, "hidden"), (genome.hidden[0], "stride"), (genome.hidden[1], "nodes")):
        with pytest.raises(FrozenInstanceError):
            setattr(owner, name, ())
    with pytest.raises(TypeError):
        FullLayer(3, type="out")  # type: ignore[call-arg]


# ---- replace


def test_replacing_layers_reimposes_the_limits_from_the_bottom_up() -> None:
    genome = Genome(IMAGE, (conv((1, 1)), conv((13, 13), (3, 9), stride=(14, 3)), conv((1, 1))), 10)
    changed = genome.replace((conv((1, 1), stride=(4, 2)), *genome.hidden[1:]))
    # 28×28 at stride 4×2 is 7×14: kernels up to 3×7, strides up to 3×7; then 3×5: kernels of 1×1
    assert changed.hidden[1] == conv((3, 7), (3, 7), stride=(3, 3))
    assert changed.shapes[2] == (2, 3, 5)


@given(genomes([(1, 28, 28), (3, 5, 64)]), genomes([(1, 8, 8), (2, 7, 6)]))
def test_layers_of_any_genome_fit_another_input_after_replace(one: Genome, small: Genome) -> None:
    changed = small.replace(one.hidden)
    assert broken_limits(changed) == []
    for before, after in zip(one.hidden, changed.hidden, strict=True):
        assert before.nodes == after.nodes
        if isinstance(before, ConvLayer) and isinstance(after, ConvLayer):
            pairs = zip((*before.kernels, before.stride), (*after.kernels, after.stride), strict=True)
            assert all(new <= old for a, b in pairs for old, new in zip(a, b, strict=True))
    assert one.replace(one.hidden) == one


@pytest.mark.parametrize(
    "layer", [ConvLayer(((3, 3),), (1, 1)), ConvLayer(((3,),), (1, 1)), ConvLayer(((3,),), (1, 1, 1))]
)
def test_replace_never_drops_a_dimension_to_make_a_layer_fit(layer: ConvLayer) -> None:
    with pytest.raises(GenomeError, match="1 spatial dimension"):
        Genome((1, 128), (), 2).replace((layer,))


# ---- JSON


@given(genomes())
def test_json_gives_the_same_genome_back(genome: Genome) -> None:
    text = genome.to_json()
    assert "\n" not in text
    assert Genome.from_json(text) == genome
    assert Genome.from_json(text.encode()) == genome
    assert Genome.from_dict(json.loads(text)).to_json() == text
    assert json.loads(text)["format"] == FORMAT_VERSION


def test_the_format_is_stable() -> None:
    """Files of version 1 stay readable: this text was written by it."""
    text = (
        '{"format":1,"input_shape":[1,28,28],"layers":[{"type":"conv","kernels":[[3,3],[5,1]],'
        '"stride":[2,1]},{"type":"full","nodes":32}],"classes":10}'
    )
    genome = Genome(IMAGE, (conv((3, 3), (5, 1), stride=(2, 1)), FullLayer(32)), 10)
    assert Genome.from_json(text) == genome
    assert genome.to_json() == text


def altered(change: Callable[[dict[str, Any]], object]) -> str:
    data = Genome((1, 8, 8), (conv((3, 3)), FullLayer(2)), 3).to_dict()
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (altered(lambda d: d.update(format=2)), ["format is 2", "newer"]),
        (altered(lambda d: d.update(format=10**30)), ["format is"]),
        (altered(lambda d: d.update(format=0)), ["format is 0"]),
        (altered(lambda d: d.update(format=True)), ["format is True"]),
        (altered(lambda d: d.update(format=1.0)), ["format is 1.0"]),
        (altered(lambda d: d.update(format="x\n" * 10**5)), ["format is"]),
        (altered(lambda d: d.pop("format")), ["format is None"]),
        (altered(lambda d: d.pop("classes")), ["classes", "whole number"]),
        (altered(lambda d: d.update(classes=True)), ["classes", "True"]),
        (altered(lambda d: d.update(classes="3\n4")), ["classes"]),
        (altered(lambda d: d.update(classes=3.0)), ["classes", "3.0"]),
        (altered(lambda d: d.update(classes=10**12)), ["classes"]),
        (altered(lambda d: d.update(classes=2**31 - 1)), ["classes"]),
        (altered(lambda d: d.update(classes=math.inf)), ["classes", "inf"]),
        (altered(lambda d: d.update(classes=math.nan)), ["classes", "nan"]),
        (altered(lambda d: d.update(input_shape=[1, True])), ["input_shape"]),
        (altered(lambda d: d.update(input_shape=[1] * 100)), ["input_shape"]),
        (altered(lambda d: d.update(input_shape="18")), ["input_shape"]),
        (altered(lambda d: d.update(input_shape=[2**31 - 1] * 3)), ["more than", "values"]),
        (altered(lambda d: d.update(layers={})), ["layers must be a list"]),
        (altered(lambda d: d.update(layers=[{}] * 2000)), ["layers must be a list"]),
        (altered(lambda d: d["layers"].append(None)), ["layer 3", "type"]),
        (altered(lambda d: d["layers"].append({"type": "out", "nodes": 3})), ["layer 3", "type"]),
        (altered(lambda d: d["layers"].append({"type": ["conv"]})), ["layer 3", "type"]),
        (altered(lambda d: d["layers"][0].update(kernels=[[3, 3], 7])), ["layer 1", "kernel 2"]),
        (altered(lambda d: d["layers"][0].update(kernels=[[3, "3"]])), ["layer 1", "kernel 1"]),
        (altered(lambda d: d["layers"][0].update(kernels=None)), ["layer 1", "kernels"]),
        (altered(lambda d: d["layers"][0].update(kernels=[])), ["layer 1", "nodes"]),
        (altered(lambda d: d["layers"][0].update(kernels=[[5, 5]])), ["layer 1", "kernel 1", "3×3"]),
        (altered(lambda d: d["layers"][0].pop("stride")), ["layer 1", "stride"]),
        (altered(lambda d: d["layers"][1].update(nodes=-1)), ["layer 2", "nodes"]),
        (altered(lambda d: d["layers"][1].update(nodes=10**8)), ["layer 2", "nodes"]),
        ("[]", ["JSON object"]),
        ("null", ["JSON object"]),
        ("", ["not a genome in JSON"]),
        ("{", ["not a genome in JSON"]),
        ('{"format":' + "9" * 5000 + "}", ["not a genome in JSON"]),
        ("[" * 100_000, ["not a genome in JSON"]),
        ("conv[3×3] → out 10", ["not a genome in JSON"]),
    ],
)
def test_a_bad_file_gets_one_clear_line(text: str, names: list[str]) -> None:
    with pytest.raises(GenomeError) as error:
        Genome.from_json(text)
    line = str(error.value)
    assert all(name in line for name in names), line
    assert "\n" not in line
    assert len(line) < 250


@pytest.mark.parametrize("depth", [2, 100, 500, *range(900, 1000, 5), 10_000])
def test_nesting_near_the_limit_of_the_parser_gets_one_clear_line(depth: int) -> None:
    nest = "[" * depth + "]" * depth
    for text in (f'{{"format":1,"layers":[],"classes":2,"input_shape":{nest}}}', f'{{"format":{nest}}}'):
        with pytest.raises(GenomeError) as error:
            Genome.from_json(text)
        assert len(str(error.value)) < 250


def test_bytes_that_are_no_text_get_one_clear_line() -> None:
    with pytest.raises(GenomeError, match="not a genome in JSON"):
        Genome.from_json(b"\xff\xfe\x00{")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "nodes", "kernels", "stride", "conv"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.data())
def test_no_json_at_all_gives_anything_but_a_genome_or_a_genome_error(data: st.DataObject) -> None:
    """Any value may stand at any place of an otherwise good file."""
    good = Genome((1, 8, 8), (conv((3, 3)), FullLayer(2)), 3).to_dict()
    places: list[tuple[Any, Any]] = [(good, key) for key in good]
    places += [(layer, key) for layer in good["layers"] for key in layer]
    places += [(good["layers"], 0), (good["layers"][0]["kernels"], 0), (good["layers"][0]["kernels"][0], 1)]
    owner, key = data.draw(st.sampled_from(range(len(places))).map(places.__getitem__))
    owner[key] = data.draw(json_values)
    try:
        genome = Genome.from_json(json.dumps(good))
    except GenomeError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert broken_limits(genome) == []


def test_numbers_of_numpy_are_refused_since_json_could_not_hold_them() -> None:
    with pytest.raises(GenomeError, match="layer 1"):
        Genome(IMAGE, (FullLayer(np.int64(3)),), 10)  # type: ignore[arg-type]
