"""How `predict` writes numbers and sets of labels: a table for people, JSON or CSV for programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex.text import NOTHING, cell, clean, json_text, percent, plain

if TYPE_CHECKING:
    from epicortex.cli.predict import Prediction

Files = Sequence[tuple[Path, str | None]]


def values_table(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """A line a file: its numbers."""
    width = max(4, *(len(clean(str(path))) for path, _ in files)) + 6
    heads = [clean(name) for name in names]
    print(f"{'file':<{width}}" + "".join(f"  {head:>{max(10, len(head))}}" for head in heads))
    for one in found:
        if one.unreadable is None:
            row = zip(heads, one.probabilities, strict=True)
            print(
                f"{clean(one.file):<{width}}"
                + "".join(f"  {plain(value):>{max(10, len(head))}}" for head, value in row)
            )
        yield one


def values_csv(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """A column for each number."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", *map(cell, names), "unreadable"])
    for one in found:
        numbers = [f"{value:.9g}" for value in one.probabilities] or [""] * len(names)
        writer.writerow([cell(one.file), *numbers, cell(one.unreadable or "")])
        yield one


def values_json(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """The numbers by their names."""
    every = list(found)
    rows = [
        {"file": one.file, "values": dict(zip(names, one.probabilities, strict=True))}
        for one in every
        if one.unreadable is None
    ]
    _print("regression", "targets", names, rows, every)
    yield from every


def labels_table(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """A line a file: its labels, the likeliest first, and the likeliest that it does not get."""
    from epicortex.champion.judging import given_labels

    width = max(4, *(len(clean(str(path))) for path, _ in files)) + 6
    print(f"{'file':<{width}}  labels")
    for one in found:
        if one.unreadable is None:
            chances = dict(zip(names, one.probabilities, strict=True))
            given = given_labels(one.probabilities, names)
            text = ", ".join(f"{clean(name)} {percent(chances[name])}" for name in given) or NOTHING
            print(f"{clean(one.file):<{width}}  {text}")
        yield one


def labels_csv(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """The labels with semicolons between them, and a column for the probability of each."""
    from epicortex.champion.judging import given_labels

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", "labels", *map(cell, names), "unreadable"])
    for one in found:
        if one.unreadable is None:
            given = ";".join(given_labels(one.probabilities, names))
            row = [cell(given), *(f"{chance:.6f}" for chance in one.probabilities), ""]
        else:
            row = ["", *[""] * len(names), cell(one.unreadable)]
        writer.writerow([cell(one.file), *row])
        yield one


def labels_json(found: Iterator[Prediction], names: Sequence[str], files: Files) -> Iterator[Prediction]:
    """The labels, and the probability of each."""
    from epicortex.champion.judging import given_labels

    every = list(found)
    rows = [
        {
            "file": one.file,
            "labels": given_labels(one.probabilities, names),
            "probabilities": dict(zip(names, one.probabilities, strict=True)),
        }
        for one in every
        if one.unreadable is None
    ]
    _print("multilabel", "labels", names, rows, every)
    yield from every


def _print(
    task: str, what: str, names: Sequence[str], rows: list[dict[str, Any]], every: Sequence[Prediction]
) -> None:
    bad = [{"file": one.file, "reason": one.unreadable} for one in every if one.unreadable is not None]
    print(json_text({"format": 1, "task": task, what: list(names), "predictions": rows, "unreadable": bad}))
