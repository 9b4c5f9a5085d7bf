"""One prepared data set in one file that many processes can map: the safetensors layout.

Eight bytes with the header's length, a JSON header, then the raw arrays without a gap. Written in chunks,
so memory stays flat; read as memory maps, after every claim of the header has been checked. The library of
that name does neither: it writes from memory, and reads copies. What the arrays mean is left to `dataset`.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from epicortex.errors import DataError
from epicortex.storage.sizes import counts, is_shape

MAX_HEADER = 8 * 2**20
CHUNK = 8 * 2**20
_UNFINISHED = ".tmp"
_MOMENT = 60.0
_DTYPES: dict[str, np.dtype[Any]] = {"U8": np.dtype(np.uint8), "F32": np.dtype("<f4"), "I64": np.dtype("<i8")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def write(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write the arrays and the text beside them to `path`, whole or not at all."""
    with replacing(path) as stream:
        write_stream(stream, arrays, metadata)


def write_stream(stream: IO[bytes], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write the same bytes to an open file."""
    # Wide types first, so that every array starts where its type is aligned.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, array in ordered:
        header[name] = {
            "dtype": _NAMES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise DataError("the names and notes of this data set are too long to be stored")
    stream.write(len(text).to_bytes(8, "little"))
    stream.write(text)
    for _, array in ordered:
        for chunk in chunks(array):
            stream.write(np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("<")).data)


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Map the arrays of `path`, and give the text beside them; a file that is not sound is a `DataError`."""
    try:
        # Opening a pipe would wait without end.
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is not a file")
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header = _header(stream, size, path)
            start = stream.tell()
            metadata = header.pop("__metadata__", {})
            if not (
                isinstance(metadata, dict)
                and all(isinstance(text, str) for pair in metadata.items() for text in pair)
            ):
                raise _damaged(path, "its metadata is not text")
            spans = sorted(_span(name, entry, path) for name, entry in header.items())
            end = 0
            for low, high, *_ in spans:
                if low != end:
                    raise _damaged(path, "its arrays overlap or leave gaps")
                end = high
            if start + end != size:
                raise _damaged(path, f"it is {size} bytes long, its header promises {start + end}")
            return {
                name: _map(stream, start + low, shape, dtype) for low, _, name, shape, dtype in spans
            }, metadata
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes `path` at the end, in one durable step; an error leaves nothing.

    What a process that was killed left in the folder is removed: nobody holds its lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_UNFINISHED)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _sweep(folder: Path) -> None:
    for left in folder.glob(f".*{_UNFINISHED}"):
        with suppress(OSError), left.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # one that is a moment old may be about to be locked
            if time.time() - os.fstat(stream.fileno()).st_mtime > _MOMENT:
                left.unlink()


def chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array in runs of whole rows of about 8 MB, so that no caller needs it twice in memory."""
    rows = max(1, CHUNK // max(1, array.nbytes // max(1, len(array))))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def _header(stream: IO[bytes], size: int, path: Path) -> dict[str, Any]:
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or not 2 <= length <= min(MAX_HEADER, size - 8):
        raise _damaged(path, "its header has an impossible length")
    try:
        header = json.loads(stream.read(length))
    except (ValueError, RecursionError):
        raise _damaged(path, "its header is not JSON") from None
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a table")
    return header


def _span(name: str, entry: object, path: Path) -> tuple[int, int, str, tuple[int, ...], np.dtype[Any]]:
    """One array's place in the file: (first byte, end, name, shape, type)."""
    if not isinstance(entry, dict):
        raise _damaged(path, "an array is not described")
    dtype = _DTYPES.get(str(entry.get("dtype")))
    shape: Any
    offsets: Any
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if dtype is None or not is_shape(shape) or not counts(offsets, 2) or len(offsets) != 2:
        raise _damaged(path, "an array has an unknown type, shape or place")
    low, high = offsets
    if high - low != math.prod(shape) * dtype.itemsize or low % dtype.itemsize:
        raise _damaged(path, "an array's shape does not match its length")
    return low, high, name, tuple(shape), dtype


def _map(stream: IO[bytes], offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if math.prod(shape) == 0:
        array: np.ndarray = np.empty(shape, dtype)
    else:
        # Copy-on-write, so that torch can wrap the pages without a copy; they are shared, as nobody writes.
        array = np.memmap(stream, dtype=dtype, mode="c", offset=offset, shape=shape)
    array.flags.writeable = False
    return array


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"{path} is not a sound data file: {why}; delete it and it will be made again")
