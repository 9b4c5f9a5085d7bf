"""Reads the numeric arrays of a MATLAB 5 file: enough for SVHN, and nothing that could surprise.

Every size the file claims is compared with what the caller expects before memory is taken for it; data is
unpacked straight into its place. Not scipy, which unpacks whatever is there: 261 kB took it 540 MB.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from epicortex.data.checksums import hasher, judge
from epicortex.data.readers.builtin import BuiltIn, Content
from epicortex.errors import DataError

_TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
_MATRIX, _COMPRESSED = 14, 15
_MAX_NAME, _MAX_DIMENSIONS, _MAX_ELEMENTS = 63, 8, 64
_CHUNK = 2**18


@dataclass(frozen=True, slots=True)
class Wanted:
    """An array to be read: its shape, and whether its values must be bytes in the file."""

    shape: tuple[int, ...]
    only_bytes: bool


def read_mat(path: Path, wanted: dict[str, Wanted]) -> dict[str, np.ndarray]:
    """The wanted arrays, as flat values in the file's (column-major) order."""
    found: dict[str, np.ndarray] = {}
    try:
        with path.open("rb") as stream:
            _check_header(path, stream.read(128))
            for _ in range(_MAX_ELEMENTS):
                tag = stream.read(8)
                if not tag:
                    break
                if len(tag) < 8:
                    raise _cut(path)
                kind, size = struct.unpack("<II", tag)
                if kind not in (_MATRIX, _COMPRESSED):
                    raise DataError(f"{path} holds an element of the unknown kind {kind}")
                start = stream.tell()
                source = _Source(path, stream, size, packed=kind == _COMPRESSED)
                if kind == _COMPRESSED and source.tag()[0] != _MATRIX:
                    raise DataError(f"{path} holds a packed element that is no array")
                _read_matrix(path, source, wanted, found)
                stream.seek(start + size)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    lacking = [name for name in wanted if name not in found]
    if lacking:
        raise DataError(
            f"{path} does not hold the array {', '.join(lacking)}: it is cut short or another file"
        )
    return found


def read_svhn(spec: BuiltIn, paths: tuple[Path, ...]) -> Content:
    """Read the two files of SVHN: X [height, width, channels, N] and y, where 10 stands for the digit 0."""
    arrays: list[np.ndarray] = []
    notes: list[str] = []
    channels, height, width = spec.shape
    roles = ("train_32x32.mat", "test_32x32.mat")
    for role, path, count in zip(roles, paths, (spec.train, spec.test), strict=True):
        shapes = {
            "X": Wanted((height, width, channels, count), only_bytes=True),
            "y": Wanted((count, 1), only_bytes=False),
        }
        content = read_mat(path, shapes)
        labels = content["y"]
        if not np.isin(labels, np.arange(1, len(spec.classes) + 1)).all():
            raise DataError(f"{path} holds labels other than 1 to {len(spec.classes)}")
        # Column-major [H, W, C, N] is row-major [N, C, W, H].
        x = content["X"].reshape(count, channels, width, height).transpose(0, 1, 3, 2)
        arrays += [x, labels.astype(np.int64) % len(spec.classes)]
        notes += judge(spec.name, role, path, _file_digest(spec.name, role, path))
    x_train, y_train, x_test, y_test = arrays
    return Content(x_train, y_train, x_test, y_test, tuple(notes))


