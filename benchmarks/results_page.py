"""The tables and plots of docs/results/default.md, from the file of runs that `benchmarks.baselines` wrote.

Prose is written by people. What stands between `<!-- table NAME -->` and `<!-- end -->` is written here, and
nothing else is touched. Plots, and a copy of the runs, go into a folder beside the page, named as the page.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import curves
from benchmarks.arms import ARMS
from benchmarks.ledger import Ledger, Run
from epicortex.errors import DataError
from epicortex.storage import atomic

#: The bars of this project: test accuracy at 10 and at 60 minutes.
BARS: Final[dict[str, dict[float, float]]] = {
    "mnist": {10: 0.995, 60: 0.996},
    "fashion-mnist": {10: 0.935, 60: 0.942},
    "svhn": {10: 0.965, 60: 0.970},
    "cifar10": {10: 0.870, 60: 0.905},
}
#: The runs behind the tables, beside the plots.
KEPT: Final = "baselines.jsonl"
_REGION: Final = re.compile(r"(<!-- table (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write(file: Path, page: Path) -> None:
    """Fill the regions of a page, and draw the plots beside it."""
    runs = Ledger(file).runs()
    if not runs:
        raise DataError(f"{file} has no runs")
    finished = [run for run in runs if run.ending == "finished"]
    pictures = {}
    for setting in _settings(finished):
        name = f"{setting.data}-{setting.minutes:g}min-{setting.cores}.svg"
        if drawn := curves.picture(setting.of(finished), str(setting)):
            pictures[name] = str(setting), drawn
    tables: dict[str, Callable[[], str]] = {
        "accuracy": lambda: accuracy(finished),
        "paired": lambda: paired(finished),
        "front": lambda: fronts(finished),
        "runs": lambda: every_run(runs),
        "plots": lambda: (
            "\n\n".join(f"![{words}]({page.stem}/{name})" for name, (words, _) in pictures.items()) + "\n"
        ),
    }

    def filled(match: re.Match[str]) -> str:
        if match["name"] not in tables:
            raise DataError(
                f"{page} has a region for a table {match['name']!r}; there are {', '.join(tables)}"
            )
        return f"{match[1]}\n{tables[match['name']]()}\n{match[3]}"

    text = _REGION.sub(filled, page.read_text("utf-8"))
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, (_, picture) in pictures.items():
        atomic.replace_text(folder / name, picture)
    atomic.replace_text(page, text)
    atomic.replace_file(folder / KEPT, [file.read_bytes()])


def accuracy(runs: Sequence[Run]) -> str:
    """For each data set and time: every arm with the mean and the range of its runs."""
    parts = []
    for setting in _settings(runs):
        bar = BARS.get(setting.data, {}).get(setting.minutes)
        wanted = f" (the bar: {100 * bar:.1f} %)" if bar else ""
        lines = []
        for arm, group in _by_arm(setting.of(runs)):
            tests = [run.figures["test"] for run in group]
            lines.append(
                [
                    arm,
                    ARMS[arm],
                    _percent(statistics.fmean(tests)),
                    ", ".join(f"{100 * test:.2f}" for test in tests),
                    _mean(group, "parameters"),
                    _mean(group, "multiplications"),
                    _mean(group, "seconds"),
                ]
            )
        heads = ["arm", "what it is", "test", "runs", "parameters", "multiplications", "seconds"]
        parts.append(f"**{setting}**{wanted}\n\n{_table(heads, lines)}")
    return "\n".join(parts)


def paired(runs: Sequence[Run]) -> str:
    """Ours less every other arm, seed by seed, in points of test accuracy."""
    lines = []
    for setting in _settings(runs):
        group = setting.of(runs)
        ours = {run.key.seed: run for run in group if run.key.arm == "ours"}
        for arm, others in _by_arm(group):
            pairs = [(ours[run.key.seed], run) for run in others if run.key.seed in ours]
            if arm == "ours" or not pairs:
                continue
            gains = [100 * (one.figures["test"] - other.figures["test"]) for one, other in pairs]
            spread = f"{statistics.stdev(gains):.2f}" if len(gains) > 1 else "–"
            each = ", ".join(f"{gain:+.2f}" for gain in gains)
            sizes = [_ratio(pairs, name) for name in ("parameters", "multiplications")]
            lines.append([str(setting), arm, f"{statistics.fmean(gains):+.2f}", spread, each, *sizes])
    heads = ["runs", "ours less", "mean", "deviation", "each seed"]
    return _table([*heads, "parameters of ours / of it", "multiplications"], lines)


def fronts(runs: Sequence[Run]) -> str:
    """All models of the runs of ours, from the smallest on."""
    lines = [
        [
            run.key.data_name,
            f"{run.key.minutes:g}",
            str(run.key.seed),
            f"{member['parameters']:,}",
            f"{member['multiplications']:,}",
            _percent(member["test"]),
        ]
        for run in _sorted(runs)
        if run.key.arm == "ours"
        for member in run.figures["front"]
    ]
    return _table(["data", "minutes", "seed", "parameters", "multiplications", "test"], lines)


def every_run(runs: Sequence[Run]) -> str:
    """Every run that was started, in the order of starting, whatever became of it."""
    lines = []
    for run in runs:
        found = run.figures if run.ending in ("finished", "replaced") else {}
        lines.append(
            [
                str(run.number),
                run.key.data_name,
                f"{run.key.minutes:g}",
                run.key.arm,
                str(run.key.seed),
                _ended(run),
                _percent(found.get("validation")),
                _whole(found.get("parameters")),
                _whole(found.get("seconds")),
                f"{run.start['load']:.1f}",
                f"{run.start['speed']:.0f}" if "speed" in run.start else "–",
                run.start["commit"],
            ]
        )
    heads = ["run", "data", "minutes", "arm", "seed", "test", "validation", "parameters", "seconds", "load"]
    return _table([*heads, "speed", "commit"], lines)


def _ended(run: Run) -> str:
    """The test figure, or why there is none; one that a later run has replaced says so."""
    if run.ending == "failed":
        return f"failed: {run.figures['reason']}"
    if run.ending == "broken off":
        return run.ending
    return _percent(run.figures["test"]) + (" (done again)" if run.ending == "replaced" else "")


@dataclass(frozen=True, slots=True)
class _Setting:
    """What runs have in common that may be compared."""

    data: str
    minutes: float
    cores: int

    def __str__(self) -> str:
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes:g} minutes"
        return f"{self.data}, {minutes}, {self.cores} {'core' if self.cores == 1 else 'cores'}"

    def of(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that are of this setting."""
        return [run for run in runs if _setting(run) == self]


