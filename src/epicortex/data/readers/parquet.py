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
from epicortex.data.readers.table import finish, label_places
from epicortex.data.wording import shown
from epicortex.errors import DataError

#: What a sample's label takes while it is read: a reference to its name, and the number of its class.
_LABEL_BYTES: Final = 16


def from_parquet(path: Path, *, options: DataOptions) -> DataSet:
    """Make a data set of a Parquet file."""
    notes: list[str] = []
    with _sound(path) as pyarrow:
        schema = pyarrow.parquet.read_schema(path)
        labels = label_places(schema.names, options, path)
        kinds = {place: _kind(pyarrow.types, schema.types[place]) for place in range(len(schema.names))}
        texts = [schema.names[place] for place, kind in kinds.items() if kind == "text" or place in labels]
        # As a dictionary, a name that a million rows share stays one name.
        table = _table(pyarrow, path, texts, options)
        group = options.group_column
        columns, values = [], []
        for place, kind in kinds.items():
            if place in labels or schema.names[place] == group:
                continue
            made = _column(path, schema.names[place], kind, table.column(place), notes)
            if made is not None:
                columns.append(made[0])
                values.append(made[1])
        own = [_labels(table.column(place)) for place in labels]
        named = None if group is None else [str(one) for one in table.column(group).to_pylist()]
    x = np.stack(values, axis=1) if values else np.empty((table.num_rows, 0), np.float32)
    if np.isinf(x).any():
        raise DataError(f"{path} has values that are infinite or too large")
    every = own[0] if len(own) == 1 else answers.joined(zip(*(map(str, one) for one in own), strict=True))
    names = [schema.names[place] for place in labels]
    return finish(path, Columns(tuple(columns)), x, every, names, options, notes, named)


def read_columns(path: Path, options: DataOptions | None = None) -> dict[str, Any]:
    """All columns of a Parquet file by name, for a champion that picks its own."""
    with _sound(path) as pyarrow:
        table = _table(pyarrow, path, [], options or DataOptions())
        return {name: _labels(table.column(place)) for place, name in enumerate(table.column_names)}


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


def _table(pyarrow: Any, path: Path, texts: Sequence[str], options: DataOptions) -> Any:
    """What is in a file, if that is not too much; `texts` are columns to read as dictionaries."""
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        rows, groups = file.metadata.num_rows, range(file.metadata.num_row_groups)
        claimed = sum(file.metadata.row_group(index).total_byte_size for index in groups)
        width = (len(file.schema_arrow.names) - 1) * 4 + _LABEL_BYTES
        if max(rows * width, claimed) > options.max_bytes:
            raise DataError(f"{path} claims {rows} rows, {claimed >> 20} MB: more than data.max_bytes allows")
        return file.read()


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
            numbers = column.cast("float64").to_numpy() if column.null_count else column.to_numpy()
            return Column(name), np.asarray(numbers, np.float64).astype(np.float32)
    if kind == "date":
        Seen(name, others=len(column), dates=len(column)).column(path, notes)
        return None
    if kind == "text":
        cells = ["" if cell is None else str(cell) for cell in _labels(column)]
        made = text_column(path, name, cells, notes)
        return None if made is None else (made, np.array([made.value(cell) for cell in cells], np.float32))
    notes.append(f"the column {shown(name)!r} holds {shown(kind, 40)} and was left out")
    return None


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