def _read_matrix(
    path: Path, source: _Source, wanted: dict[str, Wanted], found: dict[str, np.ndarray]
) -> None:
    """One array: flags, dimensions, name, values. Unwanted ones are left after their name."""
    source.element(path, 16)
    kind, raw = source.element(path, 4 * _MAX_DIMENSIONS)
    if kind != 5 or len(raw) % 4:
        raise DataError(f"{path} holds an array with strange dimensions")
    shape = tuple(np.frombuffer(raw, "<i4").tolist())
    _, raw_name = source.element(path, _MAX_NAME)
    name = raw_name.decode("latin1")
    if name not in wanted:
        return
    want = wanted[name]
    if name in found:
        raise DataError(f"{path} holds the array {name} twice")
    if shape != want.shape:
        raise DataError(
            f"{path} holds {name} of {' × '.join(map(str, shape))} values instead of "
            f"{' × '.join(map(str, want.shape))}: it is another file, or training and test files were swapped"
        )
    kind, size, small = source.tag()
    dtype = np.dtype("u1") if kind == 2 else np.dtype(_TYPES.get(kind, "V1"))
    if dtype.kind == "V" or (want.only_bytes and kind != 2):
        raise DataError(f"{path} holds {name} as values of the kind {kind}; bytes are needed")
    if size != math.prod(shape) * dtype.itemsize:
        raise DataError(
            f"{path} holds {size} bytes for {name}, its shape needs {math.prod(shape) * dtype.itemsize}"
        )
    found[name] = np.frombuffer(small if small is not None else source.read(size), dtype)


class _Source:
    """The bytes of one element, unpacked as they are asked for, never beyond the element's end."""

    def __init__(self, path: Path, stream: IO[bytes], size: int, *, packed: bool) -> None:
        self._path = path
        self._stream = stream
        self._left = size
        self._unpacker = zlib.decompressobj() if packed else None
        self._pending = b""

    def read(self, size: int) -> bytearray:
        """Exactly `size` bytes; the caller has checked that it wants that many."""
        out = bytearray()
        while len(out) < size:
            piece = self._piece(min(_CHUNK, size - len(out)))
            if not piece:
                raise _cut(self._path)
            out += piece
        return out

    def tag(self) -> tuple[int, int, bytes | None]:
        """(kind, size, content if it is so small that it lies in the tag itself)."""
        raw = bytes(self.read(8))
        kind, size = struct.unpack("<II", raw)
        if kind >> 16:
            if kind >> 16 > 4:
                raise DataError(f"{self._path} holds a small element that is too long")
            return kind & 0xFFFF, kind >> 16, raw[4 : 4 + (kind >> 16)]
        return kind, size, None

    def element(self, path: Path, most: int) -> tuple[int, bytes]:
        """A whole short element with its padding."""
        kind, size, small = self.tag()
        if small is not None:
            return kind, small
        if size > most:
            raise DataError(f"{path} describes an array with {size} bytes where at most {most} belong")
        return kind, bytes(self.read(size + -size % 8)[:size])

    def _piece(self, most: int) -> bytes:
        if self._unpacker is None:
            piece = self._stream.read(min(most, self._left))
            self._left -= len(piece)
            return piece
        while not self._unpacker.eof:
            if not self._pending:
                self._pending = self._stream.read(min(_CHUNK, self._left))
                self._left -= len(self._pending)
            given = self._pending
            try:
                piece = self._unpacker.decompress(given, most)
            except zlib.error:
                raise DataError(f"{self._path} is damaged: it cannot be unpacked") from None
            self._pending = self._unpacker.unconsumed_tail
            if piece or not given:
                return piece
        return b""


def _check_header(path: Path, header: bytes) -> None:
    if header[:8] == b"\x89HDF\r\n\x1a\n" or header.startswith(b"MATLAB 7.3"):
        raise DataError(f"{path} is a MATLAB 7.3 file; save it as version 5 to 7")
    if len(header) < 128 or header[124:128] != b"\x00\x01IM":
        raise DataError(f"{path} is not a MATLAB 5 file of a little-endian machine")


def _file_digest(dataset: str, role: str, path: Path) -> str:
    digest: Any = hasher(dataset, role)
    with path.open("rb") as stream:
        while chunk := stream.read(2**20):
            digest.update(chunk)
    return str(digest.hexdigest())


def _cut(path: Path) -> DataError:
    return DataError(f"{path} is cut short")
