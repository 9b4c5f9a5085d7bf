"""Two sets of runs against each other: every measure tested, and what cannot be concluded said plainly.

Runs come from anywhere: run folders, or folders of them. One that is not finished is compared as it is, and
that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from epicortex.config.fields import shown, value_of
from epicortex.errors import StorageError
from epicortex.pages import svg
from epicortex.pages.html import page
from epicortex.pages.plots import Figure, axis
from epicortex.pages.tables import Table
from epicortex.pages.units import Unit
from epicortex.paper.execution import differences, is_finished
from epicortex.paper.results import Figures, figures
from epicortex.paper.statistics import (
    CONFIDENCE,
    RESAMPLES,
    SIGNIFICANT,
    Difference,
    cannot_tell,
    cannot_tell_together,
    difference,
    holm,
    least_p,
)
from epicortex.run.record import RunRecord, read_run
from epicortex.storage import atomic
from epicortex.text import NOTHING, count, one_line, plural

#: With so few runs an interval from drawing them anew is too narrow.
_FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is compared."""

    name: str
    get: Callable[[Figures], float | None]
    fitness: bool


QUANTITIES: Final = (
    Quantity("highest fitness", lambda run: run.last("highest_fitness"), True),
    Quantity("average fitness", lambda run: run.last("average_fitness"), True),
    Quantity("offspring fitness", lambda run: run.last("offspring_fitness"), True),
    Quantity("test fitness", lambda run: run.test, True),
    Quantity("mean parameters", lambda run: run.last("mean_parameters"), False),
    Quantity("champion's parameters", lambda run: run.champion_parameters, False),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity in both sets."""

    quantity: Quantity
    values: tuple[list[float], list[float]]
    found: Difference | None
    """None where a set has no figure."""
    adjusted: float | None
    """The p that takes into account how many quantities are tested (Holm)."""
    unit: Unit
    """How its fitness is written."""

    def text(self, value: float | None) -> str:
        """A value in words."""
        return self.unit.text(value) if self.quantity.fitness else count(value)

    def change(self, value: float | None) -> str:
        """A difference in words."""
        if self.quantity.fitness or value is None:
            return self.unit.change(value)
        return f"{round(value):+,}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of runs."""

    folders: tuple[list[Path], list[Path]]
    compared: tuple[Compared, ...]
    notes: tuple[str, ...]
    """What cannot be concluded, and in what the sets differ."""


def compare(first: Sequence[Path], second: Sequence[Path]) -> Comparison:
    """Compare the runs in some folders with those in others."""
    sets = _records(first), _records(second)
    known = {run.info.id: run.path for run in sets[0]}
    for run in sets[1]:
        if run.info.id in known:
            raise StorageError(
                f"{run.path} is in both sets, as {known[run.info.id]}; a run cannot be compared with itself"
            )
    unit = Unit.of(sets[0][0].config.training.fitness)
    read = [[figures(run) for run in runs] for runs in sets]
    pairs = [
        [[value for run in runs if (value := quantity.get(run)) is not None] for runs in read]
        for quantity in QUANTITIES
    ]
    tested = [difference(one, other) for one, other in pairs]
    adjusted = iter(holm([found.p for found in tested if found]))
    compared = tuple(
        Compared(quantity, (one, other), found, next(adjusted) if found else None, unit)
        for quantity, (one, other), found in zip(QUANTITIES, pairs, tested, strict=True)
    )
    folders = [run.path for run in sets[0]], [run.path for run in sets[1]]
    return Comparison(folders, compared, tuple(_notes(sets, compared)))


def table(comparison: Comparison) -> Table:
    """All quantities."""
    rows: list[tuple[Any, ...]] = []
    for one in comparison.compared:
        quantity, found = one.quantity, one.found
        if found is None:
            rows.append((quantity.name, *(NOTHING,) * 8))
            continue
        interval = NOTHING
        if found.low is not None:
            interval = f"{one.change(found.low)} to {one.change(found.high)}"
        rows.append(
            (
                quantity.name,
                one.text(found.first.mean),
                one.text(found.second.mean),
                one.change(found.difference),
                interval,
                f"{found.u:g}",
                f"{found.p:.2g}",
                f"{one.adjusted:.2g}",
                f"{found.a:.2f} {found.effect}",
            )
        )
    n, m = (plural(len(folders), "run") for folders in comparison.folders)
    head = ("measure", "A", "B", "A − B", f"{CONFIDENCE:.0%} interval", "U", "p", "p (Holm)", "effect")
    return Table(f"A: {n}; B: {m}; means, of the last generation or of the champion", head, rows)


def plots(comparison: Comparison) -> dict[str, Figure]:
    """Every run as a dot, every mean as a line, for fitness and for parameters."""
    drawn = {}
    for name, fitness in (("fitness", True), ("parameters", False)):
        shown_here = [one for one in comparison.compared if one.quantity.fitness == fitness and one.found]
        if shown_here:
            percent = fitness and shown_here[0].unit.percent
            drawn[name] = _dots(shown_here, "%" if percent else name, 100 if percent else 1)
    return drawn


def write(comparison: Comparison, path: Path) -> list[Path]:
    """Write the page, or by its ending the plots as SVG: one file for fitness, one for parameters."""
    if path.suffix == ".svg":
        written = []
        for name, figure in plots(comparison).items():
            target = path if name == "fitness" else path.with_stem(f"{path.stem}-{name}")
            atomic.replace_text(target, svg.picture(figure, f"A and B: {name}"))
            written.append(target)
        return written
    drawn = plots(comparison)
    content = {
        "title": "Two sets of runs: EpiCortex",
        "heading": "Two sets of runs",
        "contents": [("summary", "What can be said"), ("plots", "Every run"), ("sets", "The sets")],
        "notes": list(comparison.notes),
        "table": table(comparison),
        "plots": list(drawn),
        "sets": [("A", comparison.folders[0]), ("B", comparison.folders[1])],
        "values": _values(comparison),
        "about": ABOUT,
    }
    atomic.replace_text(path, page("epicortex.paper", "comparison.html", content, drawn))
    return [path]


ABOUT: Final = (
    "U and p are those of the two-sided Mann-Whitney test, exact wherever that can be computed; p (Holm) "
    "takes into account that several measures are tested. The interval is a bootstrap of the difference of "
    f"means ({RESAMPLES:,} times, seeded). The effect is Vargha and Delaney's A, the chance that a run of A "
    "has the higher figure: 0.5 is none, 0.56 small, 0.64 medium, 0.71 large, and likewise downwards. "
    "Offspring fitness is that before any training; test fitness and champion's parameters are those of the "
    "run's champion, all else is of the last generation, means of the last in which all were trained. A run "
    "counts once, also where a set has copies of it."
)


def _records(paths: Iterable[Path]) -> list[RunRecord]:
    """The runs, each once, however often and by whatever path it is named."""
    runs: dict[str, RunRecord] = {}
    for run in (read_run(folder) for path in paths for folder in _folders(path)):
        if not run.history:
            raise StorageError(f"{run.path} has no complete generation yet; leave it out, or resume it")
        runs.setdefault(run.info.id, run)
    return list(runs.values())


def _folders(path: Path) -> list[Path]:
    """A run folder, or the run folders directly in a folder."""
    if (path / "config.toml").exists() or not path.is_dir():
        return [path]
    inside = sorted(file.parent for file in path.glob("*/config.toml"))
    if not inside:
        raise StorageError(f"{path} is not a run folder, and there is none in it")
    return inside


def _notes(sets: tuple[list[RunRecord], list[RunRecord]], compared: Sequence[Compared]) -> Iterator[str]:
    n, m = map(len, sets)
    tested = sum(one.found is not None for one in compared)
    if sentence := cannot_tell(n, m):
        yield sentence
    elif not any(one.adjusted is not None and one.adjusted < SIGNIFICANT for one in compared):
        yield (
            f"No difference is significant at {SIGNIFICANT:g} when all measures are taken into account. That "
            f"does not show that the sets are equal: with {n} and {m} runs only large differences show."
        )
        if sentence := cannot_tell_together(tested, least_p(n, m)):
            yield sentence
    for one in compared:
        own, others = map(len, one.values)
        if (own, others) != (n, m):
            yield f"Not every run has a figure for {one.quantity.name}: there are {own} and {others}."
    if min(n, m) < 2:
        yield "A single run has no deviation, and no interval can be given."
    elif min(n, m) < _FEW:
        yield f"With fewer than {_FEW} runs a bootstrap interval is too narrow: the doubt is larger."
    unfinished = [str(run.path) for runs in sets for run in runs if not is_finished(run)]
    if unfinished:
        yield f"Not finished, and compared as they are: {one_line(', '.join(unfinished), 400)}."
    for name, runs in zip("AB", sets, strict=True):
        if mixed := sorted({name for run in runs[1:] for name in _settings(run, runs[0])}):
            yield f"The runs of {name} differ in more than their seeds: {', '.join(mixed)}."
    apart = _settings(sets[0][0], sets[1][0])
    values = (
        f"{name} ({', '.join(shown(value_of(runs[0].config, name)) for runs in sets)})" for name in apart
    )
    yield f"A and B differ in: {', '.join(values)}." if apart else "A and B have the same settings."
    every = [run for runs in sets for run in runs]
    if any(not _settings(one, other) and _seed(one) == _seed(other) for one, other in combinations(every, 2)):
        yield "Some runs have equal settings and seeds: they are the same run done twice, and count as two."


def _seed(run: RunRecord) -> int:
    return run.config.evolution.seed


def _settings(one: RunRecord, other: RunRecord) -> list[str]:
    return [name for name in differences(one.config, other.config) if name != "evolution.seed"]


def _dots(compared: Sequence[Compared], title: str, factor: float) -> Figure:
    traces: list[Figure] = []
    for place, (name, role) in enumerate((("A", "var(--mean)"), ("B", "var(--best)"))):
        x, y = [], []
        for column, one in enumerate(compared):
            x += [round(column + 0.3 * place - 0.15, 2)] * len(one.values[place])
            y += [round(factor * value, 6) for value in one.values[place]]
        marker = {"color": role, "size": 9, "opacity": 0.8}
        hover = f"{name}: %{{y:,.4~f}}<extra></extra>"
        traces.append(
            {"x": x, "y": y, "name": name, "mode": "markers", "marker": marker, "hovertemplate": hover}
        )
        for column, one in enumerate(compared):
            middle = column + 0.3 * place - 0.15
            mean = round(factor * sum(one.values[place]) / len(one.values[place]), 6)
            line = {"color": role, "width": 2.5}
            ends = [round(middle - 0.1, 2), round(middle + 0.1, 2)]
            traces.append(
                {
                    **{"x": ends, "y": [mean, mean], "mode": "lines", "line": line},
                    **{"showlegend": False, "hoverinfo": "skip"},
                }
            )
    ticks = {
        "tickvals": list(range(len(compared))),
        "ticktext": [one.quantity.name for one in compared],
        "range": [-0.6, len(compared) - 0.4],
    }
    return {
        "data": traces,
        "layout": {"hovermode": "closest", "xaxis": {**axis(""), **ticks}, "yaxis": axis(title)},
    }


def _values(comparison: Comparison) -> Table:
    """Behind the plots: the figures of every run."""
    rows = [
        (one.quantity.name, name, ", ".join(one.text(value) for value in values))
        for one in comparison.compared
        for name, values in zip("AB", one.values, strict=True)
    ]
    return Table("The figures of every run", ("measure", "set", "figures"), rows, frozenset({0, 1, 2}))
