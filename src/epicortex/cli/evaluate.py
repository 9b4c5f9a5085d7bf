"""`epicortex evaluate`: how a champion does on labelled data; for people, or as JSON or CSV for programs."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.cli import judged
from epicortex.cli.parsing import Parser, UsageError
from epicortex.text import NOTHING, apart, cell, clean, json_text, percent, shell

if TYPE_CHECKING:
    from epicortex.champion.evaluating import Evaluation

_PARTS: Final = ("auto", "train", "val", "test", "all")
_WORST: Final = 10
#: Of more classes the matrix is too wide to be read.
_MATRIX: Final = 20


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex evaluate RUN DATA [--json | --csv]"
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, .safetensors or .onnx")
    parser.add_argument("data", metavar="DATA", help="labelled data: whatever evolve takes")
    parser.add_argument("--part", default="auto", help="train, val, test or all (test, where there is one)")
    parser.add_argument(
        "--worst", metavar="N", type=int, default=_WORST, help="how many mistakes to list (10)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--csv", action="store_true", help="print CSV: a row for every sample")
    parser.add_argument("--data-dir", metavar="FOLDER", type=Path, help="where the built-in data sets are")
    for name in ("label-column", "image-column"):
        parser.add_argument(
            f"--data.{name}", dest=name.replace("-", "_"), metavar="NAME", help="as for evolve"
        )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate; 2 if a file could not be read."""
    if arguments.json and arguments.csv:
        raise UsageError("--json and --csv cannot be had together")
    if arguments.part not in _PARTS:
        raise UsageError(f"--part is {arguments.part!r}; it must be one of {', '.join(_PARTS)}")
    if arguments.worst < 0:
        raise UsageError(f"--worst is {arguments.worst}; it must be at least 0")
    from epicortex.champion.evaluating import evaluate
    from epicortex.champion.judging import Labelling, Quantities
    from epicortex.data import DataOptions

    options = DataOptions(label_column=arguments.label_column, image_column=arguments.image_column)
    found = evaluate(
        arguments.run, arguments.data, part=arguments.part, options=options, data_dir=arguments.data_dir
    )
    if _has_learnt(arguments.run, arguments.data, len(_names(found))):
        print(
            "epicortex: the champion has learnt from most of these samples, so its figures here flatter; "
            f"{shell(['epicortex', 'show', str(arguments.run)])} has those of its test set",
            file=sys.stderr,
        )
    how = "json" if arguments.json else "csv" if arguments.csv else "text"
    if isinstance(found, Quantities):
        own = judged.quantities_json, judged.quantities_csv, judged.quantities_rows
        _write(found, how, arguments.worst, *own)
    elif isinstance(found, Labelling):
        _write(
            found, how, arguments.worst, judged.labelling_json, judged.labelling_csv, judged.labelling_rows
        )
    elif how == "json":
        print(json_text(as_json(found, arguments.worst)))
    elif how == "csv":
        _write_csv(found)
    else:
        for line in _lines(found, arguments.worst):
            print(line)
    for reason in found.unreadable:
        print(f"epicortex: {clean(reason)}", file=sys.stderr)
    return 2 if found.unreadable else 0


def _names(found: Any) -> Sequence[Any]:
    names: Sequence[Any] = found.answers if hasattr(found, "answers") else found.names
    return names


def _has_learnt(run: Path, data: str, samples: int) -> bool:
    """Whether these are the samples of the run itself, and not only those of its test set."""
    from epicortex.run.record import load_champion, read_run

    if not (run / "config.toml").is_file():
        return False
    source, facts = read_run(run).config.data.source, load_champion(run).facts
    if source is None or Path(source).expanduser().resolve() != Path(data).expanduser().resolve():
        return False
    test = facts.test or facts.regression or facts.labels
    return test is None or samples > test.samples


def _write(found: Any, how: str, worst: int, plain: Any, rows: Any, told: Any) -> None:
    """Print what is no classes."""
    if how == "json":
        print(json_text(plain(found, worst)))
    elif how == "csv":
        rows(found)
    else:
        lines, tables = told(found, worst)
        for title, table in tables:
            lines += ["", title, *_aligned(table)]
        print("\n".join(lines))


