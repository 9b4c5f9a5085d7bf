"""`epicortex predict`: what pictures or rows of tables are; a table for people, JSON or CSV for programs.

Pictures are read as in training. Those that do not open are listed, and make the exit code 2.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli import answers
from epicortex.cli.parsing import Parser, UsageError
from epicortex.errors import DataError
from epicortex.text import cell, clean, json_text, percent

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier
    from epicortex.champion.portable import Portable

_BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class Prediction:
    """What became of one file: the probability of each class, or why there is none."""

    file: str
    probabilities: tuple[float, ...] = ()
    """Those of labels, where a champion gives sets of them; the numbers, where it predicts numbers."""
    unreadable: str | None = None

    def ranked(self) -> list[int]:
        """The classes by their number, the likeliest first."""
        return sorted(range(len(self.probabilities)), key=lambda index: -self.probabilities[index])


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex predict RUN FILE... [--json | --csv]"
    parser.add_argument(
        "run", metavar="RUN", type=Path, help="the folder of a run, or a .safetensors or .onnx file"
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="pictures, folders of pictures, .csv or .parquet tables",
    )
    parser.add_argument("--json", action="store_true", help="print JSON with the probability of every class")
    parser.add_argument("--csv", action="store_true", help="print CSV: file, class, probability, unreadable")


def run(arguments: argparse.Namespace) -> int:
    """Classify; 2 if a file could not be read."""
    if not arguments.files:
        raise UsageError("FILE is missing: give pictures, folders of pictures, or tables in CSV")
    if arguments.json and arguments.csv:
        raise UsageError("--json and --csv cannot be had together")
    classifier = _loaded(arguments.run)
    shape = classifier.input_shape
    table = classifier.facts.table
    columns = shape[0] if table is None else len(table.columns)
    found = list(_tables(arguments.files, columns) if len(shape) == 1 else _files(arguments.files))
    write = _writers(classifier.facts.task)["json" if arguments.json else "csv" if arguments.csv else "table"]
    unreadable = 0
    with warnings.catch_warnings():
        # Pillow only warns of what is refused here anyway.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        for one in write(predictions(classifier, found), classifier.classes, found):
            if one.unreadable is not None:
                unreadable += 1
                print(f"epicortex: {clean(one.unreadable)}", file=sys.stderr)
    return 2 if unreadable else 0


def _writers(task: str) -> dict[str, Callable[..., Iterator[Prediction]]]:
    """How predictions of a kind are written."""
    if task == "regression":
        return {"table": answers.values_table, "csv": answers.values_csv, "json": answers.values_json}
    if task == "multilabel":
        return {"table": answers.labels_table, "csv": answers.labels_csv, "json": answers.labels_json}
    return {"table": _write_table, "csv": _write_csv, "json": _write_json}


def _loaded(path: Path) -> Classifier | Portable:
    """The champion of a run, of a model file, or of an ONNX file that was made of it."""
    if path.suffix.lower() == ".onnx":
        from epicortex.champion.portable import load_onnx

        classifier: Classifier | Portable = load_onnx(path)
    else:
        from epicortex.champion.module import load

        classifier = load(path)
    if len(classifier.input_shape) > 1:
        from epicortex.champion.module import picture_shape

        picture_shape(classifier.input_shape)
    return classifier


def predictions(
    classifier: Classifier | Portable, found: Sequence[tuple[Path, str | None]]
) -> Iterator[Prediction]:
    """What each file shows, in order, a batch at a time; a file that cannot be read says why."""
    if len(classifier.input_shape) == 1:
        for path, trouble in found:
            yield from _rows(classifier, path, trouble)
        return
    import numpy as np

    for start in range(0, len(found), _BATCH):
        values, batch = [], []
        for path, trouble in found[start : start + _BATCH]:
            try:
                if trouble is not None:
                    raise DataError(trouble)
                values.append(classifier.read(path))
                batch.append(Prediction(str(path)))
            except DataError as error:
                batch.append(Prediction(str(path), unreadable=str(error)))
        rows = iter(classifier.answer(np.concatenate(values)) if values else ())
        for one in batch:
            yield one if one.unreadable else Prediction(one.file, tuple(map(float, next(rows))))


def _rows(classifier: Classifier | Portable, path: Path, trouble: str | None) -> Iterator[Prediction]:
    """The rows of a table, each under its file and line."""
    from epicortex.champion.rows import rows_of

    try:
        if trouble is not None:
            raise DataError(trouble)
        notes: list[str] = []
        x, lines = rows_of(classifier.facts, path, classifier.input_shape[0], notes)
        for note in notes:
            print(f"epicortex: {clean(note)}", file=sys.stderr)
    except DataError as error:
        yield Prediction(str(path), unreadable=str(error))
        return
    chances = classifier.answer(x) if lines else ()
    for line, row in zip(lines, chances, strict=True):
        yield Prediction(f"{path}:{line}", tuple(map(float, row)))


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, str | None]]:
    """Every file named, and every picture in every folder named; a path that gives none comes with why."""
    from epicortex.data.readers.archive import is_archive
    from epicortex.data.readers.pictures import ENDINGS
    from epicortex.data.scanning import pictures_below

    for path in paths:
        if not path.is_dir():
            table = path.suffix.lower() in (".csv", ".parquet", ".npz")
            trouble = f"{path} is a table, but this champion takes pictures" if table else None
            if is_archive(path):
                trouble = f"{path} is an archive: unpack it and give the folder (evaluate takes archives)"
            yield path, trouble
            continue
        pictures = pictures_below(path)
        if not pictures:
            yield path, f"{path} holds no pictures ({', '.join(sorted(ENDINGS))})"
        yield from ((picture, None) for picture in pictures)


def _tables(paths: Sequence[Path], columns: int) -> Iterator[tuple[Path, str | None]]:
    for path in paths:
        known = path.suffix.lower() in (".csv", ".parquet")
        yield (
            path,
            None
            if known
            else f"{path} is no .csv or .parquet table: this champion takes {columns} columns, not pictures",
        )


def _write_table(
    found: Iterator[Prediction], classes: Sequence[str], files: Sequence[tuple[Path, str | None]]
) -> Iterator[Prediction]:
    """A line a file: its class, how sure the champion is, and what it takes for next likeliest."""
    name = max(4, *(len(clean(str(path))) for path, _ in files))
    width = max(5, *(len(clean(one)) for one in classes))
    print(f"{'file':<{name}}  {'class':<{width}}  {'sure':>8}  next")
    for one in found:
        if one.unreadable is None:
            first, second, *_ = [*one.ranked(), None]
            assert first is not None
            other = "" if second is None else f"{clean(classes[second])} {percent(one.probabilities[second])}"
            sure = percent(one.probabilities[first])
            print(f"{clean(one.file):<{name}}  {clean(classes[first]):<{width}}  {sure:>8}  {other}")
        yield one


def _write_csv(
    found: Iterator[Prediction], classes: Sequence[str], _files: Sequence[tuple[Path, str | None]]
) -> Iterator[Prediction]:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", "class", "probability", "unreadable"])
    for one in found:
        if one.unreadable is None:
            best = one.ranked()[0]
            writer.writerow([cell(one.file), cell(classes[best]), f"{one.probabilities[best]:.6f}", ""])
        else:
            writer.writerow([cell(one.file), "", "", cell(one.unreadable)])
        yield one


def _write_json(
    found: Iterator[Prediction], classes: Sequence[str], _files: Sequence[tuple[Path, str | None]]
) -> Iterator[Prediction]:
    every = list(found)
    readable = [
        {
            "file": one.file,
            "class": classes[best],
            "probability": one.probabilities[best],
            "probabilities": dict(zip(classes, one.probabilities, strict=True)),
        }
        for one in every
        if one.unreadable is None
        for best in one.ranked()[:1]
    ]
    unreadable = [{"file": one.file, "reason": one.unreadable} for one in every if one.unreadable is not None]
    story = {"format": 1, "classes": list(classes), "predictions": readable, "unreadable": unreadable}
    print(json_text(story))
    yield from every
