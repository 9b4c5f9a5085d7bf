"""Reads tables with a label column, CSV or Parquet, for networks without convolutions."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from epicortex.data import answers
from epicortex.data.assemble import Part, assemble
from epicortex.data.columns import Column, Columns
from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions
from epicortex.data.readers.rows import (
    LABEL_NAMES,
    cells,
    checked_rows,
    finite,
    read_rows,
    sound_csv,
    survey,
)
from epicortex.data.values import encode_labels, label_kind
from epicortex.data.wording import column_names, listing, no_column
from epicortex.errors import DataError

__all__ = ["LABEL_NAMES", "from_csv", "label_places", "read_labels", "read_plain", "sound_csv"]

_INDEX_NAMES: Final = ("", "unnamed: 0", "index", "id")
_MAX_COLUMNS: Final = 100_000
_MAX_LABEL: Final = 200
#: What a sample's label takes while it is read: a reference to its name, and the number of its class.
_LABEL_BYTES: Final = 16


def from_csv(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a CSV file with a header; the delimiter may be a comma, semicolon or tab."""
    with sound_csv(path) as rows:
        header = next(rows, [])
    labels, group = label_places(header, options, path), _group_column(header, options, path)
    places = [place for place in range(len(header)) if place not in (*labels, group)]
    notes: list[str] = []
    drafts, kept = [], []
    for place, seen in zip(places, survey(path, header, places), strict=True):
        column = seen.column(path, notes)
        if column is not None:
            drafts.append(column)
            kept.append(place)
    table = Columns(tuple(drafts))
    x, texts, groups = _read(path, table, kept, labels, group, options)
    names = [header[place] for place in labels]
    return finish(path, table, x, texts, names, options, notes, groups)


def read_plain(path: Path, columns: Sequence[str], count: int) -> tuple[np.ndarray, list[int]]:
    """The values of a CSV file for a champion that knows no table: columns of numbers, and their lines.

    Where it knows no names either, all columns but one that is called like a label count.
    """
    with sound_csv(path) as rows:
        header = next(rows, [])
    if not columns:
        columns = header
        if len(header) == count + 1:
            columns = [name for name in header if name.strip().lower() not in LABEL_NAMES]
        if len(columns) != count:
            raise DataError(f"{path} has {len(header)} columns; the champion takes {count}")
    x, lines = read_rows(path, Columns(tuple(Column(name) for name in columns)))
    if np.isnan(x).any():
        first = int(np.flatnonzero(np.isnan(x).any(axis=1))[0])
        raise DataError(f"{path}: line {lines[first]} has values that are missing")
    return x, lines


def read_labels(path: Path, options: DataOptions, outputs: Sequence[str]) -> list[str]:
    """The label of each row as text; of several columns, such as those that outputs are named by, joined."""
    with sound_csv(path) as rows:
        header = next(rows, [])
    places = chosen_labels(header, options, outputs, path)
    return answers.joined([row[place].strip() for place in places] for _, row in checked_rows(path))


def chosen_labels(
    header: Sequence[str], options: DataOptions, outputs: Sequence[str], path: Path
) -> list[int]:
    """Where the labels are of data for a champion with named outputs."""
    if options.label_column is None and outputs and all(name in header for name in outputs):
        return [list(header).index(name) for name in outputs]
    return label_places(header, options, path)


def label_places(header: Sequence[str], options: DataOptions, path: Path) -> list[int]:
    """Where the label is, or the labels are."""
    if not 1 <= len(header) <= _MAX_COLUMNS:
        raise DataError(f"{path} has {len(header)} columns; from 1 to {_MAX_COLUMNS} are possible")
    if options.label_column is not None:
        return [list(header).index(name) for name in named_columns(header, options.label_column, path)]
    lower = [name.strip().lower() for name in header]
    for name in LABEL_NAMES:
        if name in lower:
            return [lower.index(name)]
    raise DataError(
        f"{path}: which column is the class? give --data.label-column, one of {column_names(header)}"
    )