def as_json(found: Evaluation, worst: int) -> dict[str, Any]:
    """The evaluation as plain data. Rates are fractions from 0 to 1."""
    tested = found.tested
    rows = zip(found.classes, tested.support, tested.recall(), tested.precision(), strict=True)
    return {
        "format": 1,
        "samples": tested.samples,
        "accuracy": tested.accuracy,
        "interval": list(tested.interval),
        "baseline": {"class": found.classes[tested.majority], "accuracy": tested.baseline},
        "beats_baseline": tested.beats_baseline,
        "classes": [
            {"class": name, "samples": samples, "recall": recall, "precision": precision}
            for name, samples, recall, precision in rows
        ],
        "confusion": found.confusion.tolist(),
        "calibration": {
            "error": found.calibration,
            "error_without_temperature": found.untempered,
            "bins": [{"samples": one.samples, "sure": one.sure, "right": one.right} for one in found.bins],
        },
        "mistakes": [
            {
                "file": one.name,
                "class": found.classes[one.label],
                "answer": found.classes[one.answer],
                "probability": one.sure,
                "probability_of_class": one.label_chance,
            }
            for one in found.mistakes()[:worst]
        ],
        "unreadable": list(found.unreadable),
    }


def _lines(found: Evaluation, worst: int) -> list[str]:
    from epicortex.champion import words

    tested = found.tested
    low, high = tested.interval
    lines = [
        f"accuracy     {percent(tested.accuracy)} of {tested.samples:,} samples "
        f"(95 % interval {percent(low)} to {percent(high)})",
        f"baseline     {percent(tested.baseline)}, always answering {clean(found.classes[tested.majority])}",
        f"calibration  {percent(_sure(found))} sure on average, {percent(tested.accuracy)} right; "
        f"calibration error {percent(found.calibration)}{_untempered(found)}",
        *(f"note         {line}" for line in words.warnings(tested, found.classes)),
        "",
        *_aligned(_class_rows(found)),
    ]
    if len(found.classes) <= _MATRIX:
        lines += ["", "what each class (row) was taken for (column)", *_aligned(_matrix_rows(found))]
    mistakes = found.mistakes()
    if mistakes and worst:
        title = judged.surest(min(worst, len(mistakes)), len(mistakes))
        lines += ["", title, *_aligned(_mistake_rows(found, worst))]
    return lines


def _untempered(found: Evaluation) -> str:
    return "" if found.untempered is None else f" ({percent(found.untempered)} without its temperature)"


def _sure(found: Evaluation) -> float:
    return sum(one.sure for one in found.answers) / len(found.answers)


def _class_rows(found: Evaluation) -> list[Sequence[str]]:
    tested = found.tested
    rows: list[Sequence[str]] = [("class", "samples", "recall", "precision", "mostly taken for")]
    for place, name in enumerate(found.classes):
        others = found.confusion[place].copy()
        others[place] = 0
        worst = int(others.argmax())
        wrong = f"{clean(found.classes[worst])} ({others[worst]})" if others[worst] else ""
        recall, precision = tested.recall()[place], tested.precision()[place]
        rows.append((clean(name), f"{tested.support[place]:,}", percent(recall), percent(precision), wrong))
    return rows


def _matrix_rows(found: Evaluation) -> list[Sequence[str]]:
    names = [_short(name) for name in apart(found.classes)]
    rows: list[Sequence[str]] = [("", *names)]
    for name, row in zip(names, found.confusion.tolist(), strict=True):
        rows.append((name, *(str(value) if value else NOTHING for value in row)))
    return rows


def _mistake_rows(found: Evaluation, worst: int) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("file", "is", "taken for", "sure")]
    for one in found.mistakes()[:worst]:
        label, answer = clean(found.classes[one.label]), clean(found.classes[one.answer])
        rows.append((clean(one.name), label, answer, percent(one.sure)))
    return rows


def _short(name: str, most: int = 12) -> str:
    text = clean(name)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as columns of one width each; what looks like a number stands to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    right = [all(_number(row[place]) for row in rows[1:]) for place in range(len(rows[0]))]
    return [
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _number(text: str) -> bool:
    return text.removeprefix("-")[:1].isdigit() or text == NOTHING


def _write_csv(found: Evaluation) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", "class", "answer", "right", "probability", "probability_of_class"])
    for one in found.answers:
        label, answer = found.classes[one.label], found.classes[one.answer]
        right = "yes" if one.label == one.answer else "no"
        chances = (f"{one.sure:.6f}", f"{one.label_chance:.6f}")
        writer.writerow([cell(one.name), cell(label), cell(answer), right, *chances])
