"""Reads tables with a label column, CSV or Parquet, for networks without convolutions."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions
from epicortex.data.readers.arrays import from_arrays
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

_LABEL_NAMES = ("label", "class", "target", "y", "labels", "species")
_INDEX_NAMES = ("", "unnamed: 0", "index", "id")
_MAX_COLUMNS = 100_000
_MAX_LINE = 4_000_000
_MAX_LABEL = 200


def from_csv(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a CSV file with a header; the delimiter may be a comma, semicolon or tab."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = max(",;\t", key=stream.readline(_MAX_LINE).count)
            stream.seek(0)
            rows = csv.reader(_lines(stream, path), delimiter=delimiter, strict=True)
            header = next(rows, [])
            label = _label_column(header, options, path)
            x, y = _read_rows(rows, header, label, path, options)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path} is not a sound CSV file: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    names = [name for index, name in enumerate(header) if index != label]
    return _finish(path, names, x, y, options)


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
            if max(rows * len(schema.names) * 4, claimed) > options.max_bytes:
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


def _arrow_labels(column: Any) -> list[Any]:
    if not hasattr(column.type, "index_type"):
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
    for name in _LABEL_NAMES:
        if name in lower:
            return lower.index(name)
    raise DataError(
        f"{path}: which column is the class? set data.label_column to one of {listing(header, 10)}"
    )


def _read_rows(
    rows: Iterator[list[str]], header: list[str], label: int, path: Path, options: DataOptions
) -> tuple[np.ndarray, list[str]]:
    values = array("f")
    labels: list[str] = []
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(f"{path}: line {number} has {len(row)} columns, the header has {len(header)}")
        labels.append(row.pop(label).strip())
        try:
            values.extend(map(float, row))
        except (ValueError, OverflowError):
            raise _culprit(path, row, header, label, number) from None
        if len(values) * values.itemsize > options.max_bytes:
            raise DataError(f"{path} holds more than {options.max_bytes >> 20} MB (data.max_bytes)")
    if not labels:
        raise DataError(f"{path} has a header but no rows")
    return np.frombuffer(values, np.float32).reshape(len(labels), -1), labels


def _culprit(path: Path, row: list[str], header: list[str], label: int, number: int) -> DataError:
    names = [name for index, name in enumerate(header) if index != label]
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


def _finish(path: Path, names: list[str], x: np.ndarray, labels: list[Any], options: DataOptions) -> DataSet:
    if any(one is None or one == "" for one in labels):
        raise DataError(f"{path}: the label column has empty cells")
    if any(len(one) > _MAX_LABEL for one in labels if isinstance(one, str)):
        # In an array every name takes the room of the longest.
        raise DataError(
            f"{path}: the label column has texts of over {_MAX_LABEL} characters; is it the right one?"
        )
    y = np.array(labels)
    if y.dtype.kind == "U" and all(_whole(one) for one in np.unique(y).tolist()):
        y = y.astype(np.float64).astype(np.int64)
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
    return from_arrays({"x_train": x, "y_train": y}, name=path.stem, options=options, notes=notes)


def _whole(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number == int(number) and abs(number) < 2**53