def named_columns(header: Sequence[str], asked: str, path: Path) -> list[str]:
    """The columns that are meant: one name, or several with commas between them."""
    if asked in header:
        return [asked]
    names = [name.strip() for name in asked.split(",")]
    strange = [name for name in names if name not in header]
    if strange or len(set(names)) < len(names):
        raise DataError(no_column(path, (strange or [asked])[0], header))
    return names


def _group_column(header: Sequence[str], options: DataOptions, path: Path) -> int | None:
    if options.group_column is None:
        return None
    if options.group_column not in header:
        raise DataError(no_column(path, options.group_column, header))
    return list(header).index(options.group_column)


def _read(
    path: Path,
    table: Columns,
    places: Sequence[int],
    labels: Sequence[int],
    group: int | None,
    options: DataOptions,
) -> tuple[np.ndarray, list[str], list[str] | None]:
    """The cells as numbers, the labels as texts, and the groups."""
    values, lines = array("f"), []
    texts: list[str] = []
    groups: list[str] = []
    known: dict[str, str] = {}
    room, width = 0, max(len(places), len(table.inputs)) * values.itemsize
    for line, row in checked_rows(path):
        name = answers.JOINT.join(row[place].strip() for place in labels)
        if group is not None:
            groups.append(row[group].strip())
        if name not in known:
            known[name] = name
            room += len(name)
        texts.append(known[name])
        lines.append(line)
        values.extend(cells(path, table, [row[place] for place in places], line))
        if len(lines) * (width + _LABEL_BYTES) + room > options.max_bytes:
            raise DataError(f"{path} holds more than {options.max_bytes >> 20} MB (data.max_bytes)")
    if not texts:
        raise DataError(f"{path} has a header but no rows")
    x = np.frombuffer(values, np.float32).reshape(len(texts), len(places))
    return finite(path, x, lines), texts, None if group is None else groups


def finish(
    path: Path,
    table: Columns,
    x: np.ndarray,
    labels: Sequence[Any] | np.ndarray,
    names: Sequence[str],
    options: DataOptions,
    notes: list[str],
    groups: Sequence[str] | None = None,
) -> DataSet:
    """A data set of cells as numbers [rows, columns] and labels as they stand in the file."""
    table, x = without_counters(path, table, x, notes)
    if 4 * len(x) * len(table.inputs) > options.max_bytes:
        raise DataError(f"{path} would take more than {options.max_bytes >> 20} MB (data.max_bytes)")
    own: dict[str, Any] = _answers(path, labels, names, options, notes)
    part = Part(x, own.pop("y"), groups=None if groups is None else np.array(groups, np.str_))
    encode = partial(encoded, table)
    return assemble(
        path.stem, {"train": part}, divisor=1.0, options=options, notes=notes, encode=encode, **own
    )


def without_counters(
    path: Path, table: Columns, x: np.ndarray, notes: list[str]
) -> tuple[Columns, np.ndarray]:
    """The columns and their cells without those that only count rows."""
    kept = [place for place in range(len(table.columns)) if not _counts_rows(table, x, place, notes)]
    if not kept:
        raise DataError(f"{path} has no column with values besides the label")
    table, x = Columns(tuple(table.columns[place] for place in kept)), x[:, kept]
    table.check()
    return table, x


def encoded(table: Columns, parts: dict[str, Part]) -> tuple[dict[str, Part], Columns, list[str]]:
    """All parts as inputs, by what the training part says; and what a person should be told."""
    fitted = table.fitted(parts["train"].x)
    holes = {
        one.name: int(sum(np.isnan(part.x[:, place]).sum() for part in parts.values()))
        for place, one in enumerate(fitted.columns)
    }
    told = [f"{shown} ({count})" for shown, count in holes.items() if count]
    notes = [f"missing values: {listing(told, 8)}; numbers become the median, texts a category of their own"]
    texts = [f"{one.name} ({len(one.inputs)})" for one in fitted.columns if one.kind == "text"]
    notes = notes if told else []
    if texts:
        notes.append(f"columns of text, an input for each of their texts: {listing(texts, 8)}")
    made = {
        name: Part(_frozen(fitted.encode(part.x, table)), part.y, part.names, part.groups)
        for name, part in parts.items()
    }
    return made, fitted, notes


