"""Reads idx files, the format of MNIST and its kin, gzipped or not, straight into uint8 arrays.

The header is checked before a byte of data is read, so memory is bounded by what the caller expects.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np

from epicortex.data.checksums import hasher, judge
from epicortex.data.readers.builtin import BuiltIn, Content
from epicortex.errors import DataError


def read_idx(path: Path, shape: tuple[int, ...]) -> tuple[np.ndarray, bytes]:
    """The uint8 array of this shape, and the header's bytes; any other file is a `DataError`."""
    try:
        with _stream(path) as stream:
            header = stream.read(4 + 4 * len(shape))
            _check_header(path, header, shape)
            size = math.prod(shape)
            data = bytearray(size)
            filled = 0
            while got := stream.readinto(memoryview(data)[filled:]):  # type: ignore[attr-defined]
                filled += got
            if filled < size:
                raise DataError(f"{path} is cut short: {filled} of {size} bytes of data are there")
            if stream.read(1):
                raise DataError(f"{path} is longer than its header says")
    except EOFError:
        raise DataError(f"{path} is cut short: its gzip stream does not end") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return np.frombuffer(data, np.uint8).reshape(shape), header


def read_mnist(spec: BuiltIn, paths: tuple[Path, ...]) -> Content:
    """Read the four idx files of `spec`: training images and labels, then those for testing."""
    roles = (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    shapes = [(spec.train, *spec.shape[1:]), (spec.train,), (spec.test, *spec.shape[1:]), (spec.test,)]
    arrays: list[np.ndarray] = []
    notes: list[str] = []
    for role, path, shape in zip(roles, paths, shapes, strict=True):
        array, header = read_idx(path, shape)
        digest = hasher(spec.name, role)
        digest.update(header)
        digest.update(array.data)
        notes += judge(spec.name, role, path, digest.hexdigest())
        arrays.append(array)
    x_train, y_train, x_test, y_test = arrays
    for path, labels in ((paths[1], y_train), (paths[3], y_test)):
        if labels.max() >= len(spec.classes):
            raise DataError(
                f"{path} holds the label {labels.max()}; {spec.name} has 0 to {len(spec.classes) - 1}"
            )
    return Content(x_train[:, None], y_train, x_test[:, None], y_test, tuple(notes))


def _stream(path: Path) -> IO[bytes]:
    with path.open("rb") as start:
        packed = start.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def _check_header(path: Path, header: bytes, shape: tuple[int, ...]) -> None:
    if len(header) < 4:
        raise DataError(f"{path} is cut short: it has no header")
    if header[:3] != b"\x00\x00\x08" or not 1 <= header[3] <= 4:
        raise DataError(f"{path} is not an idx file of bytes: it starts with {header[:4].hex(' ')}")
    if header[3] != len(shape):
        holds, wanted = ("labels" if n == 1 else "images" for n in (header[3], len(shape)))
        raise DataError(f"{path} holds {holds} instead of {wanted}: the files were swapped")
    if len(header) < 4 + 4 * len(shape):
        raise DataError(f"{path} is cut short: its header is not whole")
    found = tuple(np.frombuffer(header[4:], ">u4").tolist())
    if found != shape:
        raise DataError(
            f"{path} holds {' × '.join(map(str, found))} values instead of {' × '.join(map(str, shape))}: "
            "it is another file, or training and test files were swapped"
        )
