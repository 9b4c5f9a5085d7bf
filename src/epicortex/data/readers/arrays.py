"""Arrays and torch data sets as a `DataSet`, kept in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from epicortex.data.assemble import Part, assemble
from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions, Progress
from epicortex.data.values import as_inputs, channels_first, encode_labels, label_kind
from epicortex.data.wording import shown
from epicortex.errors import DataError

PARTS = ("train", "val", "test")


def from_arrays(
    arrays: Mapping[str, Any],
    *,
    name: str = "arrays",
    options: DataOptions,
    classes: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    groups: Any | None = None,
    columns: Sequence[str] = (),
) -> DataSet:
    """Make a data set of `x_train` and `y_train`, and likewise test and val where they are given.

    `groups` says what each training sample belongs to; samples of one group are split off together.
    """
    present = [part for part in PARTS if f"x_{part}" in arrays or f"y_{part}" in arrays]
    for part in present or ["train"]:
        if f"x_{part}" not in arrays or f"y_{part}" not in arrays:
            raise DataError(f"{name}: x_{part} and y_{part} are needed together")
    if "train" not in present:
        raise DataError(f"{name}: x_train and y_train are missing")
    xs = {f"x_{part}": _array(arrays[f"x_{part}"], f"x_{part}") for part in present}
    labels, names = encode_labels({f"y_{part}": _array(arrays[f"y_{part}"], f"y_{part}") for part in present})
    for part in present:
        if len(xs[f"x_{part}"]) != len(labels[f"y_{part}"]):
            raise DataError(
                f"{name}: x_{part} has {len(xs[f'x_{part}'])} samples, y_{part} {len(labels[f'y_{part}'])}"
            )
    if len(xs["x_train"]) == 0:
        raise DataError(f"{name}: x_train is empty")
    inputs, divisor = as_inputs({key: channels_first(x, options.layout, key) for key, x in xs.items()})
    _check_alike(name, inputs)
    own = _names(names, classes)
    grouped = _groups(arrays.get("groups") if groups is None else groups, len(labels["y_train"]), name)
    return assemble(
        name,
        {
            part: Part(
                _frozen(inputs[f"x_{part}"]), labels[f"y_{part}"], groups=grouped if part == "train" else None
            )
            for part in present
        },
        classes=own,
        kind=label_kind(_array(arrays["y_train"], "y_train")) if own == names else "text",
        divisor=divisor,
        options=options,
        notes=notes,
        columns=columns,
    )


def is_torch_dataset(source: object) -> bool:
    """Whether `source` is a torch `Dataset`; torch is not imported to find out."""
    return "torch" in sys.modules and isinstance(source, sys.modules["torch"].utils.data.Dataset)


def from_torch(
    train: Any, test: Any | None = None, *, options: DataOptions, progress: Progress | None = None
) -> DataSet:
    """Make a data set of torch data sets whose items are (input, label)."""
    name = type(train).__name__
    parts = {"train": train} if test is None else {"train": train, "test": test}
    arrays: dict[str, Any] = {}
    for part, dataset in parts.items():
        x, y, tensors = _collect(dataset, f"{name} ({part})", options, progress)
        arrays |= {f"x_{part}": x, f"y_{part}": y}
        if tensors and options.layout == "auto" and x.ndim > 3:
            # The custom for tensors; arrays and pictures have their channels last, and their shape says so.
            options = replace(options, layout="channels_first")
    classes = getattr(train, "classes", None)
    strings = isinstance(classes, (list, tuple)) and all(isinstance(one, str) for one in classes)
    return from_arrays(arrays, name=name, options=options, classes=classes if strings else None)


def _collect(
    dataset: Any, name: str, options: DataOptions, progress: Progress | None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """All inputs, all labels, and whether the inputs were torch tensors."""
    rows: list[np.ndarray] = []
    labels: list[Any] = []
    tensors = False
    size = 0
    total = len(dataset) if hasattr(dataset, "__len__") else 0
    for number, item in enumerate(_items(dataset, name)):
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise DataError(f"{name}: item {number} is no pair of input and label")
        row = _array(item[0], f"{name}: item {number}")
        if rows and (row.shape != rows[0].shape or row.dtype != rows[0].dtype):
            raise DataError(
                f"{name}: item {number} has the shape {row.shape}, item 0 {rows[0].shape}: resize them first"
            )
        size += row.nbytes
        if size > options.max_bytes:
            raise DataError(f"{name} holds more than {options.max_bytes >> 20} MB (data.max_bytes)")
        rows.append(row)
        tensors = hasattr(item[0], "detach")
        labels.append(item[1].item() if hasattr(item[1], "item") else item[1])
        if progress and number % 256 == 0:
            progress(f"reading {name}", number, total)
    if not rows:
        raise DataError(f"{name} is empty")
    return np.stack(rows), np.array(labels), tensors


def _items(dataset: Any, name: str) -> Iterator[Any]:
    number = 0
    try:
        if hasattr(dataset, "__len__"):
            for number in range(len(dataset)):
                yield dataset[number]
        else:
            for item in dataset:
                yield item
                number += 1
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{name}: item {number} raised {type(error).__name__}: {shown(error, 300)}"
        ) from error


def _array(value: Any, name: str) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} cannot be made an array: {shown(error)}") from None


def _frozen(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view


def _groups(groups: Any | None, samples: int, name: str) -> np.ndarray | None:
    if groups is None:
        return None
    found = _array(groups, "groups").astype(np.str_)
    if found.shape != (samples,):
        raise DataError(f"{name}: groups has the shape {found.shape}; one for each of {samples} is needed")
    return found


def _check_alike(name: str, inputs: Mapping[str, np.ndarray]) -> None:
    shape = inputs["x_train"].shape[1:]
    for key, x in inputs.items():
        if x.shape[1:] != shape:
            raise DataError(
                f"{name}: {key} holds samples of {x.shape[1:]}, x_train of {shape}: they must be alike"
            )


def _names(found: tuple[str, ...], given: Sequence[str] | None) -> tuple[str, ...]:
    """The given class names where the labels are their numbers, else the labels themselves."""
    numbers = {str(number): one for number, one in enumerate(given or ())}
    return tuple(numbers[label] for label in found) if set(found) <= set(numbers) else found