def _answers(
    path: Path,
    labels: Sequence[Any] | np.ndarray,
    names: Sequence[str],
    options: DataOptions,
    notes: list[str],
) -> dict[str, Any]:
    """The labels as an array, and what `assemble` has to know of them."""
    asked = options.task
    if isinstance(labels, np.ndarray) and (
        asked == "classes" or (asked == "auto" and answers.of_numbers(labels) == "classes")
    ):  # numbers of a Parquet file
        y, classes = encode_labels({"y_train": labels})
        return {"y": y["y_train"], "classes": classes, "kind": label_kind(labels)}
    texts = [_text(one) for one in labels]
    if len(names) == 1:
        _check_labels(path, set(texts), options)
    task, outputs, told = answers.settled({"train": texts}, options.task, str(path), names)
    notes += told
    if task != "classes":
        if task == "multilabel" and len(names) == 1:
            y_ = answers.label_sets(texts, outputs)[0]
        else:
            y_ = answers.encoded(texts, task, outputs, f"{path}: the column {listing(names)}")
        return {"y": y_, "classes": tuple(outputs), "task": task}
    if "" in texts:
        raise DataError(f"{path}: the label column has empty cells")
    numbers, known = _numbered(texts)
    encoded_, found = encode_labels({"y_train": numbers})
    classes = found if known is None else tuple(known[int(place)] for place in found)
    return {
        "y": encoded_["y_train"],
        "classes": classes,
        "kind": label_kind(numbers) if known is None else "text",
    }


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _check_labels(path: Path, known: set[str], options: DataOptions) -> None:
    multi = options.task == "multilabel" or (options.task == "auto" and answers.separator(known) is not None)
    if "" in known and not multi:
        raise DataError(f"{path}: the label column has empty cells")
    if any(len(one) > (20 if multi else 1) * _MAX_LABEL for one in known):
        raise DataError(
            f"{path}: the label column has texts of over {_MAX_LABEL} characters; is it the right one?"
        )


def _counts_rows(table: Columns, x: np.ndarray, place: int, notes: list[str]) -> bool:
    """Whether a column only counts rows, or numbers them in any order; it is then told of."""
    column, own = table.columns[place], x[:, place]
    lower = column.name.strip().lower()
    # A row number says nothing about the next table, and in a sorted one it gives the class away.
    if column.kind == "text" or len(x) <= 2 or np.isnan(own).any():
        return False
    if lower in _INDEX_NAMES and (np.diff(own) == 1).all():
        notes.append(f"the column {column.name!r} only counts the rows and was left out")
        return True
    numbered = lower in ("id", "uuid") or lower.endswith(("_id", " id"))
    if numbered and len(np.unique(own)) == len(own) and (own == np.rint(own)).all():
        notes.append(f"the column {column.name!r} has another number in every row, an id, and was left out")
        return True
    return False


def _numbered(labels: Sequence[str]) -> tuple[np.ndarray, list[str] | None]:
    """Labels as an array, and the names of the classes where they are texts.

    An array of texts would give every row the room of the longest name.
    """
    known = set(labels)
    if all(map(_whole, known)):
        return np.fromiter((int(float(one)) for one in labels), np.int64, len(labels)), None
    classes = sorted(known)
    number = {name: place for place, name in enumerate(classes)}
    return np.fromiter((number[one] for one in labels), np.int64, len(labels)), classes


def _whole(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number == int(number) and abs(number) < 2**53


def whole_names(labels: Sequence[str]) -> list[str]:
    """Labels that are whole numbers in the one way that names of classes have them.

    >>> whole_names(["1.0", "x"])
    ['1', 'x']
    """
    return [str(int(float(one))) if _whole(one) else one for one in labels]


def _frozen(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x
