"""Our safetensors are those of the library, and unsound ones are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from epicortex.errors import StorageError
from epicortex.storage import tensors
from tests.storage.states import THOROUGH, refusal

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 4), np.float32),
    "scalar": np.array(1.5, np.float32),
}
DATA = b"".join(tensors.serialise(ARRAYS, {"about": "test"}))


def made(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_the_library_reads_what_we_write(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA)
    back = safetensors.numpy.load_file(tmp_path / "f")
    assert {name: array.tobytes() for name, array in back.items()} == {
        name: array.tobytes() for name, array in ARRAYS.items()
    }


def test_we_read_what_the_library_writes() -> None:
    arrays, metadata = tensors.parse(safetensors.numpy.save(ARRAYS, {"about": "x"}), "here")
    assert metadata == {"about": "x"}
    assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())
    assert all(arrays[name].shape == array.shape for name, array in ARRAYS.items())


def test_every_truncation_is_noticed() -> None:
    for length in range(len(DATA)):
        with pytest.raises(StorageError):
            tensors.parse(DATA[:length], "here")


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04\x95",
        (2**63).to_bytes(8, "little") + b"{}",
        made(b"[" * 50_000),
        made([1]),
        made({"a": F32}),
        made({"a": {**F32, "shape": [2**40, 2**20]}}, b"\0" * 8),
        made({"a": {**F32, "shape": [2**61, 2**61], "data_offsets": [0, 2**62]}}, b"\0" * 8),
        made({"a": {**F32, "shape": [0, 2**31, 2**31, 4], "data_offsets": [0, 0]}}),
        made({"a": {**F32, "shape": [-2, -1]}}, b"\0" * 8),
        made({"a": {**F32, "shape": [2.0]}}, b"\0" * 8),
        made({"a": {**F32, "dtype": "F64", "shape": [1]}}, b"\0" * 8),
        made({"a": {**F32, "data_offsets": [1e999, 8]}}, b"\0" * 8),
        made({"a": {**F32, "data_offsets": [8, 0]}}, b"\0" * 8),
        made({"a": F32, "b": F32}, b"\0" * 8),
        made({"a": {**F32, "data_offsets": [8, 16]}}, b"\0" * 16),
        made({"a": F32}, b"\0" * 9),
        made({"a": {**F32, "run": "me"}}, b"\0" * 8),
        made({"__metadata__": {"a": 1}}),
        made({"__metadata__": "a"}),
    ],
)
def test_headers_that_lie_are_refused(data: bytes) -> None:
    with pytest.raises(StorageError):
        tensors.parse(data, "here")


@settings(max_examples=20_000 if THOROUGH else 500)
@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
@example(0, 1)
def test_a_flipped_byte_gives_arrays_or_one_clear_error(place: int, change: int) -> None:
    data = bytearray(DATA)
    data[place] ^= change
    error = refusal(lambda: tensors.parse(bytes(data), "here"))
    assert error is None or "\n" not in error
