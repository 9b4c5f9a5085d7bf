"""How a run is watched: live in a terminal, a line a generation elsewhere, or not at all.

A display is told what happens and shows it; it decides nothing. Notes and warnings go to standard error, so
that they reach a person whatever becomes of the output.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from epicortex.cli.draw import Curve, plot
from epicortex.measures import figure, is_error, is_percent
from epicortex.text import clean, count, duration, plural

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

    from epicortex.ecosystem.state import Counts, Tally

#: Offspring, mean, best: the best is drawn last, over the others.
_COLOURS: Final = ("magenta", "cyan", "green")
_PLOT_HEIGHT: Final = 9
_LOW_TERMINAL: Final = 22
_RECENT: Final = 5
#: The part of the first generation after which its pace tells something.
_ENOUGH: Final = 0.2


class Point(NamedTuple):
    """The fitness in a generation: what the paper plots."""

    best: float | None
    mean: float | None
    offspring: float | None

    @classmethod
    def of(cls, counts: Counts) -> Point:
        """The figures of one generation."""
        return cls(counts.highest_fitness, counts.average_fitness, counts.offspring_fitness)


@dataclass(slots=True)
class Watch:
    """What is known of a run while it goes on."""

    data: str
    folder: str
    generations: int
    minutes: float | None = None
    """The time budget left when it began."""
    planned: bool = False
    """Whether all of the minutes will be used."""
    unit: str = "accuracy"
    """What fitness is, by its name."""
    phase: str = ""
    """The part of a planned run that it is in."""
    points: list[Point] = field(default_factory=list)
    """The fitness of every complete generation, those before a resume too."""
    last: Tally | None = None
    """The last complete generation that was watched."""
    done: int = 0
    """Networks of this generation that are back."""
    total: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Why networks failed, over all generations watched."""
    failures_now: Counter[str] = field(default_factory=Counter)
    """The same, of the generation that is being run."""
    reading: str = "reading the data"
    """What is being read before the run begins."""
    loading: bool = False
    """Whether the run, or what there is of it, is still being read."""
    notice: str = ""
    over: bool = False
    begun: float = field(default_factory=time.monotonic)
    replayed: int = 0
    """How many networks of the generation that is being run were back before, when the run was stopped."""
    seconds: list[float] = field(default_factory=list)
    """How long each generation took, of those watched; what of one was replayed is made up for."""
    whole: Callable[[], str] | None = None
    """What is to be said of several runs that this is one of."""

    def figure(self, fitness: float | None) -> str:
        """A fitness in words."""
        return figure(self.unit, fitness)

    @property
    def generation(self) -> int:
        """The generation that is being run, or the last one."""
        return min(len(self.points) + 1, self.generations)

    @property
    def where(self) -> str:
        """How far the run has come, in words."""
        if self.loading:
            return "getting ready"
        if self.planned:
            return f"{self.phase or 'measuring'}, generation {len(self.points) + 1}"
        return f"generation {self.generation} of {self.generations}"

    @property
    def best(self) -> float | None:
        """The highest fitness of any generation; of a planned run that of the last."""
        known = [point.best for point in self.points if point.best is not None]
        return known[-1] if self.planned and known else max(known, default=None)

    def left(self) -> float | None:
        """An estimate of the seconds left; None before there is anything to go by."""
        share = self.done / self.total if self.total else 0.0
        trained = (self.done - self.replayed) / self.total if self.total else 0.0
        elapsed = time.monotonic() - self.begun
        if self.planned and self.minutes is not None:
            return max(0.0, 60 * self.minutes - elapsed)
        if self.seconds:
            recent = self.seconds[-_RECENT:]
            pace = sum(recent) / len(recent)
        elif trained >= _ENOUGH:
            pace = elapsed / trained
        else:
            return None
        estimate = max(0.0, self.generations - len(self.points) - share) * pace
        return estimate if self.minutes is None else min(estimate, max(0.0, 60 * self.minutes - elapsed))


class Display:
    """Shows nothing but notes; what `--quiet` asks for. The others build on it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the display."""

    def reading(self, what: str, done: int, total: int) -> None:
        """Data is being read."""
        part = f", {done:,} of {total:,}" if total else ""
        self.watch.reading = f"{clean(what)}{part}"

    def phase(self, name: str) -> None:
        """A generation of a planned run begins."""
        self.watch.phase = name

    def progress(self, done: int, total: int, failed: str | None = None) -> None:
        """A network is back; `failed` says why it failed."""
        if not self.watch.done:
            self.watch.replayed = done - 1
        self.watch.done, self.watch.total = done, total
        if failed:
            self.watch.failures[clean(failed)] += 1
            self.watch.failures_now[clean(failed)] += 1

    def generation(self, tally: Tally, seconds: float) -> None:
        """A generation is complete."""
        self.watch.points.append(Point.of(tally))
        self.watch.last = tally
        if trained := self.watch.done - self.watch.replayed:
            self.watch.seconds.append(seconds * self.watch.done / trained)
        self.watch.done = self.watch.total = self.watch.replayed = 0
        self.watch.failures_now.clear()

    def note(self, text: str) -> None:
        """Something a person should know."""
        print(f"epicortex: {clean(text)}", file=sys.stderr, flush=True)

    def notice(self, text: str) -> None:
        """What is going on besides, such as that the run is about to stop."""
        self.watch.notice = text


