"""Reads Parquet files as tables, like CSV files of the same content; this needs the pyarrow library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from epicortex.data import answers
from epicortex.data.columns import Column, Columns
from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions
from epicortex.data.readers.rows import Seen, text_column
from epicortex.data.readers.table import finish, group_place, label_places
from epicortex.data.wording import shown
from epicortex.errors import DataError

#: What a sample's label takes while it is read: a reference to its name, and the number of its class.
_LABEL_BYTES: Final = 16


def from_parquet(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a Parquet file."""
    notes: list[str] = []
    with _sound(path) as pyarrow:
        kinds = _kinds(pyarrow, path)
        header = list(kinds)
        names, group = [header[place] for place in label_places(header, options, path)], options.group_column
        group_place(header, options, path)  # refused if there is none
        inputs = {name: kind for name, kind in kinds.items() if name not in (*names, group)}
        used = [name for name, kind in inputs.items() if kind in ("number", "text")]
        table = _table(pyarrow, path, [*used, *names, *([] if group is None else [group])], options)
        columns, values = [], []
        for name, kind in inputs.items():
            if name not in used:
                _leave_out(path, name, kind, table.num_rows, notes)
            elif made := _column(path, name, kind, table.column(name), notes):
                columns.append(made[0])
                values.append(made[1])
        own = [_labels(table.column(name)) for name in names]
        groups = None if group is None else [str(one) for one in _labels(table.column(group))]
    x = np.stack(values, axis=1) if values else np.empty((table.num_rows, 0), np.float32)
    if np.isinf(x).any():
        raise DataError(f"{path} has values that are infinite or too large")
    every = own[0] if len(own) == 1 else answers.joined(zip(*(map(str, one) for one in own), strict=True))
    return finish(path, Columns(tuple(columns)), x, every, names, options, notes, groups)


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file."""
    with _sound(path) as pyarrow:
        return list(_kinds(pyarrow, path))


def read_columns(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those of these columns that a Parquet file has, by name; missing numbers are NaN, other cells None."""
    with _sound(path) as pyarrow:
        kinds = _kinds(pyarrow, path)
        table = _table(pyarrow, path, [name for name in names if name in kinds], DataOptions())
        return {name: _cells(table.column(name), kinds[name]) for name in table.column_names}


@contextmanager
def _sound(path: Path) -> Iterator[Any]:
    """The library that reads a file; whatever it finds wrong is a `DataError`."""
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise DataError(f"{path}: to read Parquet files, `pip install pyarrow`") from None
    try:
        yield pyarrow
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{path} is not a sound Parquet file: {shown(reason)}") from None


def _kinds(pyarrow: Any, path: Path) -> dict[str, str]:
    """What the columns hold, by their names."""
    schema = pyarrow.parquet.read_schema(path)
    if len(set(schema.names)) < len(schema.names):
        raise DataError(f"{path} has columns of one name; give them different names")
    return {name: _kind(pyarrow.types, kind) for name, kind in zip(schema.names, schema.types, strict=True)}


def _table(pyarrow: Any, path: Path, names: Sequence[str], options: DataOptions) -> Any:
    """Some of the columns of a file, if the file is not too large.

    Texts are read as dictionaries: one that a million rows share stays one text.
    """
    with pyarrow.parquet.ParquetFile(path) as file:
        # Nothing is asked of the column of a group: the library would end this process if it is damaged.
        leaves = [file.metadata.schema.column(place) for place in range(file.metadata.num_columns)]
        rows, groups = file.metadata.num_rows, range(file.metadata.num_row_groups)
        claimed = sum(file.metadata.row_group(index).total_byte_size for index in groups)
        nested = [name for name in names if file.schema_arrow.field(name).type.num_fields]
    if nested:
        raise ValueError(f"the column {nested[0]!r} holds lists, neither numbers nor texts")
    room = rows * (_LABEL_BYTES + sum(max(4, leaf.length) for leaf in leaves if leaf.path in names))
    if max(room, claimed) > options.max_bytes:
        raise DataError(
            f"{path} claims {rows} rows, {max(room, claimed) >> 20} MB: more than data.max_bytes allows"
        )
    texts = [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        return file.read(columns=list(names))


def _kind(types: Any, kind: Any) -> str:
    if any(
        check(kind) for check in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    ):
        return "number"
    if types.is_temporal(kind):
        return "date"
    plain = kind.value_type if types.is_dictionary(kind) else kind
    return "text" if types.is_string(plain) or types.is_large_string(plain) else str(kind)


def _column(
    path: Path, name: str, kind: str, column: Any, notes: list[str]
) -> tuple[Column, np.ndarray] | None:
    """A column and its cells as numbers; None where it is left out, and a note says why."""
    if kind == "number":
        if column.null_count == len(column) and len(column):
            notes.append(f"the column {shown(name)!r} has no values and was left out")
            return None
        with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is not finite
            return Column(name), np.asarray(_cells(column, kind), np.float64).astype(np.float32)
    cells = ["" if cell is None else str(cell) for cell in _labels(column)]
    made = text_column(path, name, cells, notes)
    return None if made is None else (made, np.array([made.value(cell) for cell in cells], np.float32))


def _leave_out(path: Path, name: str, kind: str, rows: int, notes: list[str]) -> None:
    """Note why a column is not used."""
    if kind == "date":
        Seen(name, others=rows, dates=rows).column(path, notes)
    else:
        notes.append(f"the column {shown(name)!r} holds {shown(kind, 40)} and was left out")


def _cells(column: Any, kind: str) -> np.ndarray:
    """Numbers with NaN for what is missing; of anything else objects, so that shared texts stay shared."""
    if kind == "number":
        numbers = column.cast("float64").to_numpy() if column.null_count else column.to_numpy()
        return np.asarray(numbers)
    cells = np.empty(len(column), object)
    cells[:] = _labels(column)
    return cells


def _labels(column: Any) -> Sequence[Any] | np.ndarray:
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
