"""The rows of CSV files: sound, or refused in one line; which columns are numbers, texts, or neither.

What the numbers become is left to `data.columns`.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import numpy as np

from epicortex.data.columns import MISSING, Column, Columns
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

LABEL_NAMES: Final = ("label", "class", "target", "y", "labels", "species")
#: A text column with more different texts than this is left out: names, ids, free text.
MOST_TEXTS: Final = 50
_MAX_LINE: Final = 4_000_000
_DATE: Final = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?")
#: From this part of dates on, a column is one of dates.
_DATES: Final = 0.9


@contextmanager
def sound_csv(path: Path) -> Iterator[Iterator[list[str]]]:
    """The rows of a CSV file; whatever is wrong with it is a `DataError`."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = max(",;\t", key=stream.readline(_MAX_LINE).count)
            stream.seek(0)
            yield csv.reader(_lines(stream, path), delimiter=delimiter, strict=True)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path} is not a sound CSV file: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def checked_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """All rows but the header, each with its line, and as long as the header."""
    with sound_csv(path) as rows:
        header = next(rows, [])
        for number, row in enumerate(rows, start=2):
            if not row:
                continue
            if len(row) != len(header):
                raise DataError(f"{path}: line {number} has {len(row)} columns, the header has {len(header)}")
            yield number, row


@dataclass(slots=True)
class Seen:
    """What the cells of a column are."""

    name: str
    numbers: int = 0
    missing: int = 0
    others: int = 0
    dates: int = 0
    first: tuple[int, str] | None = None
    """The line and the cell of the first that is no number."""
    unit: str = "line"
    """What its cells are counted in."""
    texts: set[str] = field(default_factory=set)
    """The different cells of a column that holds texts; no more than tell that it is too many."""

    def add(self, cell: str, line: int) -> None:
        """Count a cell that may be anything."""
        if cell.strip().lower() in MISSING:
            self.missing += 1
        elif _is_number(cell):
            self.numbers += 1
        else:
            self.others += 1
            self.dates += _DATE.fullmatch(cell.strip()) is not None
            self.first = self.first or (line, cell)

    def column(self, path: Path, notes: list[str]) -> Column | None:
        """What becomes of it; None where it is left out, and a note says why."""
        why = None
        if self.others == 0:
            if self.numbers:
                return Column(self.name)
            why = "has no values"
        elif self.dates >= _DATES * self.others and self.dates > self.numbers:
            why = "holds dates"
        elif self.numbers >= self.others:
            assert self.first is not None
            raise not_a_number(path, self.name, self.first[1], self.first[0], self.unit)
        elif len(self.texts) > MOST_TEXTS:
            why = f"has more than {MOST_TEXTS} different texts"
        elif 2 * len(self.texts) > self.numbers + self.others and self.others > 2:
            why = "has a text of its own in most rows, like a name"
        if why is None:
            return Column(self.name, "text", categories=tuple(sorted(self.texts)))
        notes.append(f"the column {shown(self.name)!r} {why} and was left out")
        return None


def survey(path: Path, header: Sequence[str], places: Sequence[int]) -> list[Seen]:
    """What the columns at these places hold: one pass over the file, and another if there are texts."""
    seen = [Seen(header[place]) for place in places]
    plain = 0
    for line, row in checked_rows(path):
        cells = [row[place] for place in places]
        try:
            if not math.isnan(sum(map(float, cells))):  # quick: all are numbers, and none is missing
                plain += 1
                continue
        except (ValueError, OverflowError):
            pass
        for one, cell in zip(seen, cells, strict=True):
            one.add(cell, line)
    for one in seen:
        one.numbers += plain
    texts = [(place, one) for place, one in zip(places, seen, strict=True) if one.others]
    if texts:
        for _, row in checked_rows(path):
            for place, one in texts:
                cell = row[place].strip()
                if len(one.texts) <= MOST_TEXTS and cell.lower() not in MISSING:
                    one.texts.add(cell)
    return seen


def text_column(
    path: Path, name: str, cells: Sequence[str], notes: list[str], *, texts: bool = False
) -> Column | None:
    """What becomes of a column whose cells are at hand; with `texts`, numbers are texts, too."""
    seen = Seen(name, unit="row")
    for row, cell in enumerate(cells):
        if texts and cell.strip().lower() not in MISSING:
            seen.others += 1
        else:
            seen.add(cell, row)
        if len(seen.texts) <= MOST_TEXTS and cell.strip().lower() not in MISSING:
            seen.texts.add(cell.strip())
    return seen.column(path, notes)


def lacking(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    """Refuse a table without the columns that a champion was evolved on."""
    missing = [name for name in names if name not in header]
    if missing:
        raise DataError(f"{path} lacks the column {listing(missing)}, which the champion was evolved on")


def read_rows(path: Path, table: Columns) -> tuple[np.ndarray, list[int]]:
    """The cells of a table's columns as numbers (`Column.value`), and the line that each row stands on.

    Columns are found by their names, in any order, and others are left alone.
    """
    with sound_csv(path) as rows:
        header = next(rows, [])
    lacking(path, table.names, header)
    places = [header.index(name) for name in table.names]
    values, lines = array("f"), []
    for line, row in checked_rows(path):
        values.extend(cells(path, table, [row[place] for place in places], line))
        lines.append(line)
    return finite(path, np.frombuffer(values, np.float32).reshape(len(lines), len(places)), lines), lines


def cells(path: Path, table: Columns, row: Sequence[str], line: int) -> list[float]:
    """One row's cells as numbers."""
    try:
        if table.plain:
            return list(map(float, row))
    except (ValueError, OverflowError):
        pass
    found = []
    for column, cell in zip(table.columns, row, strict=True):
        try:
            found.append(column.value(cell))
        except (ValueError, OverflowError):
            raise not_a_number(path, column.name, cell, line) from None
    return found


def finite(path: Path, x: np.ndarray, lines: Sequence[int]) -> np.ndarray:
    """The same, unless there is something infinite in it."""
    odd = np.isinf(x).any(axis=1)
    if odd.any():
        raise DataError(f"{path}: line {lines[int(np.flatnonzero(odd)[0])]} has values that are infinite")
    return x


def not_a_number(path: Path, name: str, cell: str, line: int, unit: str = "line") -> DataError:
    """What is said of a cell that should be a number."""
    return DataError(
        f"{path}: {unit} {line}, column {name!r:.40} holds {cell!r:.40}, which is not a number; "
        "leave the column out, or turn it into numbers"
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    """The lines, none of which may be without end."""
    while line := stream.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise DataError(f"{path} has a line of more than {_MAX_LINE} characters")
        yield line
