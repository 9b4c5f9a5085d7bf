"""Reads CIFAR-10: binary batches, python batches (without unpickling), and the archives that hold either.

Archives are read in memory, member by expected member; nothing is ever extracted.
"""

from __future__ import annotations

import gzip
import io
import math
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from epicortex.data.checksums import hasher, judge
from epicortex.data.readers.builtin import BuiltIn, Content
from epicortex.data.readers.plainpickle import read_pickle
from epicortex.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
MAX_UNPACKED = 256 * 2**20
"""More than any of the official archives holds, so that an archive cannot unpack without end."""
MAX_BATCH = 64 * 2**20
MAX_MEMBERS = 100


def read_binary(spec: BuiltIn, paths: tuple[Path, ...]) -> Content:
    """Read six `.bin` files."""
    return _assemble(
        spec, ((f"{role}.bin", path, _bytes(path)) for role, path in zip(BATCHES, paths, strict=True))
    )


def read_python(spec: BuiltIn, paths: tuple[Path, ...]) -> Content:
    """Read six pickled batches, without running what they say."""
    return _assemble(spec, ((role, path, _bytes(path)) for role, path in zip(BATCHES, paths, strict=True)))


def read_archive(spec: BuiltIn, paths: tuple[Path, ...]) -> Content:
    """Read `cifar-10-binary.tar.gz` or `cifar-10-python.tar.gz`."""
    (path,) = paths
    members = dict(_members(path))
    ending = ".bin" if "test_batch.bin" in members else ""
    lacking = [role + ending for role in BATCHES if role + ending not in members]
    if lacking:
        raise DataError(
            f"{path} does not hold {', '.join(lacking)}: it is another archive, or it is cut short"
        )
    return _assemble(
        spec, ((role + ending, path / (role + ending), members[role + ending]) for role in BATCHES)
    )


def decode_binary(spec: BuiltIn, path: Path, data: bytes, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a binary batch: for each image a byte of label, then its pixels."""
    record = 1 + math.prod(spec.shape)
    if len(data) != count * record:
        raise DataError(
            f"{path} is {len(data)} bytes long instead of {count * record}: it is cut short or another file"
        )
    records = np.frombuffer(data, np.uint8).reshape(count, record)
    return records[:, 1:].reshape(count, *spec.shape), records[:, 0]


def decode_python(spec: BuiltIn, path: Path, data: bytes, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a pickled batch: a table with `data` and `labels`."""
    batch = read_pickle(data, path)
    table = (
        {(k.decode("latin1") if isinstance(k, bytes) else k): v for k, v in batch.items()}
        if isinstance(batch, dict)
        else {}
    )
    x, labels = table.get("data"), table.get("labels")
    if not isinstance(x, np.ndarray) or x.shape != (count, math.prod(spec.shape)):
        raise DataError(f"{path} does not hold {count} images of {math.prod(spec.shape)} bytes as `data`")
    if (
        not isinstance(labels, list)
        or len(labels) != count
        or not all(type(n) is int and 0 <= n < 256 for n in labels)
    ):
        raise DataError(f"{path} does not hold {count} numbers as `labels`")
    return x.reshape(count, *spec.shape), np.array(labels, np.uint8)


def _assemble(spec: BuiltIn, batches: Iterable[tuple[str, Path, bytes]]) -> Content:
    x = np.empty((spec.train + spec.test, *spec.shape), np.uint8)
    y = np.empty(spec.train + spec.test, np.uint8)
    notes: list[str] = []
    seen: dict[str, Path] = {}
    row = 0
    for role, path, data in batches:
        count = spec.test if role.startswith("test") else spec.train // 5
        decode = decode_binary if role.endswith(".bin") else decode_python
        pixels, labels = decode(spec, path, data, count)
        if labels.max() >= len(spec.classes):
            raise DataError(
                f"{path} holds the label {labels.max()}; {spec.name} has 0 to {len(spec.classes) - 1}"
            )
        digest = hasher(spec.name, role)
        digest.update(data)
        notes += judge(spec.name, role, path, digest.hexdigest())
        if other := seen.get(digest.hexdigest()):
            raise DataError(f"{path} and {other} are the same file; run `epicortex data get {spec.name}`")
        seen[digest.hexdigest()] = path
        x[row : row + count], y[row : row + count] = pixels, labels
        row += count
    return Content(x[: spec.train], y[: spec.train], x[spec.train :], y[spec.train :], tuple(notes))


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BATCH:
            raise DataError(f"{path} is far too long for a batch of CIFAR-10")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """The batches in an archive, by their bare names. A member's path is never used as one."""
    wanted = {role + ending for role in BATCHES for ending in ("", ".bin")}
    try:
        with (
            gzip.open(path) as unpacked,
            tarfile.open(fileobj=_Bounded(unpacked, path), mode="r|") as archive,
        ):
            for count, member in enumerate(archive):
                if count > MAX_MEMBERS:
                    raise DataError(f"{path} is refused: it holds more than {MAX_MEMBERS} files")
                name = PurePosixPath(member.name).name
                if name not in wanted or not member.isreg() or member.size > MAX_BATCH:
                    continue
                stream = archive.extractfile(member)
                if stream is not None:
                    yield name, stream.read()
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is damaged: it is not a whole .tar.gz archive") from None
    except (ValueError, IndexError, OverflowError, RecursionError):
        raise DataError(f"{path} is damaged: its table of contents makes no sense") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


class _Bounded(io.RawIOBase):
    """A stream that ends with an error where an honest archive would have ended long before."""

    def __init__(self, stream: gzip.GzipFile, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._left = MAX_UNPACKED

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        got = self._stream.readinto(buffer)
        self._left -= got
        if self._left < 0:
            raise DataError(f"{self._path} is refused: it unpacks to more than {MAX_UNPACKED >> 20} MB")
        return got
