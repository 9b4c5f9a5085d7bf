"""Reads tables with a label column, CSV or Parquet, for networks without convolutions."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions
from epicortex.data.readers.arrays import from_arrays
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

LABEL_NAMES = ("label", "class", "target", "y", "labels", "species")
_INDEX_NAMES = ("", "unnamed: 0", "index", "id")
_MAX_COLUMNS = 100_000
_MAX_LINE = 4_000_000
_MAX_LABEL = 200
#: What a sample's label takes while it is read: a reference to its name, and the number of its class.
_LABEL_BYTES = 16


def from_csv(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a CSV file with a header; the delimiter may be a comma, semicolon or tab."""
    with sound_csv(path) as rows:
        header = next(rows, [])
        label = _label_column(header, options, path)
        group = _group_column(header, options, path)
        x, y, groups = _read_rows(rows, header, label, group, path, options)
    names = [name for index, name in enumerate(header) if index not in (label, group)]
    return _finish(path, names, x, y, options, groups)


def read_rows(path: Path, columns: Sequence[str], count: int) -> tuple[np.ndarray, list[int]]:
    """The values of a CSV file that a champion takes, and the line that each row stands on.

    Columns are found by their names, in any order, and others are left alone; where the champion knows no
    names, all columns but one that is called like a label count.
    """
    with sound_csv(path) as rows:
        header = next(rows, [])
        places = _places(header, columns, count, path)
        values, lines = array("f"), []
        for number, row in enumerate(rows, start=2):
            if not row:
                continue
            if len(row) != len(header):
                raise DataError(f"{path}: line {number} has {len(row)} columns, the header has {len(header)}")
            chosen = [row[place] for place in places]
            try:
                values.extend(map(float, chosen))
            except (ValueError, OverflowError):
                raise _culprit(path, chosen, [header[place] for place in places], number) from None
            lines.append(number)
    x = np.frombuffer(values, np.float32).reshape(len(lines), len(places))
    if not np.isfinite(x).all():
        first = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise DataError(f"{path}: line {lines[first]} has values that are missing or infinite")
    return x, lines


def read_labelled(
    path: Path, columns: Sequence[str], count: int, options: DataOptions, *, whole: bool
) -> tuple[np.ndarray, list[int], list[str]]:
    """The same with the label of each row, as the name of a class; `whole`: labels are whole numbers."""
    x, lines = read_rows(path, columns, count)
    with sound_csv(path) as rows:
        label = _label_column(next(rows, []), options, path)
        labels = [row[label].strip() for row in rows if row]
    if whole:
        labels = [str(int(float(one))) if _whole(one) else one for one in labels]
    return x, lines, labels


def _places(header: list[str], columns: Sequence[str], count: int, path: Path) -> list[int]:
    if columns:
        missing = [name for name in columns if name not in header]
        if missing:
            raise DataError(f"{path} lacks the column {listing(missing)}, which the champion was evolved on")
        return [header.index(name) for name in columns]
    places = list(range(len(header)))
    if len(header) == count + 1:
        places = [place for place, name in enumerate(header) if name.strip().lower() not in LABEL_NAMES]
    if len(places) != count:
        raise DataError(f"{path} has {len(header)} columns; the champion takes {count}")
    return places


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


