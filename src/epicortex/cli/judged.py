"""How `evaluate` writes a champion for numbers, or for sets of labels: for people, or as JSON or CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from epicortex.text import cell, clean, percent, plain

if TYPE_CHECKING:
    from epicortex.champion.judging import Labelling, Quantities

Row = Sequence[str]


def quantities_json(found: Quantities, worst: int) -> dict[str, Any]:
    """The evaluation as plain data; errors are in the units of the targets."""
    own = found.figures
    return {
        "format": 1,
        "task": "regression",
        "samples": own.samples,
        "r2": own.r2,
        "r2_interval": list(own.r2_interval),
        "beats_baseline": own.beats_baseline,
        "targets": [
            {
                "target": name,
                "r2": own.explained[place],
                "mean_absolute_error": own.errors[place],
                "interval": list(own.interval(place)),
                "root_mean_squared_error": own.roots[place],
                "baseline": own.baselines[place],
            }
            for place, name in enumerate(found.targets)
        ],
        "worst": [
            {
                "file": found.names[place],
                "values": found.right[place].tolist(),
                "answers": found.found[place].tolist(),
            }
            for place in found.worst()[:worst]
        ],
        "unreadable": list(found.unreadable),
    }


def quantities_rows(found: Quantities, worst: int) -> tuple[list[str], list[tuple[str, list[Row]]]]:
    """The first lines, and tables with their titles."""
    from epicortex.champion import words

    own = found.figures
    low, high = own.r2_interval
    lines = [
        f"R²           {plain(own.r2)} on {own.samples:,} samples "
        f"(95 % interval {plain(low)} to {plain(high)}, bootstrap)",
        *(f"note         {line}" for line in words.doubts(own)),
    ]
    rows: list[Row] = [
        ("target", "R²", "mean absolute error", "95 % interval", "root mean square", "always the mean")
    ]
    for place, name in enumerate(found.targets):
        start, end = map(plain, own.interval(place))
        figures = (own.errors[place], own.roots[place], own.baselines[place])
        error, root, baseline = map(plain, figures)
        rows.append((clean(name), plain(own.explained[place]), error, f"{start} to {end}", root, baseline))
    tables = [("errors, in the units of the targets", rows)]
    if worst:
        first = found.worst()[:worst]
        heads = [head for name in found.targets for head in (clean(name), "answer")]
        off: list[Row] = [("file", *heads)]
        for place in first:
            both = zip(found.right[place], found.found[place], strict=True)
            off.append((clean(found.names[place]), *(plain(one) for pair in both for one in pair)))
        one = len(first) == 1
        tables.append(
            ("the one that is furthest off" if one else f"the {len(first)} that are furthest off", off)
        )
    return lines, tables


def quantities_csv(found: Quantities) -> None:
    """A row for every sample."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    heads = [part for name in found.targets for part in (cell(name), cell(f"answer {name}"))]
    writer.writerow(["file", *heads])
    for name, right, answer in zip(found.names, found.right, found.found, strict=True):
        numbers = [f"{value:.9g}" for both in zip(right, answer, strict=True) for value in both]
        writer.writerow([cell(name), *numbers])


def labelling_json(found: Labelling, worst: int) -> dict[str, Any]:
    """The evaluation as plain data. Rates are fractions from 0 to 1."""
    own = found.figures
    rows = zip(found.labels, own.support, own.f1s(), own.recall(), own.precision(), strict=True)
    return {
        "format": 1,
        "task": "multilabel",
        "samples": own.samples,
        "f1": own.f1,
        "f1_interval": list(own.f1_interval),
        "f1_micro": own.f1_micro,
        "exact": own.exact / own.samples,
        "baseline": {"f1": own.baseline, "exact": own.common / own.samples},
        "beats_baseline": own.beats_baseline,
        "labels": [
            {"label": name, "samples": samples, "f1": f1, "recall": recall, "precision": precision}
            for name, samples, f1, recall, precision in rows
        ],
        "mistakes": [
            {
                "file": found.names[place],
                "labels": _named(found.right[place], found.labels),
                "answer": _named(found.found[place], found.labels),
            }
            for place in found.worst()[:worst]
        ],
        "unreadable": list(found.unreadable),
    }


def labelling_rows(found: Labelling, worst: int) -> tuple[list[str], list[tuple[str, list[Row]]]]:
    """The first lines, and tables with their titles."""
    from epicortex.champion import words

    own = found.figures
    first, second, third, _ = words.label_sets(own, found.labels)
    lines = [
        f"macro F1     {first.removeprefix('macro F1 ')} (bootstrap)",
        f"exact        {second}",
        f"baseline     {third}",
        *(f"note         {line}" for line in words.doubts(own)),
    ]
    rows: list[Row] = [("label", "samples", "F1", "recall", "precision", "right", "always or never")]
    columns = (own.support, own.f1s(), own.recall(), own.precision(), own.accuracies(), own.majorities())
    for name, support, f1, recall, precision, right, common in zip(found.labels, *columns, strict=True):
        rates = map(percent, (recall, precision, right, common))
        rows.append((clean(name), f"{support:,}", plain(f1), *rates))
    tables = [("label by label", rows)]
    wrong = found.worst()
    if wrong and worst:
        bad: list[Row] = [("file", "is", "taken for")]
        for place in wrong[:worst]:
            sets = (found.right[place], found.found[place])
            bad.append((clean(found.names[place]), *(_text(one, found.labels) for one in sets)))
        tables.append((surest(min(worst, len(wrong)), len(wrong)), bad))
    return lines, tables


def surest(shown: int, every: int) -> str:
    """What the list of mistakes is called.

    >>> surest(1, 1), surest(3, 3), surest(10, 33)
    ('the only mistake', 'all 3 mistakes, the surest first', 'the 10 surest mistakes, of 33')
    """
    if every == 1:
        return "the only mistake"
    return (
        f"all {every} mistakes, the surest first"
        if shown == every
        else f"the {shown} surest mistakes, of {every}"
    )


def labelling_csv(found: Labelling) -> None:
    """A row for every sample."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["file", "labels", "answer", "right", *map(cell, found.labels)])
    for name, right, answer, chances in zip(
        found.names, found.right, found.found, found.chances, strict=True
    ):
        sets = [cell(";".join(_named(one, found.labels))) for one in (right, answer)]
        same = "yes" if (right == answer).all() else "no"
        writer.writerow([cell(name), *sets, same, *(f"{chance:.6f}" for chance in chances)])


def _named(given: Any, labels: Sequence[str]) -> list[str]:
    return [name for name, one in zip(labels, given, strict=True) if one]


def _text(given: Any, labels: Sequence[str]) -> str:
    return ", ".join(map(clean, _named(given, labels))) or "none"