class PlainDisplay(Display):
    """A line a generation, for logs."""

    def generation(self, tally: Tally, seconds: float) -> None:
        """Print the generation's line."""
        failed = f"{tally.failed} failed ({reasons(self.watch.failures_now)})"
        super().generation(tally, seconds)
        watch = self.watch
        whole = f"generation {tally.generation:>{len(str(watch.generations))}}/{watch.generations}"
        left = watch.planned or tally.generation < watch.generations
        parts = [
            f"{watch.phase} {tally.generation:>3}" if watch.planned else whole,
            f"best {watch.figure(tally.highest_fitness)}",
            f"mean {watch.figure(tally.average_fitness)}",
            *([f"offspring {watch.figure(tally.offspring_fitness)}"] if not watch.planned else []),
            plural(tally.networks, "network"),
            *([plural(tally.species, "species", "species")] if tally.species else []),
            *([failed] if tally.failed else []),
            duration(seconds),
            *([f"{duration(watch.left())} left"] if left else []),
            *([watch.whole()] if watch.whole else []),
        ]
        print("  ".join(parts), flush=True)

    def notice(self, text: str) -> None:
        """Write it past all buffers: a signal may come in the middle of a print."""
        super().notice(text)
        with suppress(OSError):
            os.write(2, f"epicortex: {clean(text)}\n".encode())


def plain_console() -> Console:
    """A console that prints texts as they are, and leaves a reader who went away to `main`."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Plain(highlight=False, markup=False, emoji=False)


class LiveDisplay(Display):
    """Redrawn in place, several times a second."""

    def __init__(self, watch: Watch) -> None:
        from rich.live import Live

        super().__init__(watch)
        self.console = plain_console()
        # Standard output stays ours: a library that prints does so above the display.
        self._live = Live(_View(watch), console=self.console, refresh_per_second=4, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last picture on the screen."""
        self.watch.over = True
        self._live.__exit__(kind, error, trace)

    def note(self, text: str) -> None:
        """Print it above the display."""
        self.console.print(f"epicortex: {clean(text)}")


def reasons(failures: Counter[str], most: int = 3) -> str:
    """Why networks failed, the most frequent first.

    >>> reasons(Counter({"NaN in the loss": 2, "out of memory": 1}))
    '2 × NaN in the loss, 1 × out of memory'
    """
    parts = [f"{number} × {reason}" for reason, number in failures.most_common(most)]
    if len(failures) > most:
        parts.append(f"{len(failures) - most} other reasons")
    return ", ".join(parts)


def fitness_plot(points: Sequence[Point], *, width: int, height: int, unit: str = "accuracy") -> Text:
    """The curves of a run, as text with a little colour."""
    from rich.text import Text

    curves = []
    for name in ("offspring", "mean", "best"):
        values = [getattr(point, name) for point in points]
        last = next((value for value in reversed(values) if value is not None), None)
        if is_error(unit):
            values = [None if value is None else -value for value in values]
        curves.append(Curve(values, f"{name} {figure(unit, last)}"))
    text = Text(no_wrap=True)
    step = 0.01 if is_percent(unit) else 1.0
    for number, line in enumerate(plot(curves, width=width, height=height, unit=step)):
        if number:
            text.append("\n")
        for piece, owner in line:
            text.append(piece, style="" if owner is None else _COLOURS[owner])
    return text


class _View:
    """The live picture of a watch."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        watch, width = self.watch, min(options.max_width, 100)
        last = watch.last
        yield Text(
            f"EpiCortex · {watch.data} · {watch.folder}", style="bold", no_wrap=True, overflow="ellipsis"
        )
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            watch.where,
            ProgressBar(total=max(1, watch.total), completed=watch.done, width=max(10, width - 56)),
            f"{watch.done} of {watch.total} networks" if watch.total else "",
        )
        yield bar
        rows = Table.grid(padding=(0, 2))
        if last is not None:
            rows.add_row("best", _best(watch, last))
            rows.add_row("mean", watch.figure(last.average_fitness))
            if not watch.planned:
                before = " before training" if watch.unit != "reward" else ""
                rows.add_row("offspring", f"{watch.figure(last.offspring_fitness)}{before}")
            rows.add_row("networks", _networks(last))
        rows.add_row("time", _time(watch))
        if watch.whole:
            rows.add_row("all runs", watch.whole())
        if watch.failures:
            rows.add_row("failed", Text(reasons(watch.failures), style="yellow"))
        yield rows
        if len(watch.points) > 1 and console.size.height >= _LOW_TERMINAL:
            yield fitness_plot(watch.points, width=width - 1, height=_PLOT_HEIGHT, unit=watch.unit)
        if not watch.over:
            yield (
                Text(watch.notice, style="bold yellow") if watch.notice else Text(_doing(watch), style="dim")
            )


def _doing(watch: Watch) -> str:
    if not watch.total and watch.last is None:
        return watch.reading
    if not watch.done and watch.last is None:
        return "starting the workers"
    return "Ctrl-C stops after a checkpoint"


def _best(watch: Watch, last: Tally) -> str:
    now = (
        f", {watch.figure(last.highest_fitness)} in this generation"
        if last.highest_fitness != watch.best
        else ""
    )
    return f"{watch.figure(watch.best)}{now} ({count(last.champion_parameters)} parameters)"


def _networks(last: Tally) -> str:
    parts = [count(last.networks)]
    if last.species:
        parts.append(f"in {plural(last.species, 'species', 'species')}")
    parts.append(f"· {last.offspring} born, {last.culled} culled, {last.mutations} mutated")
    return " ".join(parts)


def _time(watch: Watch) -> str:
    spent = duration(time.monotonic() - watch.begun)
    return spent if watch.over else f"{spent}, about {duration(watch.left())} left"
