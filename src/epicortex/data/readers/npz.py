"""Reads `.npz` files: every claimed size is checked before memory is taken, and nothing is ever unpickled."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions
from epicortex.data.readers.arrays import PARTS, from_arrays
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

_INPUTS = ("x", "X", "images", "data")
_LABELS = ("y", "labels", "targets", "target", "label")
_CLASSES = ("classes", "class_names", "target_names")
_MAX_MEMBERS = 1000
_PLAIN = 256 * 2**20
_RATIO = 200
_CHUNK = 2**20
_MAX_HEADER = 10_000
_DESCR = re.compile(r"'descr': ?'([<>|=]?(?:b1|[iuf][1248]|[SU][1-9]\d{0,5}))'")
_ORDER = re.compile(r"'fortran_order': ?(True|False)")
_SHAPE = re.compile(r"'shape': ?\(([\dL, ]{0,120})\)")


def from_npz(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of `x_train`, `y_train`, …, or `x` and `y`, or the other usual names."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            wanted = _wanted(set(members), path)
            claimed = sum(members[key].file_size for key in wanted.values())
            if claimed > options.max_bytes:
                raise DataError(f"{path} claims to hold {claimed >> 20} MB, more than data.max_bytes allows")
            arrays = {name: read_npy(archive, members[key], path) for name, key in wanted.items()}
            named = next((key for key in _CLASSES if key in members), None)
            classes = read_npy(archive, members[named], path) if named else None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is damaged: {shown(error or 'it is not a whole .npz file')}") from None
    except (ValueError, OverflowError, IndexError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a sound .npz file: {shown(error)}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    names = (
        [str(one) for one in classes.ravel().tolist()]
        if classes is not None and classes.dtype.kind == "U"
        else None
    )
    return from_arrays(arrays, name=path.stem, options=options, classes=names)


def read_npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> np.ndarray:
    """One array of the archive."""
    # Deflate cannot pack tighter than about 1000 to 1, and real data never comes near.
    if member.file_size > _PLAIN and member.file_size > _RATIO * member.compress_size:
        raise DataError(f"{path} is refused: {member.filename!r:.60} unpacks to {member.file_size >> 20} MB")
    with archive.open(member) as stream:
        shape, fortran, dtype = _header(stream, member, path)
        size = math.prod(shape) * dtype.itemsize
        if size != member.file_size - stream.tell():
            raise DataError(
                f"{path}: {member.filename!r:.60} has the shape {shape!s:.60}, which is not its length"
            )
        out = bytearray(size)
        filled = 0
        while filled < size:
            piece = stream.read(min(_CHUNK, size - filled))
            if not piece:
                raise DataError(f"{path} is cut short in {member.filename!r:.60}")
            out[filled : filled + len(piece)] = piece
            filled += len(piece)
        # Reading to the very end makes zipfile compare its checksum.
        stream.read(1)
    array = np.frombuffer(out, dtype)
    return array.reshape(shape, order="F" if fortran else "C")


def _header(
    stream: IO[bytes], member: zipfile.ZipInfo, path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type; only plain types pass, so no array can hold a pickle."""
    start = stream.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise DataError(f"{path}: {member.filename!r:.60} is not an array of numpy")
    length = int.from_bytes(stream.read(2 if start[6] == 1 else 4), "little")
    if length > _MAX_HEADER:
        raise DataError(f"{path}: {member.filename!r:.60} has a header of {length} bytes")
    # The header is a Python expression. It is searched, never evaluated.
    text = stream.read(length).decode("latin1")
    descr, order, sides = _DESCR.search(text), _ORDER.search(text), _SHAPE.search(text)
    if not (descr and order and sides):
        raise DataError(f"{path}: {member.filename!r:.60} holds no plain numbers or text: {text[:60]!r:.80}")
    words = [word.strip().removesuffix("L") for word in sides[1].split(",")]
    shape = tuple(int(word) for word in words if word.isdecimal())
    if len(shape) != len([word for word in words if word]) or len(shape) > 5 or max(shape, default=0) > 2**40:
        raise DataError(f"{path}: {member.filename!r:.60} has the impossible shape ({shown(sides[1])})")
    return shape, order[1] == "True", np.dtype(descr[1])


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    if len(archive.infolist()) > _MAX_MEMBERS:
        raise DataError(f"{path} holds more than {_MAX_MEMBERS} arrays")
    return {
        one.filename.removesuffix(".npy"): one for one in archive.infolist() if one.filename.endswith(".npy")
    }


def _wanted(names: set[str], path: Path) -> dict[str, str]:
    """Which member is x_train, y_train and so on."""
    wanted = {}
    for part in PARTS:
        for letter, words in (("x", _INPUTS), ("y", _LABELS)):
            forms = [f"{word}_{part}" for word in words] + [f"{part}_{word}" for word in words]
            forms += list(words) if part == "train" else []
            found = next((form for form in forms if form in names), None)
            if found:
                wanted[f"{letter}_{part}"] = found
    if "x_train" not in wanted or "y_train" not in wanted:
        held = listing([shown(name, 40) for name in sorted(names)]) or "nothing"
        raise DataError(f"{path} needs the arrays x_train and y_train (or x and y); it holds {held}")
    return wanted
