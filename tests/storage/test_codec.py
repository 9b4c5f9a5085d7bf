"""States and outcomes come back bit for bit, and nothing else comes back at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.ecosystem.jobs import Outcome
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import StorageError
from epicortex.families.layered import LayeredFamily
from epicortex.storage import codec, strict, tensors
from tests.storage.states import (
    SMALL_FAMILY,
    THOROUGH,
    finite,
    identity,
    of_a_family,
    outcomes,
    refusal,
    small_state,
    states,
)


@settings(max_examples=60)
@given(of_a_family(states))
def test_a_state_survives_json_and_arrays_bit_for_bit(drawn: tuple[LayeredFamily, EcosystemState]) -> None:
    family, state = drawn
    whole, arrays = codec.encode(state, family)
    data = b"".join(tensors.serialise(arrays, {}))
    values, read = strict.parse(strict.dump(whole), "here"), tensors.parse(data, "here")[0]
    back = codec.decode(values, read, "here", family)
    assert identity(back) == identity(state)


@settings(max_examples=60)
@given(of_a_family(outcomes))
def test_an_outcome_survives_bit_for_bit(drawn: tuple[LayeredFamily, Outcome]) -> None:
    family, outcome = drawn
    values, arrays = codec.encode_outcome(outcome, family)
    back = codec.decode_outcome(strict.parse(strict.dump(values), "here"), arrays, "here", family)
    assert identity(back) == identity(outcome)


@given(finite)
def test_floats_keep_every_bit(value: float) -> None:
    assert strict.parse(strict.dump([value]), "here")[0].hex() == value.hex()


def test_nan_is_neither_written_nor_read() -> None:
    with pytest.raises(ValueError, match="JSON"):
        strict.dump(float("nan"))
    for text in (b"NaN", b"[Infinity]", b"-Infinity"):
        with pytest.raises(StorageError):
            strict.parse(text, "here")


def test_an_infinite_number_under_a_seal_is_refused() -> None:
    with pytest.raises(StorageError, match="checksum"):
        strict.unseal(b'{"a":1e999,"sha256":"0"}\n', "here")


def altered(path: list[Any], value: Any) -> Any:
    """The small state's JSON with one place changed."""
    whole = json.loads(strict.dump(codec.encode(small_state(), SMALL_FAMILY)[0]))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return whole


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["generation"], "1"),
        (["generation"], True),
        (["generation"], 2**70),
        (["generation"], 1.0),
        (["networks"], {}),
        (["networks"], [3]),
        (["networks", 0], {}),
        (["networks", 0, "id"], 2),
        (["networks", 0, "id"], 99),
        (["networks", 0, "id"], "1"),
        (["networks", 0, "fitness"], 1e999),
        (["networks", 0, "fitness"], "0.5"),
        (["networks", 0, "events"], [{"type": "kernel"}]),
        (["networks", 0, "parents"], [[1]]),
        (["networks", 0, "species"], 5),
        (["networks", 0, "phenotype", "classes"], 3),
        (["networks", 0, "phenotype", "classes"], 10**9),
        (["networks", 0, "phenotype", "layers"], []),
        (["networks", 0, "phenotype", "layers"], None),
        (["networks", 0, "phenotype", "input_shape"], [2**30, 2**30, 2**30]),
        (["networks", 0, "phenotype", "format"], 2),
        (["networks", 0, "phenotype"], "genome"),
        (["networks", 0, "__class__"], "os.system"),
        (["species", 0, "average"], {"mean": None, "variance": 0.0}),
        (["next_network"], 1),
        (["champion"], []),
        (["surprise"], 1),
    ],
)
def test_what_is_not_exactly_a_state_is_refused(path: list[Any], value: Any) -> None:
    _, arrays = codec.encode(small_state(), SMALL_FAMILY)
    with pytest.raises(StorageError):
        codec.decode(altered(path, value), arrays, "here", SMALL_FAMILY)


def test_weights_of_nobody_are_refused() -> None:
    whole, arrays = codec.encode(small_state(), SMALL_FAMILY)
    whole = json.loads(strict.dump(whole))
    with pytest.raises(StorageError, match="network 9"):
        codec.decode(whole, {**arrays, "9/1.weight": arrays["1/1.weight"]}, "here", SMALL_FAMILY)
    arrays.pop("1/1.bias")
    with pytest.raises(StorageError, match="layers need"):
        codec.decode(whole, arrays, "here", SMALL_FAMILY)


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b'{"a":' * 100_000, b"", b"\x80\x04K\x01.", b"\xff\xfe", b"1" * 10_000, b"[1,2"],
)
def test_json_that_is_deep_broken_or_a_pickle_is_refused(text: bytes) -> None:
    with pytest.raises(StorageError):
        strict.parse(text, "here")


def test_json_with_too_many_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(StorageError, match="more than 1000 values"):
        strict.parse(b"[" + b"[]," * 1000 + b"[]]", "here", max_items=1000)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLACES: list[list[Any]] = [
    *([name] for name in ("generation", "networks", "species", "champion", "tally", "average")),
    *(["networks", 1, name] for name in ("id", "phenotype", "parents", "average", "events", "failed")),
    *(["networks", 1, "phenotype", name] for name in ("format", "input_shape", "layers", "classes")),
    *(["networks", 1, "phenotype", "layers", 0, name] for name in ("type", "kernels", "stride")),
]


@settings(max_examples=20_000 if THOROUGH else 300)
@given(st.sampled_from(PLACES), json_values)
def test_any_json_in_any_place_is_a_state_or_one_clear_error(path: list[Any], value: Any) -> None:
    _, arrays = codec.encode(small_state(), SMALL_FAMILY)
    error = refusal(lambda: codec.decode(altered(path, value), arrays, "here", SMALL_FAMILY))
    assert error is None or "\n" not in error
