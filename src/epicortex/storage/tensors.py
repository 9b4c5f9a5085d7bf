"""Named float32 arrays as safetensors: written without a copy, read only if every claim of the header holds.

The library of that name needs all bytes joined in memory before it writes; a checkpoint streams them through
its checksum instead, and its reader of bytes gives no metadata. The files are its format exactly: in tests
each reads what the other wrote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from epicortex.errors import StorageError
from epicortex.families.family import Array
from epicortex.storage import strict
from epicortex.storage.atomic import Bytes
from epicortex.storage.sizes import counts, is_shape

MAX_HEADER: Final = 100_000_000
_FLOATS: Final = np.dtype("<f4")


def serialise(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> Iterator[Bytes]:
    """The pieces of a safetensors file, in order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, array in arrays.items():
        end = offset + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = strict.dump(header)
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise StorageError(f"{len(arrays)} arrays are more than one safetensors file can hold")
    yield len(text).to_bytes(8, "little")
    yield text
    for array in arrays.values():
        if array.size:
            yield np.ascontiguousarray(array, _FLOATS).data.cast("B")


def parse(
    data: bytes, where: str, *, max_items: int = strict.MAX_ITEMS
) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the text of a safetensors file; anything unsound is a `StorageError`.

    Nothing is allocated on the word of the header: arrays are cut from the bytes that are there.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(MAX_HEADER, len(data) - 8):
        raise StorageError(f"{where} is damaged: its header has an impossible length")
    header = strict.parse(data[8 : 8 + length], f"the header of {where}", max_items=max_items)
    metadata = header.pop("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise StorageError(f"{where} is damaged: its header is not a table of arrays")
    start, end, arrays = 8 + length, 0, {}
    for name, entry in sorted(header.items(), key=_offset):
        shape, low, high = _entry(entry, f"{where}, array {strict.short(name)}")
        if low != end or start + high > len(data):
            raise StorageError(f"{where} is damaged: its arrays overlap, leave gaps or pass its end")
        # A copy, so that no array keeps the whole file in memory and all are aligned alike.
        arrays[name] = (
            np.frombuffer(data, _FLOATS, math.prod(shape), start + low)
            .reshape(shape)
            .astype(np.float32, copy=True)
        )
        end = high
    if start + end != len(data):
        raise StorageError(f"{where} is damaged: it is {len(data)} bytes long, not {start + end}")
    return arrays, metadata


def _offset(item: tuple[str, Any]) -> int:
    try:
        return int(item[1]["data_offsets"][0])
    except (TypeError, KeyError, IndexError, ValueError, OverflowError):
        return -1


def _entry(entry: Any, where: str) -> tuple[tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise StorageError(f"{where}: not described as an array")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if entry["dtype"] != "F32" or not is_shape(shape) or not counts(offsets, 2) or len(offsets) != 2:
        raise StorageError(f"{where}: not float32 of a possible shape")
    if offsets[1] - offsets[0] != 4 * math.prod(shape):
        raise StorageError(f"{where}: its shape does not match its length")
    return tuple(shape), offsets[0], offsets[1]
