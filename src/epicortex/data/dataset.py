"""The prepared data set: plain arrays, the class names, and how raw values become network inputs.

Where the arrays come from is left to the readers, how batches are drawn to `evaluation`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from epicortex.data import cachefile
from epicortex.data.answers import strata
from epicortex.data.columns import Columns
from epicortex.errors import DataError, UnwritableError
from epicortex.measures import TaskKind

if TYPE_CHECKING:
    import torch

FORMAT = 1
MAX_CLASSES = 100_000
DEEP = 16
"""The bits of a pixel that pictures of more than 8 bits are taken to use, unless their data set says less."""
LabelKind = Literal["text", "integer", "boolean"]
_PARTS = ("x_train", "y_train", "x_test", "y_test", "x_val", "y_val")


@dataclass(frozen=True, slots=True)
class Scaling:
    """How raw values become network inputs: (x / divisor - mean) / std, per channel or per column.

    >>> Scaling.from_json(Scaling(255.0, (0.5,), (0.25,)).to_json())
    Scaling(divisor=255.0, mean=(0.5,), std=(0.25,))
    """

    divisor: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise DataError("a scaling needs one mean and one deviation for each channel or column")
        if not all(map(math.isfinite, (self.divisor, *self.mean, *self.std))):
            raise DataError("a scaling needs finite numbers")
        if not all(value > 0 for value in (self.divisor, *self.std)):
            raise DataError("the divisor and the deviations of a scaling must be above 0")

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {"divisor": self.divisor, "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_json(cls, value: object) -> Scaling:
        """From what `to_json` gave; anything else is a `DataError`."""
        if not isinstance(value, Mapping) or set(value) != {"divisor", "mean", "std"}:
            raise DataError("a scaling needs exactly divisor, mean and std")
        mean, std = value["mean"], value["std"]
        if not isinstance(mean, (list, tuple)) or not isinstance(std, (list, tuple)):
            raise DataError("mean and std of a scaling must be lists of numbers")
        if any(type(n) not in (int, float) for n in (value["divisor"], *mean, *std)):
            raise DataError("a scaling needs numbers")
        try:
            return cls(float(value["divisor"]), tuple(map(float, mean)), tuple(map(float, std)))
        except OverflowError:
            raise DataError("a scaling needs finite numbers") from None

    def factors(self, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
        """The scaling as one float32 multiplication and one addition, for arrays of so many dimensions.

        >>> scale, shift = Scaling(255.0, (0.5,), (0.5,)).factors(3)
        >>> scale.shape, shift.item()
        ((1, 1, 1), -1.0)
        """
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        shape = (1, -1, *(1,) * (dimensions - 2))
        scale, shift = 1.0 / (self.divisor * std), -mean / std
        return scale.astype(np.float32).reshape(shape), shift.astype(np.float32).reshape(shape)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Scaled float32 inputs for raw `x` [samples, channels or columns, ...].

        >>> Scaling(255.0, (0.5,), (0.5,)).apply(np.array([[[0, 255]]], np.uint8)).tolist()
        [[[-1.0, 1.0]]]
        """
        scale, shift = self.factors(x.ndim)
        scaled: np.ndarray = x.astype(np.float32) * scale + shift
        return scaled


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """A prepared data set. The arrays are never written to; mapped ones share their pages between processes.

    Images are uint8 [N, channels, *spatial], or float32 where uint8 cannot hold their values; tables are
    float32 [N, columns]. Labels are int64 [N], from 0 to len(classes) - 1; for regression they are float32
    [N, targets], in the unit of the data, and sets of labels uint8 [N, labels]. The test part may be empty.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: tuple[str, ...]
    scaling: Scaling
    x_val: np.ndarray | None = None
    y_val: np.ndarray | None = None
    path: Path | None = None
    """The cache file the arrays are mapped from; None where they are in memory."""
    notes: tuple[str, ...] = ()
    """What a person should be told about this data."""
    bits: int = DEEP
    """How many bits a pixel had in picture files that have more than 8; the highest 8 were read."""
    columns: tuple[str, ...] = ()
    """The names of a table's columns, in the order of the inputs, where it has names."""
    label_kind: LabelKind = "text"
    """What the labels were before they became names of classes, so that a champion answers likewise."""
    task: TaskKind = "classes"
    """What is predicted; where it is not a class, `classes` are the names of the targets or labels."""
    table: Columns | None = None
    """How the columns of a table file become inputs."""
    digest: str = field(default="")
    """A hash of all that can change a result: arrays, classes, scaling. Computed if not given."""

    def __post_init__(self) -> None:
        _check(self)
        if not self.digest:
            object.__setattr__(self, "digest", self.compute_digest())

    def __repr__(self) -> str:
        sizes = f"{len(self.x_train)} training and {len(self.x_test)} test samples of {self.input_shape}"
        what = {"classes": "classes", "regression": "targets", "multilabel": "labels"}[self.task]
        return f"<DataSet {self.name}: {sizes}, {len(self.classes)} {what}>"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """(channels, *spatial) of images, (columns,) of tables."""
        return tuple(self.x_train.shape[1:])

    def class_counts(self) -> dict[str, int]:
        """How many training samples each class, or label, has; of numbers nothing."""
        if self.task == "regression":
            return {}
        if self.task == "multilabel":
            counts = self.y_train.sum(axis=0, dtype=np.int64)
        else:
            counts = np.bincount(self.y_train, minlength=len(self.classes))
        return dict(zip(self.classes, counts.tolist(), strict=True))

    @property
    def targets(self) -> Scaling | None:
        """How numbers become what networks learn: mean 0 and deviation 1 of the training part, each."""
        if self.task != "regression":
            return None
        mean, std = (np.asarray(f(self.y_train, axis=0, dtype=np.float64)) for f in (np.mean, np.std))
        std[~(std > 1e-12 * np.maximum(1, np.abs(mean)))] = 1.0
        return Scaling(1.0, tuple(mean.tolist()), tuple(std.tolist()))

    def strata(self) -> np.ndarray:
        """What the training part is split by."""
        return strata(self.y_train, self.task)

    def compute_digest(self) -> str:
        """The content's hash, computed anew."""
        about: list[Any] = [FORMAT, self.classes, self.scaling.to_json()]
        about += [] if self.task == "classes" else [self.task]
        sha = hashlib.sha256(json.dumps(about).encode())
        for name, array in self._arrays().items():
            sha.update(f"{name} {array.dtype.str} {array.shape}".encode())
            for chunk in cachefile.chunks(array):
                sha.update(np.ascontiguousarray(chunk).data)
        return sha.hexdigest()

    def save(self, path: Path | str, *, fingerprint: str = "") -> DataSet:
        """Write one file, whole or not at all, and give the data set mapped from it."""
        path = Path(path)
        try:
            cachefile.write(path, self._arrays(), self._metadata(fingerprint))
        except OSError as error:
            raise UnwritableError(f"{path} cannot be written: {error.strerror or error}") from error
        return self.open(path)

    def write_to(self, stream: IO[bytes]) -> None:
        """Write the same bytes as `save` to an open file, such as one without a name."""
        cachefile.write_stream(stream, self._arrays(), self._metadata(""))

    @classmethod
    def open(cls, path: Path | str, *, fingerprint: str | None = None, verify: bool = False) -> DataSet:
        """Map a saved data set; a damaged, hostile or (with `fingerprint`) stale file is a `DataError`.

        `verify` also reads all of it and compares its hash.
        """
        path = Path(path)
        arrays, metadata = cachefile.read(path)
        about = _about(metadata, path)
        if not {"x_train", "y_train", "x_test", "y_test"} <= set(arrays) <= set(_PARTS):
            raise DataError(f"{path} does not hold the arrays of a data set")
        if fingerprint is not None and about["fingerprint"] != fingerprint:
            raise DataError(f"{path} was made from other files")
        try:
            data = cls(
                name=about["name"],
                classes=tuple(about["classes"]),
                scaling=Scaling.from_json(about["scaling"]),
                notes=tuple(about["notes"]),
                digest=about["digest"],
                bits=about.get("bits", DEEP),
                columns=tuple(about.get("columns", ())),
                label_kind=about.get("label_kind", "text"),
                task=about.get("task", "classes"),
                table=None if about.get("table") is None else Columns.from_json(about["table"]),
                path=path.absolute(),
                **arrays,
            )
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        if verify and data.compute_digest() != data.digest:
            raise DataError(f"{path} is damaged: its content does not match its checksum; delete it")
        return data

    def detached(self) -> DataSet:
        """The same without its file, to travel by value to where the file is not."""
        arrays: dict[str, Any] = {name: np.asarray(array) for name, array in self._arrays().items()}
        return replace(self, path=None, **arrays)

    def with_notes(self, *notes: str) -> DataSet:
        """The same data with more to tell."""
        return replace(self, notes=(*self.notes, *notes))

    def _metadata(self, fingerprint: str) -> dict[str, str]:
        about = {
            "format": FORMAT,
            "name": self.name,
            "classes": list(self.classes),
            "scaling": self.scaling.to_json(),
            "notes": list(self.notes),
            "digest": self.digest,
            "fingerprint": fingerprint,
            "bits": self.bits,
            "columns": list(self.columns),
            "label_kind": self.label_kind,
            "task": self.task,
            "table": None if self.table is None else self.table.to_json(),
        }
        return {"epicortex.data": json.dumps(about)}

    def _arrays(self) -> dict[str, np.ndarray]:
        parts = {name: getattr(self, name) for name in _PARTS}
        return {name: array for name, array in parts.items() if array is not None}

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapped data set travels to another process as its path: copying it would defeat the sharing.
        if self.path is not None:
            return _reopen, (self.path, self.digest)
        return partial(DataSet, **vars(self)), ()