def _setting(run: Run) -> _Setting:
    return _Setting(run.key.data_name, run.key.minutes, run.key.cores)


def _settings(runs: Iterable[Run]) -> list[_Setting]:
    """What there are runs of: the shorter first, data sets in the order of the bars, then by name."""
    order = list(BARS)

    def rank(one: _Setting) -> tuple[object, ...]:
        known = order.index(one.data) if one.data in order else len(order)
        return one.minutes, one.cores, known, one.data

    return sorted({_setting(run) for run in runs}, key=rank)


def _by_arm(runs: Iterable[Run]) -> list[tuple[str, list[Run]]]:
    """The runs of each arm, in the order of the arms, each by seed."""
    groups: dict[str, list[Run]] = {arm: [] for arm in ARMS}
    for run in _sorted(runs):
        groups[run.key.arm].append(run)
    return [(arm, group) for arm, group in groups.items() if group]


def _sorted(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (run.key, run.number))


def _ratio(pairs: Sequence[tuple[Run, Run]], name: str) -> str:
    ours, other = ([pair[side].figures[name] for pair in pairs] for side in (0, 1))
    return "–" if None in other else f"{sum(ours) / sum(other):.2f}"


def _mean(runs: Sequence[Run], name: str) -> str:
    values = [run.figures[name] for run in runs]
    return "–" if None in values else f"{statistics.fmean(values):,.0f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in line] for line in lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
