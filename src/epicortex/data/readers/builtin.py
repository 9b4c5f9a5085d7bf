"""What a built-in data set is: what it holds, where its files may lie, how they become a `DataSet`.

The readers know the formats, `catalog` lists the sets, `download` gets the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epicortex.data.dataset import DataSet, Scaling
from epicortex.errors import DataError


class Content(NamedTuple):
    """What a reader gives: uint8 images [N, C, H, W], labels of any integer type, what to tell."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """A file to get: where it goes, how long it is, its checksum, and the addresses that have it."""

    name: str
    size: int
    checksum: str
    """SHA-256, or MD5 where no other is published."""
    mirrors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One form in which a data set may be on disk: all its files lie in one of the folders."""

    folders: tuple[str, ...]
    """Looked through in order, below the data directory; absolute ones as they are."""
    files: tuple[tuple[str, ...], ...]
    """For each file the names it may have."""
    read: Callable[[BuiltIn, tuple[Path, ...]], Content]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A data set that EpiCortex knows by name."""

    name: str
    summary: str
    shape: tuple[int, ...]
    train: int
    test: int
    classes: tuple[str, ...]
    scaling: Scaling
    variants: tuple[Variant, ...]
    folder: str = ""
    """Where below the data directory its files are put when it is fetched."""
    remotes: tuple[Remote, ...] = ()


@dataclass(frozen=True, slots=True)
class Located:
    """Where a data set's files are."""

    variant: Variant
    paths: tuple[Path, ...]


def locate(spec: BuiltIn, data: Path) -> Located | None:
    """The first complete set of files, or None."""
    for variant in spec.variants:
        for folder in _folders(variant, data):
            paths = tuple(_present(folder, names) for names in variant.files)
            if all(path is not None for path in paths):
                return Located(variant, tuple(path for path in paths if path is not None))
    return None


def missing(spec: BuiltIn, data: Path) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """(files that are not there, folders that were looked through), of the form that lacks the fewest."""
    lacking = [
        tuple(names[0] for names in variant.files if _present(folder, names) is None)
        for variant in spec.variants
        for folder in _folders(variant, data)
    ]
    # The share that is there counts, since an archive is one file and loose batches are six.
    shares = [
        len(names) / len(variant.files)
        for (variant, _), names in zip(_places(spec, data), lacking, strict=True)
    ]
    best = lacking[shares.index(min(shares))]
    return best, tuple(dict.fromkeys(folder for _, folder in _places(spec, data)))


def missing_error(spec: BuiltIn, data: Path) -> DataError:
    """The one line that tells what is not there, where it was looked for, and what gets it."""
    files, folders = missing(spec, data)
    return DataError(
        f"the data set {spec.name} is not here: {', '.join(files)} "
        f"{'was' if len(files) == 1 else 'were'} not found in {', '.join(map(str, folders))}; "
        f"get it with `epicortex data get {spec.name}`, or name its folder with --data-dir or EPICORTEX_DATA"
    )


def prepare(spec: BuiltIn, located: Located) -> DataSet:
    """Read and check the files."""
    content = located.variant.read(spec, located.paths)
    expected = ((spec.train, *spec.shape), (spec.train,), (spec.test, *spec.shape), (spec.test,))
    if tuple(array.shape for array in content[:4]) != expected:
        raise DataError(f"the files of {spec.name} do not hold {spec.train} + {spec.test} samples")
    return DataSet(
        name=spec.name,
        x_train=content.x_train,
        y_train=content.y_train.astype(np.int64),
        x_test=content.x_test,
        y_test=content.y_test.astype(np.int64),
        classes=spec.classes,
        scaling=spec.scaling,
        notes=content.notes,
    )


def _places(spec: BuiltIn, data: Path) -> Iterator[tuple[Variant, Path]]:
    for variant in spec.variants:
        for folder in _folders(variant, data):
            yield variant, folder


def _folders(variant: Variant, data: Path) -> Iterator[Path]:
    return (data / folder for folder in variant.folders)


def _present(folder: Path, names: tuple[str, ...]) -> Path | None:
    try:
        return next((folder / name for name in names if (folder / name).is_file()), None)
    except OSError as error:
        raise DataError(f"{folder} cannot be looked into: {error.strerror or error}") from None
