"""Rows of tables as raw values for a champion, prepared as in training: of files, and of DataFrames.

How cells are read is left to `data.readers`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Facts
from epicortex.data import DataOptions, answers
from epicortex.data.columns import Column, Columns, filled, unseen
from epicortex.data.readers.frames import NAME, cells_of, is_frame, label_texts, named
from epicortex.data.readers.parquet import column_names, read_columns
from epicortex.data.readers.rows import read_rows
from epicortex.data.readers.table import chosen_labels, read_labels, read_plain, whole_names
from epicortex.data.wording import listing
from epicortex.errors import DataError

ENDINGS = (".csv", ".parquet")
"""The files whose rows a champion takes."""


def raw_values(facts: Facts, x: Any, shape: Sequence[int]) -> NDArray[Any]:
    """Values for a network of an array, or of a DataFrame with the columns that it was evolved on."""
    if not is_frame(x) or len(shape) != 1 or not (facts.table or facts.columns):
        return filled(facts.table, np.array(x), math.prod(shape))
    notes: list[str] = []
    values = values_of(facts, named(x), notes)
    for note in notes:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    return values


def values_of(facts: Facts, columns: Mapping[str, Any], notes: list[str], where: Path = NAME) -> NDArray[Any]:
    """Columns by name as raw values; `notes` gets what a person should be told."""
    table = facts.table or Columns(tuple(Column(name) for name in facts.columns))
    x = cells_of(columns, table, where)
    if facts.table is None and np.isnan(x).any():
        row = int(np.flatnonzero(np.isnan(x).any(axis=1))[0])
        raise DataError(f"{where}: row {row} has values that are missing")
    return _encoded(table, x, where, notes)


def rows_of(facts: Facts, path: Path, count: int, notes: list[str]) -> tuple[NDArray[Any], list[int]]:
    """The rows of a CSV or Parquet file as raw values, and their lines, or numbers from 0 on in Parquet."""
    if path.suffix.lower() == ".parquet":
        if not (facts.table or facts.columns):
            raise DataError(
                f"{path}: the champion knows no names of columns; give it an array, or a CSV file"
            )
        wanted = facts.table.names if facts.table else facts.columns
        x = values_of(facts, read_columns(path, wanted), notes, path)
        return x, list(range(len(x)))
    if facts.table is None:
        return read_plain(path, facts.columns, count)
    x, lines = read_rows(path, facts.table)
    return _encoded(facts.table, x, path, notes), lines


def labels_of(facts: Facts, source: Path | Mapping[str, Any], options: DataOptions) -> list[str]:
    """The labels of a file's rows, or of columns by name, as texts; of several columns joined."""
    outputs = _outputs(facts)
    if isinstance(source, Path) and source.suffix.lower() == ".csv":
        return _as_named(facts, read_labels(source, options, outputs))
    header = column_names(source) if isinstance(source, Path) else list(source)
    where = source if isinstance(source, Path) else NAME
    names = [header[place] for place in chosen_labels(header, options, outputs, where)]
    columns = read_columns(source, names) if isinstance(source, Path) else source
    return labels_apart(facts, {name: columns[name] for name in names})


def labels_apart(facts: Facts, columns: Mapping[str, Any]) -> list[str]:
    """The same of columns that are all labels; in the order of the outputs where they have their names."""
    outputs = _outputs(facts)
    if outputs and all(name in columns for name in outputs):
        columns = {name: columns[name] for name in outputs}
    return _as_named(facts, answers.joined(zip(*map(label_texts, columns.values()), strict=True)))


def _outputs(facts: Facts) -> tuple[str, ...]:
    """The columns that labels may be in, each an output of its own."""
    return facts.classes if facts.task != "classes" else ()


def _as_named(facts: Facts, texts: list[str]) -> list[str]:
    plain = facts.task == "classes" and facts.label_kind != "text"
    return whole_names(texts) if plain else texts


def _encoded(table: Columns, x: NDArray[Any], where: Path, notes: list[str]) -> NDArray[Any]:
    if strange := unseen(table, x):
        notes.append(
            f"{where} has texts that the training data did not have, in the column {listing(strange)}"
        )
    return table.encode(x)