def tensor(array: np.ndarray) -> torch.Tensor:
    """A torch view of a data set's array, without a copy; it must not be written to."""
    import torch

    return torch.from_numpy(np.asarray(_Unlocked(array)))


class _Unlocked:
    """The memory of an array, which it keeps alive, said to be writable: torch warns of any other.

    Mapped files are copy-on-write, and the memory that nodes share is mapped for reading.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        place, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (place, False)}


def _reopen(path: Path, digest: str) -> DataSet:
    data = DataSet.open(path)
    if data.digest != digest:
        raise DataError(f"{path} was replaced by other data while it was in use")
    return data


def _check(data: DataSet) -> None:
    """Refuse arrays that do not fit together, whoever made them."""
    if not 1 <= len(data.classes) <= MAX_CLASSES:
        raise DataError(f"a data set needs from 1 to {MAX_CLASSES} classes, this one has {len(data.classes)}")
    shape, kind = data.x_train.shape[1:], data.x_train.dtype
    if not 1 <= len(shape) <= 4 or 0 in shape or len(data.x_train) == 0:
        raise DataError(f"x_train has the shape {data.x_train.shape}: samples × channels × size are needed")
    if kind != np.float32 and (kind != np.uint8 or len(shape) == 1):
        raise DataError(f"x_train holds {kind}: images need uint8 or float32, tables float32")
    if len(data.scaling.mean) != shape[0]:
        raise DataError(
            f"the scaling has {len(data.scaling.mean)} entries for {shape[0]} channels or columns"
        )
    if data.columns and (len(shape) != 1 or len(data.columns) != shape[0]):
        raise DataError(f"there are {len(data.columns)} names for samples of {shape}")
    if (data.x_val is None) != (data.y_val is None):
        raise DataError("x_val and y_val are only of use together")
    pairs = [("train", data.x_train, data.y_train), ("test", data.x_test, data.y_test)]
    if data.x_val is not None and data.y_val is not None:
        pairs.append(("val", data.x_val, data.y_val))
    for part, x, y in pairs:
        if x.shape[1:] != shape or x.dtype != kind:
            raise DataError(
                f"x_{part} is {x.dtype} {x.shape[1:]}, x_train {kind} {shape}: they must be alike"
            )
        if data.task != "classes":
            _check_answers(data, part, y, len(x))
            continue
        if y.dtype != np.int64 or y.shape != (len(x),):
            raise DataError(
                f"y_{part} is {y.dtype} {y.shape}: one int64 label for each of {len(x)} is needed"
            )
        if len(y) and not (y.min() >= 0 and y.max() < len(data.classes)):
            raise DataError(
                f"y_{part} has labels from {y.min()} to {y.max()} for {len(data.classes)} classes"
            )


def _check_answers(data: DataSet, part: str, y: np.ndarray, samples: int) -> None:
    """Numbers and sets of labels have a column for each name."""
    dtype, count = np.float32 if data.task == "regression" else np.uint8, len(data.classes)
    if y.dtype != dtype or y.shape != (samples, count):
        raise DataError(
            f"y_{part} is {y.dtype} {y.shape}: {np.dtype(dtype)} [{samples}, {count}] is needed "
            f"for {data.task}"
        )
    if not (np.isfinite(y).all() if data.task == "regression" else (y <= 1).all()):
        raise DataError(f"y_{part} has values that cannot be, for {data.task}")


def _about(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    """The checked description of a saved data set."""
    try:
        about = json.loads(metadata["epicortex.data"])
    except (KeyError, ValueError, RecursionError):
        raise DataError(f"{path} is not a data set of EpiCortex") from None
    texts, lists = ("name", "digest", "fingerprint"), ("classes", "notes")
    if isinstance(about, dict):
        about = {"columns": [], **about}
    if not (
        isinstance(about, dict)
        and {*texts, *lists, "format", "scaling"} <= set(about)
        and all(isinstance(about[key], str) for key in texts)
        and all(
            isinstance(about[key], list) and all(isinstance(s, str) for s in about[key])
            for key in (*lists, "columns")
        )
    ):
        raise DataError(f"{path} does not describe a data set of EpiCortex")
    if (
        about.get("bits", DEEP) not in range(8, DEEP + 1)
        or about.get("label_kind", "text") not in get_args(LabelKind)
        or about.get("task", "classes") not in get_args(TaskKind)
    ):
        raise DataError(f"{path} does not describe a data set of EpiCortex")
    if about["format"] != FORMAT:
        raise DataError(
            f"{path} has the format {about['format']!r:.20}, this version reads {FORMAT}; delete it"
        )
    return about
