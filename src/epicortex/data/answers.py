"""What is to be predicted, found out from labels: one class, numbers, or sets of labels; labels as arrays.

Classes are int64 [samples], numbers float32 [samples, targets], sets of labels uint8 [samples, labels].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from epicortex.data.wording import listing, shown
from epicortex.errors import DataError
from epicortex.measures import USUAL, TaskKind

#: Between the cells of several label columns, where they are kept as one text.
JOINT: Final = "\x1f"
SEPARATORS: Final = (";", "|")
#: Numbers with fractions are a quantity if there are more different ones than this,
MOST_FRACTIONS: Final = 10
#: whole ones if there are more than this, and more than so many occur only once.
MOST_WHOLE: Final = 20
MOST_SINGLES: Final = 10
MOST_LABELS: Final = 10_000
MOST_ANSWERS: Final = 2**31


def of_numbers(y: np.ndarray) -> TaskKind:
    """Whether numbers are classes or a quantity.

    >>> of_numbers(np.arange(100) % 10), of_numbers(np.arange(100) / 7), of_numbers(np.arange(100))
    ('classes', 'regression', 'regression')
    """
    if y.dtype.kind not in "iuf" or not len(y):
        return "classes"
    values, counts = np.unique(y, return_counts=True)
    if y.dtype.kind == "f" and not (values == np.rint(values)).all():
        return "regression" if len(values) > MOST_FRACTIONS else "classes"
    rare = int((counts == 1).sum())
    return "regression" if len(values) > MOST_WHOLE and rare > MOST_SINGLES else "classes"


def of_columns(y: np.ndarray) -> TaskKind:
    """What several columns [samples, columns] are: labels where all is 0 or 1, else numbers."""
    return "multilabel" if y.dtype.kind == "b" or bool(np.isin(y, (0, 1)).all()) else "regression"


def of_texts(cells: Sequence[str]) -> TaskKind:
    """What the cells of one label column are.

    Cells with a separator are sets of labels if labels recur: there are fewer of them than different cells.

    >>> of_texts(["a;b", "a", "b", ""]), of_texts(["cat", "dog"]), of_texts(["a|x", "b|y"])
    ('multilabel', 'classes', 'classes')
    """
    known = set(cells)
    mark = separator(known)
    if mark is not None and len(set().union(*(pieces(cell, mark) for cell in known))) < len(known):
        return "multilabel"
    numbers = _floats(cells)
    return "classes" if numbers is None else of_numbers(numbers)


def separator(cells: Iterable[str]) -> str | None:
    """The separator that stands in cells, if any."""
    every = set(cells)
    return next((mark for mark in SEPARATORS if any(mark in cell for cell in every)), None)


def pieces(cell: str, mark: str | None) -> list[str]:
    """The labels in a cell.

    >>> pieces("a; b;", ";"), pieces("", ";")
    (['a', 'b'], [])
    """
    found = cell.split(mark) if mark else [cell]
    return [piece.strip() for piece in found if piece.strip()]


def label_sets(cells: Sequence[str], names: Sequence[str] | None = None) -> tuple[np.ndarray, list[str]]:
    """Cells such as "a;b" as [samples, labels] of 0 and 1, and the labels; those of `names` if given.

    >>> label_sets(["b;a", "", "b"])
    (array([[1, 1],
           [0, 0],
           [0, 1]], dtype=uint8), ['a', 'b'])
    """
    mark, whole = separator(cells), set(names or ())
    sets = {cell: [cell] if cell in whole else pieces(cell, mark) for cell in set(cells)}
    found = sorted(set().union(*sets.values()))
    if names is not None and (strange := sorted(set(found) - set(names))):
        raise DataError(
            f"there is the label {listing(strange)}, which is not known; known are {listing(names)}"
        )
    every = list(names) if names is not None else found
    if not 1 <= len(every) <= MOST_LABELS:
        raise DataError(f"there are {len(every)} labels; from 1 to {MOST_LABELS} are possible")
    if len(cells) * len(every) > MOST_ANSWERS:
        raise DataError(
            f"{len(cells):,} samples with {len(every):,} labels are more than memory is taken for"
        )
    place = {name: number for number, name in enumerate(every)}
    y = np.zeros((len(cells), len(every)), np.uint8)
    for row, cell in enumerate(cells):
        y[row, [place[piece] for piece in sets[cell]]] = 1
    return y, every


def quantities(cells: Sequence[str], name: str) -> np.ndarray:
    """Cells as numbers [samples, 1]; one that is none is refused."""
    numbers = _floats(cells)
    if numbers is None:
        bad = next(cell for cell in cells if _floats([cell]) is None)
        what = f"holds {shown(bad, 40)!r}, which is not a number" if bad else "has empty cells"
        raise DataError(f"{name} {what}; --data.task regression needs numbers")
    return numbers[:, None]


def as_targets(y: np.ndarray, name: str) -> np.ndarray:
    """Numbers as float32 [samples, targets]."""
    if y.ndim == 1:
        y = y[:, None]
    if y.dtype.kind not in "biuf" or y.ndim != 2:
        raise DataError(f"{name} is {y.dtype} {y.shape}: numbers [samples] or [samples, targets] are needed")
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(y, np.float32)
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
        raise DataError(f"{name} has values that are missing, infinite or too large, first in sample {row}")
    return out


def as_sets(y: np.ndarray, name: str) -> np.ndarray:
    """0 and 1 as uint8 [samples, labels]."""
    if y.ndim == 1:
        y = y[:, None]
    if y.ndim != 2 or y.dtype.kind not in "biuf" or not np.isin(y, (0, 1)).all():
        raise DataError(f"{name} must be [samples, labels] of 0 and 1, or texts such as 'a;b'")
    return np.ascontiguousarray(y, np.uint8)


def strata(y: np.ndarray, task: TaskKind) -> np.ndarray:
    """A class for each sample, to split by: its own, a tenth of the first number, or its set of labels.

    >>> strata(np.array([[5.0], [1.0], [3.0], [2.0]], np.float32), "regression").tolist()
    [1, 0, 1, 0]
    """
    if task == "classes":
        return y
    if task == "regression":
        bins = max(1, min(10, len(y) // 2))
        order = np.argsort(np.argsort(y[:, 0], kind="stable"), kind="stable")
        return order * bins // max(1, len(y))
    _, sets, counts = np.unique(y, axis=0, return_inverse=True, return_counts=True)
    sets = sets.reshape(-1)
    # rare sets are one stratum, so that they can be split at all
    return np.where(counts[sets] < 5, len(counts), sets).astype(np.int64)


def note(task: TaskKind, name: str, *, numbers: int = 0, names: Sequence[str] = ()) -> str:
    """What a person is told where the task was found, not asked for."""
    if task == "regression":
        many = f" ({numbers:,} different numbers)" if numbers else ""
        return (
            f"{name} is taken for a quantity{many}: regression; --data.task classes takes numbers for classes"
        )
    return (
        f"{name} is taken for sets of {len(names)} labels ({listing(names, 6)}): multi-label; "
        "--data.task classes takes every text for one class"
    )


def _floats(cells: Sequence[str]) -> np.ndarray | None:
    """Texts as numbers; None where one of them is none, or not finite."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except (ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def names_of(y: Any, count: int, usual: str) -> list[str]:
    """The names that pandas gives columns, else numbers; of a single one the usual."""
    columns = getattr(y, "columns", None)
    if columns is not None and len(columns) == count:
        return [str(one) for one in columns]
    if count == 1:
        own = getattr(y, "name", None)
        return [own if isinstance(own, str) and own else usual]
    return [str(number) for number in range(count)]


