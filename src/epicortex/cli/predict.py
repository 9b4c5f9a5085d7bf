"""`epicortex predict`: classify pictures with a champion; a table for people, JSON or CSV for programs.

Pictures are read as in training. Those that do not open are listed, and make the exit code 2.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli.parsing import Parser, UsageError
from epicortex.errors import DataError
from epicortex.text import clean, json_text, percent

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier

_BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class Prediction:
    """What became of one file: the probability of each class, or why there is none."""

    file: str
    probabilities: tuple[float, ...] = ()
    unreadable: str | None = None

    def ranked(self) -> list[int]:
        """The classes by their number, the likeliest first."""
        return sorted(range(len(self.probabilities)), key=lambda index: -self.probabilities[index])


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex predict RUN FILE... [--json | --csv]"
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, or a .safetensors file")
    parser.add_argument(
        "files", metavar="FILE", nargs="*", type=Path, help="pictures, or folders of pictures"
    )
    parser.add_argument("--json", action="store_true", help="print JSON with the probability of every class")
    parser.add_argument("--csv", action="store_true", help="print CSV: file, class, probability, unreadable")


def run(arguments: argparse.Namespace) -> int:
    """Classify; 2 if a file could not be read."""
    if not arguments.files:
        raise UsageError("FILE is missing: give pictures, or folders of pictures")
    if arguments.json and arguments.csv:
        raise UsageError("--json and --csv cannot be had together")
    from epicortex.champion.module import load, picture_shape

    classifier = load(arguments.run)
    picture_shape(classifier.input_shape)
    found = list(_files(arguments.files))
    write = _write_json if arguments.json else _write_csv if arguments.csv else _write_table
    unreadable = 0
    with warnings.catch_warnings():
        # Pillow only warns of what is refused here anyway.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        for one in write(predictions(classifier, found), classifier.classes, found):
            if one.unreadable is not None:
                unreadable += 1
                print(f"epicortex: {clean(one.unreadable)}", file=sys.stderr)
    return 2 if unreadable else 0


def predictions(classifier: Classifier, found: Sequence[tuple[Path, str | None]]) -> Iterator[Prediction]:
    """What each file shows, in order, a batch at a time; a file that cannot be read says why."""
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
        rows = iter(classifier.predict_proba(np.concatenate(values)) if values else ())
        for one in batch:
            yield one if one.unreadable else Prediction(one.file, tuple(map(float, next(rows))))


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, str | None]]:
    """Every file named, and every picture in every folder named; a path that gives none comes with why."""
    from epicortex.data.readers.pictures import ENDINGS

    for path in paths:
        if not path.is_dir():
            yield path, None
            continue
        pictures = [
            Path(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if Path(name).suffix.lower() in ENDINGS and not name.startswith(".")
        ]
        if not pictures:
            yield path, f"{path} holds no pictures ({', '.join(sorted(ENDINGS))})"
        yield from ((picture, None) for picture in sorted(pictures))


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
            writer.writerow([_cell(one.file), _cell(classes[best]), f"{one.probabilities[best]:.6f}", ""])
        else:
            writer.writerow([_cell(one.file), "", "", _cell(one.unreadable)])
        yield one


def _cell(text: str) -> str:
    """A text that a spreadsheet takes for a text: one that would begin a formula gets an apostrophe.

    >>> _cell("=1+1"), _cell("cat")
    ("'=1+1", 'cat')
    """
    line = clean(text)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


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
