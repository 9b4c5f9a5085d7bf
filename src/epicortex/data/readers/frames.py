"""DataFrames in Python, as of pandas: columns by name, whose cells may be numbers, texts or missing.

They are known by what they can do; pandas is not imported. What numbers and texts become is that of table
files (`table`, `data.columns`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from epicortex.data.columns import Column, Columns
from epicortex.data.options import DataOptions
from epicortex.data.readers.rows import Seen, lacking, not_a_number, text_column
from epicortex.data.readers.table import group_place, label_places, without_counters
from epicortex.data.scanning import SPLITS
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

#: What stands for a file's name in messages.
NAME: Final = Path("DataFrame")
Named = Mapping[str, Any]
"""Columns by name: whatever numpy makes an array [rows] of."""


def is_frame(source: object) -> bool:
    """Whether an object is a table of named columns, as those of pandas are.

    >>> is_frame(np.zeros((2, 2))), is_frame({"a": [1]})
    (False, False)
    """
    return all(hasattr(source, name) for name in ("columns", "to_numpy", "__getitem__", "__len__"))


def named(frame: Any) -> dict[str, Any]:
    """The columns of a frame by their names, as texts."""
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(f"{NAME} has more than one column {listing(twice)}; give them different names")
    return dict(zip(names, (frame[name] for name in frame.columns), strict=True))


def are_parts(source: object) -> bool:
    """Whether these are frames by the names of their parts, each with its label among its columns."""
    if not isinstance(source, Mapping) or not source or "x_train" in source:
        return False
    return all(map(is_frame, source.values()))


def by_part(source: Mapping[str, Any]) -> dict[str, Any]:
    """The frames by what the parts are called here."""
    parts = {SPLITS.get(str(name).lower(), ""): frame for name, frame in source.items()}
    if "" in parts or len(parts) < len(source):
        raise DataError(f"the parts are {listing(list(source))}; they must be train, validation or test")
    return parts


def parted(parts: Mapping[str, Any], options: DataOptions) -> dict[str, Any]:
    """Frames by part as x and y: the label is one of their columns, or several."""
    arrays: dict[str, Any] = {}
    for part, frame in parts.items():
        header = [str(one) for one in frame.columns]
        places = label_places(header, options, NAME)
        own = [frame.columns[place] for place in places]
        rest = [one for place, one in enumerate(frame.columns) if place not in places]
        arrays[f"x_{part}"] = frame[rest]
        arrays[f"y_{part}"] = frame[own[0]] if len(own) == 1 else frame[own]
    return arrays


def draft(columns: Named, notes: list[str]) -> tuple[Columns, np.ndarray]:
    """The columns that are used, and their cells as numbers [rows, columns] (`Column.value`)."""
    kept, values = [], []
    for name, cells in columns.items():
        made = _drafted(name, cells, notes)
        if made is not None:
            kept.append(made)
            values.append(_numbers(made, cells))
    if not kept:
        raise DataError(f"{NAME} has no column with values besides the label")
    return without_counters(NAME, Columns(tuple(kept)), _stacked(values), notes)


def cells_of(columns: Named, table: Columns, where: Path = NAME) -> np.ndarray:
    """The cells of a table's columns as numbers; columns are found by name, and others are left alone."""
    lacking(where, table.names, list(columns))
    return _stacked([_numbers(one, columns[one.name], where) for one in table.columns], where)


def groups_of(columns: dict[str, Any], options: DataOptions) -> list[str] | None:
    """What each row belongs to, where a column says so, which is then taken out."""
    place = group_place(list(columns), options, NAME)
    return None if place is None else label_texts(columns.pop(list(columns)[place]))


def label_texts(cells: Any) -> list[str]:
    """Labels as they would stand in a file; true and false as 1 and 0."""
    array = np.asarray(cells)
    return _texts(array.astype(np.int64) if array.dtype.kind == "b" else array)


def absent(cell: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or what pandas has for them.

    >>> absent(None), absent(float("nan")), absent(""), absent(0)
    (True, True, False, False)
    """
    return (
        cell is None
        or (isinstance(cell, float) and math.isnan(cell))
        or type(cell).__name__ in ("NAType", "NaTType")
    )


def _drafted(name: str, cells: Any, notes: list[str]) -> Column | None:
    """What becomes of a column; None where it is left out, and a note says why."""
    array = np.asarray(cells)
    if array.ndim != 1:
        raise DataError(f"the column {shown(name)!r} of {NAME} has the shape {array.shape}")
    # a categorical column is one of texts, whatever its categories are
    chosen = getattr(getattr(cells, "dtype", None), "categories", None) is not None
    if array.dtype.kind in "biuf" and not chosen:
        if len(array) and not (array.dtype.kind == "f" and np.isnan(array).all()):
            return Column(name)
        return Seen(name).column(NAME, notes)
    if array.dtype.kind in "mM":
        return Seen(name, others=len(array), dates=len(array)).column(NAME, notes)
    return text_column(NAME, name, _texts(array), notes, texts=chosen)


def _numbers(column: Column, cells: Any, where: Path = NAME) -> np.ndarray:
    array = np.asarray(cells)
    if array.dtype.kind in "biuf" and column.kind == "number":
        with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is
            return array.astype(np.float32)
    # true and false with holes between them are objects
    known = {"True": 1.0, "False": 0.0} if column.kind == "number" else {}
    texts = _texts(array)
    for row, text in enumerate(texts):
        if text not in known:
            try:
                known[text] = column.value(text)
            except (ValueError, OverflowError):
                raise not_a_number(where, column.name, text, row, "row") from None
    return np.array([known[text] for text in texts], np.float32)


def _texts(array: np.ndarray) -> list[str]:
    """Cells as they would stand in a file; a whole number stays one where holes have made it a fraction."""
    plain = array.tolist()
    return [
        "" if absent(cell) else str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
        for cell in plain
    ]


def _stacked(values: Sequence[np.ndarray], where: Path = NAME) -> np.ndarray:
    x = np.stack(values, axis=1)
    if np.isinf(x).any():
        row = int(np.flatnonzero(np.isinf(x).any(axis=1))[0])
        raise DataError(f"{where}: row {row} has values that are infinite or too large")
    return x