def from_parquet(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a Parquet file; this needs the pyarrow library."""
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise DataError(f"{path}: to read Parquet files, `pip install pyarrow`") from None
    try:
        schema = pyarrow.parquet.read_schema(path)
        label = _label_column(schema.names, options, path)
        columns = [index for index in range(len(schema.names)) if index != label]
        for index in columns:
            kind = schema.types[index]
            is_number = (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean)
            if not any(check(kind) for check in is_number):
                raise _not_a_number(path, schema.names[index], str(kind), None)
        # As a dictionary, a name that a million rows share stays one name.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=[schema.names[label]]) as file:
            rows, groups = file.metadata.num_rows, range(file.metadata.num_row_groups)
            claimed = sum(file.metadata.row_group(index).total_byte_size for index in groups)
            if max(rows * (len(columns) * 4 + _LABEL_BYTES), claimed) > options.max_bytes:
                raise DataError(
                    f"{path} claims {rows} rows, {claimed >> 20} MB: more than data.max_bytes allows"
                )
            table = file.read()
        x = np.empty((table.num_rows, len(columns)), np.float32)
        with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is not finite
            for place, index in enumerate(columns):
                x[:, place] = table.column(index).to_numpy()
        y = _arrow_labels(table.column(label))
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path} is not a sound Parquet file: {shown(reason)}") from None
    return _finish(path, [schema.names[index] for index in columns], x, y, options)


def _arrow_labels(column: Any) -> Sequence[Any] | np.ndarray:
    """Names that many rows share stay one object each; numbers stay in an array."""
    if not hasattr(column.type, "index_type"):
        numbers: np.ndarray = column.to_numpy()
        if column.null_count == 0 and numbers.dtype.kind in "biuf":
            return numbers
        return list(column.to_pylist())
    labels: list[Any] = []
    for chunk in column.chunks:
        names, indices = chunk.dictionary.to_pylist(), chunk.indices.to_pylist()
        # The library does not check them, and a negative one would be taken for another class.
        if not all(index is None or 0 <= index < len(names) for index in indices):
            raise ValueError("the label column points outside of its dictionary")
        labels += [None if index is None else names[index] for index in indices]
    return labels


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    """The lines, none of which may be without end."""
    while line := stream.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise DataError(f"{path} has a line of more than {_MAX_LINE} characters")
        yield line


def _label_column(header: Sequence[str], options: DataOptions, path: Path) -> int:
    if not 2 <= len(header) <= _MAX_COLUMNS:
        raise DataError(
            f"{path} has {len(header)} columns; a label and from 1 to {_MAX_COLUMNS - 1} others are needed"
        )
    if options.label_column is not None:
        if options.label_column not in header:
            raise DataError(f"{path} has no column {options.label_column!r}; it has {listing(header, 10)}")
        return list(header).index(options.label_column)
    lower = [name.strip().lower() for name in header]
    for name in LABEL_NAMES:
        if name in lower:
            return lower.index(name)
    raise DataError(
        f"{path}: which column is the class? give --data.label-column, one of {listing(header, 10)}"
    )


def _group_column(header: Sequence[str], options: DataOptions, path: Path) -> int | None:
    if options.group_column is None:
        return None
    if options.group_column not in header:
        raise DataError(f"{path} has no column {options.group_column!r}; it has {listing(header, 10)}")
    return list(header).index(options.group_column)


def _read_rows(
    rows: Iterator[list[str]],
    header: list[str],
    label: int,
    group: int | None,
    path: Path,
    options: DataOptions,
) -> tuple[np.ndarray, list[str], list[str] | None]:
    values = array("f")
    labels: list[str] = []
    groups: list[str] = []
    names = [one for place, one in enumerate(header) if place not in (label, group)]
    known: dict[str, str] = {}
    room = 0
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(f"{path}: line {number} has {len(row)} columns, the header has {len(header)}")
        name = row[label].strip()
        if group is not None:
            groups.append(row[group].strip())
        for place in sorted({label} if group is None else {label, group}, reverse=True):
            del row[place]
        if name not in known:
            known[name] = name
            room += len(name)
        labels.append(known[name])
        try:
            values.extend(map(float, row))
        except (ValueError, OverflowError):
            raise _culprit(path, row, names, number) from None
        if len(values) * values.itemsize + len(labels) * _LABEL_BYTES + room > options.max_bytes:
            raise DataError(f"{path} holds more than {options.max_bytes >> 20} MB (data.max_bytes)")
    if not labels:
        raise DataError(f"{path} has a header but no rows")
    x = np.frombuffer(values, np.float32).reshape(len(labels), -1)
    return x, labels, None if group is None else groups


def _culprit(path: Path, row: list[str], names: list[str], number: int) -> DataError:
    for name, cell in zip(names, row, strict=True):
        try:
            float(cell)
        except ValueError:
            return _not_a_number(path, name, cell, number)
    return DataError(f"{path}: line {number} holds something that is not a number")


def _not_a_number(path: Path, name: str, cell: str, number: int | None) -> DataError:
    where = f"line {number}, " if number else ""
    what = f"holds {cell!r:.40}, which is not a number" if cell.strip() else "is empty"
    return DataError(
        f"{path}: {where}column {name!r:.40} {what}; leave the column out, or turn it into numbers"
    )


def _finish(
    path: Path,
    names: list[str],
    x: np.ndarray,
    labels: Sequence[Any] | np.ndarray,
    options: DataOptions,
    groups: Sequence[str] | None = None,
) -> DataSet:
    y, classes = _numbered(path, labels)
    kept, notes = [], []
    for index, name in enumerate(names):
        # A row number says nothing about the next table, and in a sorted one it gives the class away.
        if name.strip().lower() in _INDEX_NAMES and len(x) > 2 and (np.diff(x[:, index]) == 1).all():
            notes.append(f"the column {name!r} only counts the rows and was left out")
        else:
            kept.append(index)
    if not kept:
        raise DataError(f"{path} has no column with values besides the label")
    x = x[:, kept] if notes else x
    arrays = {"x_train": x, "y_train": y}
    own = [names[index] for index in kept]
    return from_arrays(
        arrays, name=path.stem, options=options, classes=classes, notes=notes, columns=own, groups=groups
    )


def _numbered(path: Path, labels: Sequence[Any] | np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Labels as an array, and the names of the classes where they are texts.

    An array of texts would give every row the room of the longest name.
    """
    if isinstance(labels, np.ndarray):
        return labels, None
    known = set(labels)
    if None in known or "" in known:
        raise DataError(f"{path}: the label column has empty cells")
    if not all(isinstance(one, str) for one in known):
        return np.array(labels), None
    if any(len(one) > _MAX_LABEL for one in known):
        raise DataError(
            f"{path}: the label column has texts of over {_MAX_LABEL} characters; is it the right one?"
        )
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
