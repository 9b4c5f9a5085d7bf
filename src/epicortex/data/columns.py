"""The columns of a table as inputs of a network: missing numbers filled in, texts one-hot; plain data.

The rules are those of scikit-learn's `SimpleImputer(strategy="median")` and
`OneHotEncoder(handle_unknown="ignore")`; what they learn comes from the training part alone. Reading cells
from files is left to the readers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from epicortex.errors import DataError, StorageError
from epicortex.storage import strict

#: What stands for a missing value in a cell, in small letters.
MISSING: Final = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-"})
#: The code of a text that the training part does not have.
UNKNOWN: Final = -1.0


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    kind: Literal["number", "text"] = "number"
    fill: float = 0.0
    """What stands in for a missing number: the median of the training part."""
    categories: tuple[str, ...] = ()
    """The texts of the training part, in order; each is an input of its own."""
    missing: bool = False
    """Whether a missing text is an input of its own, too, after the others."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs that it becomes.

        >>> Column("colour", "text", categories=("blue", "red"), missing=True).inputs
        ('colour=blue', 'colour=red', 'colour missing')
        """
        if self.kind == "number":
            return (self.name,)
        own = tuple(f"{self.name}={text}" for text in self.categories)
        return (*own, f"{self.name} missing") if self.missing else own

    def value(self, cell: str) -> float:
        """A cell as a number: itself, or the place of its text; NaN is missing, no number a `ValueError`."""
        if cell.strip().lower() in MISSING:
            return math.nan
        if self.kind == "number":
            return float(cell)
        text = cell.strip()
        return float(self.categories.index(text)) if text in self.categories else UNKNOWN


@dataclass(frozen=True, slots=True)
class Columns:
    """All columns of a table that are used, in the order of the inputs.

    >>> table = Columns((Column("size", fill=2.0), Column("colour", "text", categories=("blue", "red"))))
    >>> table.encode(np.array([[np.nan, 1.0], [3.0, UNKNOWN]], np.float32)).tolist()
    [[2.0, 0.0, 1.0], [3.0, 0.0, 0.0]]
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(one.name for one in self.columns)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for one in self.columns for name in one.inputs)

    @property
    def plain(self) -> bool:
        """Whether every column is a number, and so one input."""
        return all(one.kind == "number" for one in self.columns)

    def encode(self, raw: np.ndarray, read_as: Columns | None = None) -> np.ndarray:
        """Cells as numbers [rows, columns] (`Column.value`) as inputs [rows, inputs].

        `read_as` are the columns whose `value` gave them, if not these.
        """
        parts = []
        for place, one in enumerate(self.columns):
            own = raw[:, place]
            if one.kind == "number":
                filled = np.where(np.isnan(own), np.float32(one.fill), own)
                parts.append(filled.astype(np.float32)[:, None])
            else:
                parts.append(_one_hot(one, own, (read_as or self).columns[place]))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def fitted(self, raw: np.ndarray) -> Columns:
        """These columns with what the training part says: medians, and the texts that occur in it."""
        return Columns(tuple(_fitted(one, raw[:, place]) for place, one in enumerate(self.columns)))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        plain: dict[str, Any] = strict.plain(self)
        return plain

    @classmethod
    def from_json(cls, value: object) -> Columns:
        """From what `to_json` gave; anything else is a `DataError`."""
        try:
            return strict.build(cls, value, "the table")
        except StorageError as error:
            raise DataError(str(error)) from None

    def check(self) -> None:
        """Refuse what could be no table."""
        if not self.columns or not self.inputs:
            raise DataError("a table needs columns")
        if len(set(self.names)) != len(self.names):
            raise DataError("a table's columns need different names")


def _one_hot(column: Column, codes: np.ndarray, read_as: Column) -> np.ndarray:
    width = len(column.inputs)
    place: Mapping[str, int] = {text: number for number, text in enumerate(column.categories)}
    # one more row, for the texts that are not known
    known = np.array([place.get(text, -1) for text in read_as.categories] + [-1], np.int64)
    absent = len(column.categories) if column.missing else -1
    codes = np.where(np.isnan(codes), len(known), codes)
    chosen = np.append(known, absent)[np.where(codes < 0, len(known) - 1, codes).astype(np.int64)]
    out = np.zeros((len(codes), width), np.float32)
    rows = np.flatnonzero(chosen >= 0)
    out[rows, chosen[rows]] = 1.0
    return out


def _fitted(column: Column, raw: np.ndarray) -> Column:
    known = raw[~np.isnan(raw)]
    if column.kind == "number":
        return replace(column, fill=float(np.median(known.astype(np.float64))) if len(known) else 0.0)
    used = sorted({column.categories[int(code)] for code in np.unique(known) if code >= 0})
    return replace(column, categories=tuple(used), missing=len(known) < len(raw))


def unseen(table: Columns, raw: np.ndarray) -> list[str]:
    """The columns with texts that the training part did not have, and in how many rows that is.

    >>> unseen(Columns((Column("ward", "text", categories=("a",)),)), np.array([[UNKNOWN], [0.0]]))
    ['ward (1)']
    """
    counts = {one.name: int((raw[:, place] == UNKNOWN).sum()) for place, one in enumerate(table.columns)}
    texts = {one.name for one in table.columns if one.kind == "text"}
    return [f"{name} ({number})" for name, number in counts.items() if number and name in texts]


def unnamed(count: int) -> Columns:
    """Columns of numbers without names."""
    return Columns(tuple(Column(str(number)) for number in range(count)))


def filled(table: Columns | None, x: np.ndarray, inputs: int) -> np.ndarray:
    """Raw values for a network: holes filled in where a table knows how; anything else as it is."""
    if table is None or x.ndim != 2 or x.dtype.kind != "f" or not np.isnan(x).any():
        return x
    if table.plain and x.shape[1] == inputs:
        return table.encode(x)
    raise DataError("the values have holes: give a CSV file, whose columns are prepared as in training")
