"""Arrays, DataFrames and torch data sets as a `DataSet`, kept in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from epicortex.data import answers
from epicortex.data.assemble import Encode, Part, assemble
from epicortex.data.columns import unnamed
from epicortex.data.dataset import DataSet, LabelKind
from epicortex.data.options import DataOptions, Progress
from epicortex.data.readers import frames
from epicortex.data.readers.frames import absent, is_frame
from epicortex.data.readers.table import encoded, shared_texts
from epicortex.data.values import as_inputs, channels_first, encode_labels, label_kind
from epicortex.data.wording import shown
from epicortex.errors import DataError
from epicortex.measures import TaskKind

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
    xs = {part: arrays[f"x_{part}"] for part in present}
    xs = {part: x if is_frame(x) else _array(x, f"x_{part}") for part, x in xs.items()}
    own = _answers({f"y_{part}": arrays[f"y_{part}"] for part in present}, options, classes)
    for part, x in xs.items():
        if len(x) != len(own.labels[f"y_{part}"]):
            raise DataError(f"{name}: x_{part} has {len(x)} samples, y_{part} {len(own.labels[f'y_{part}'])}")
    if len(xs["train"]) == 0:
        raise DataError(f"{name}: x_train is empty")
    told = [*notes, *own.notes]
    inputs = (
        _framed(xs, options, told) if all(map(is_frame, xs.values())) else _shaped(xs, options, name, columns)
    )
    samples = len(own.labels["y_train"])
    groups = arrays.get("groups") if groups is None else groups
    grouped = {**inputs.groups, **({} if groups is None else {"train": _groups(groups, samples, name)})}
    return assemble(
        name,
        {
            part: Part(_frozen(x), own.labels[f"y_{part}"], groups=grouped.get(part))
            for part, x in inputs.values.items()
        },
        classes=own.names,
        kind=own.kind,
        task=own.task,
        divisor=inputs.divisor,
        options=options,
        notes=told,
        columns=inputs.columns,
        encode=inputs.encode,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """Samples by part, and what `assemble` has to know of them."""

    values: dict[str, np.ndarray]
    divisor: float = 1.0
    columns: Sequence[str] = ()
    encode: Encode | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)


def _shaped(given: Mapping[str, Any], options: DataOptions, name: str, columns: Sequence[str]) -> _Inputs:
    """Arrays with their channels first."""
    xs = {part: np.asarray(x) for part, x in given.items()}
    holes = _has_holes(list(xs.values()))
    shaped = {f"x_{part}": channels_first(x, options.layout, f"x_{part}") for part, x in xs.items()}
    inputs, divisor = as_inputs(shaped, holes=holes)
    _check_alike(name, inputs)
    values = {part: inputs[f"x_{part}"] for part in xs}
    return _Inputs(values, divisor, columns, _filled if holes else None)


def _framed(given: Mapping[str, Any], options: DataOptions, notes: list[str]) -> _Inputs:
    """Frames as tables, with holes and texts; what the columns are, the training part says."""
    every = {part: frames.named(frame) for part, frame in given.items()}
    groups = {part: frames.groups_of(columns, options) for part, columns in every.items()}
    table, values = frames.draft(every["train"], notes)
    others = {part: frames.cells_of(columns, table) for part, columns in every.items() if part != "train"}
    return _Inputs(
        {"train": values, **others},
        encode=partial(encoded, table),
        groups={part: shared_texts(own) for part, own in groups.items() if own is not None},
    )


def _has_holes(xs: Sequence[np.ndarray]) -> bool:
    """Whether tables lack some values; a column without any cannot be filled in."""
    table = all(x.ndim == 2 and x.dtype.kind == "f" for x in xs)
    return table and any(np.isnan(x).any() for x in xs) and not np.isnan(xs[0]).all(axis=0).any()


def _filled(parts: dict[str, Part]) -> Any:
    """Arrays with holes are tables: holes are filled in as in those."""
    return encoded(unnamed(parts["train"].x.shape[1]), parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """Labels as arrays, and what they mean."""

    labels: dict[str, np.ndarray]
    names: tuple[str, ...]
    task: TaskKind = "classes"
    kind: LabelKind = "text"
    notes: tuple[str, ...] = ()


def _answers(ys: Mapping[str, Any], options: DataOptions, given: Sequence[str] | None) -> _Answers:
    """The labels of all parts, as the data or a person says what they are."""
    raw = {key: _plain(_array(y, key)) for key, y in ys.items()}
    holes = {key: [n for n, cell in enumerate(y) if absent(cell)] for key, y in raw.items() if y.dtype == "O"}
    for key, rows in holes.items():
        raw[key][rows] = ""
    train = raw["y_train"]
    task = _task(train) if options.task == "auto" else options.task
    if task == "classes":
        for key, rows in holes.items():
            if rows:
                raise DataError(
                    f"{key} lacks {len(rows)} labels, first that of sample {rows[0]}: drop such rows"
                )
        if train.ndim == 2 and train.shape[1] > 1 and _one_hot(train):
            raw = {key: y.argmax(axis=1) for key, y in raw.items()}
        labels, found = encode_labels(raw)
        names = _names(found, given)
        return _Answers(
            labels,
            names,
            kind=label_kind(_plain(_array(ys["y_train"], "y_train"))) if names == found else "text",
        )
    told = options.task == "auto"
    if task == "regression":
        made = {key: answers.as_targets(y, key) for key, y in raw.items()}
        count = made["y_train"].shape[1]
        names = tuple(_given(given, count) or answers.names_of(ys["y_train"], count, "target"))
        note = answers.note(task, "y", numbers=len(np.unique(train)) if count == 1 else 0)
        return _Answers(made, names, task, notes=(note,) if told and count == 1 else ())
    if train.dtype.kind in "UO":
        texts = {key: [str(cell) for cell in y.tolist()] for key, y in raw.items()}
        every = answers.label_sets([cell for cells in texts.values() for cell in cells])[1]
        made = {key: answers.label_sets(cells, every)[0] for key, cells in texts.items()}
        return _Answers(
            made, tuple(every), task, notes=(answers.note(task, "y", names=every),) if told else ()
        )
    made = {key: answers.as_sets(y, key) for key, y in raw.items()}
    count = made["y_train"].shape[1]
    return _Answers(
        made, tuple(_given(given, count) or answers.names_of(ys["y_train"], count, "label")), task
    )


def _task(y: np.ndarray) -> TaskKind:
    if y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind in "biuf" and len(y):
        return answers.of_columns(y)
    if y.ndim == 1 and y.dtype.kind in "UO":
        texts = [str(cell) for cell in y.tolist()]
        return (
            "multilabel"
            if answers.separator(set(texts)) and answers.of_texts(texts) == "multilabel"
            else "classes"
        )
    return (
        answers.of_numbers(y) if y.ndim == 1 and (y.dtype.kind != "f" or np.isfinite(y).all()) else "classes"
    )


def _plain(y: np.ndarray) -> np.ndarray:
    """One column is no table; what may be written to is a copy."""
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    return y.copy() if y.dtype == "O" else y


def _one_hot(y: np.ndarray) -> bool:
    return y.dtype.kind in "biuf" and bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all())


def _given(names: Sequence[str] | None, count: int) -> Sequence[str] | None:
    return names if names is not None and len(names) == count else None


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
        labels.append(_label(item[1]))
        if progress and number % 256 == 0:
            progress(f"reading {name}", number, total)
    if not rows:
        raise DataError(f"{name} is empty")
    return np.stack(rows), np.array(labels), tensors


def _label(value: Any) -> Any:
    """One label, or an array of several."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    return _array(value, "a label") if hasattr(value, "detach") else value


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
        if is_frame(value):  # as a whole, columns of pandas' own numbers would become objects
            return np.stack([np.asarray(column) for column in frames.named(value).values()], axis=1)
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} cannot be made an array: {shown(error)}") from None


def _frozen(x: np.ndarray) -> np.ndarray:
    view = x.view()
    view.flags.writeable = False
    return view


def _groups(groups: Any, samples: int, name: str) -> np.ndarray:
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