def joined(rows: Iterable[Sequence[str]]) -> list[str]:
    """Cells of several label columns, as one text a row."""
    return [JOINT.join(row) for row in rows]


def parted(cells: Sequence[str], count: int, name: str) -> np.ndarray:
    """Back from `joined`, as numbers [samples, columns]."""
    rows = [cell.split(JOINT) for cell in cells]
    try:
        return np.array([[float(cell) for cell in row] for row in rows], np.float64).reshape(len(rows), count)
    except ValueError:
        raise DataError(
            f"{name}: several label columns hold 0 and 1, or numbers; there is something else in them"
        ) from None


def encoded(cells: Sequence[str], task: TaskKind, names: Sequence[str], name: str) -> np.ndarray:
    """The cells of data that is evaluated, for a task that is known already."""
    if len(names) > 1 and any(JOINT in cell for cell in cells):
        y = parted(cells, len(names), name)
        return as_sets(y, name) if task == "multilabel" else as_targets(y, name)
    if task == "multilabel":
        return label_sets(cells, names)[0]
    return as_targets(quantities(cells, name), name)


Parts = Mapping[str, Sequence[str]]


def settled(
    parts: Parts, asked: str, name: str, columns: Sequence[str]
) -> tuple[TaskKind, list[str], list[str]]:
    """Of the label cells by part: the task, the names of its outputs (none of classes), and notes."""
    train = parts["train"]
    if len(columns) > 1:
        y = parted(train, len(columns), name)
        task: TaskKind = of_columns(y) if asked == "auto" else _asked(asked, "several label columns")
        if task == "multilabel":
            as_sets(y, name)
        return task, list(columns), []
    task = of_texts(train) if asked == "auto" else _asked(asked)
    if task == "classes":
        return task, [], []
    if task == "regression":
        told = note(task, f"the column {columns[0]!r}", numbers=len(set(train)))
        return task, list(columns), [told] if asked == "auto" else []
    every = label_sets([cell for cells in parts.values() for cell in cells])[1]
    return task, every, [note(task, f"the column {columns[0]!r}", names=every)] if asked == "auto" else []


def _asked(asked: str, what: str = "") -> TaskKind:
    if what and asked == "classes":
        raise DataError(f"data.task is classes, but there are {what}; it must be regression or multilabel")
    if asked not in USUAL:
        raise DataError(f"data.task cannot be {asked!r}")
    return cast(TaskKind, asked)
