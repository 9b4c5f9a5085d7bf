"""What the commands that run share: a display, signals that stop a run cleanly, and the last words."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from epicortex.cli.display import Display, LiveDisplay, PlainDisplay, Point, Watch
from epicortex.text import clean, duration, shell

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.ecosystem.history import History
    from epicortex.ecosystem.plan import Plan
    from epicortex.ecosystem.state import Counts, EcosystemState, Tally
    from epicortex.run.lifecycle import Result, Watcher

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: What to do with a finished run, in this order; those commands that are not there are left out.
_NEXT: Final = (
    ("show", "epicortex show {run}"),
    ("report", "epicortex report {run}"),
    ("play", "epicortex play {run}"),
    ("export", "epicortex export {run} --to champion.onnx"),
)
#: What only a classifier can be used for.
_CLASSIFIERS: Final = frozenset({"export"})
_TASKS: Final = frozenset({"play"})


def watch(
    arguments: argparse.Namespace,
    *,
    data: str,
    folder: Path,
    config: Config,
    go: Callable[[Watcher, threading.Event], Result],
) -> int:
    """Run `go` under a display until it ends or a signal stops it, say how it ended, give the exit code."""
    from epicortex.run.consent import resume_command

    about = Watch(
        data=clean(data),
        folder=clean(str(folder)),
        generations=config.evolution.generations,
        planned=config.evolution.budget == "planned",
        minutes=config.evolution.minutes,
        unit=config.fitness_name,
        loading=True,
    )
    display = displayed(about, quiet=arguments.quiet)
    with signals() as stopper, display:
        stopper.display = display
        result = go(watcher(display, config), stopper.stop)
    if result.interrupted:
        return _interrupted(resume_command(folder, config, arguments.plugin), stopper.received)
    _conclude(result, folder, quiet=arguments.quiet)
    return 0


def displayed(about: Watch, *, quiet: bool) -> Display:
    """The display that suits the output."""
    if quiet:
        return Display(about)
    # A terminal that cannot move its cursor gets lines.
    live = sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return LiveDisplay(about) if live else PlainDisplay(about)


def watcher(display: Display, config: Config) -> Watcher:
    """What tells a display how a run with these settings goes."""
    from epicortex.ecosystem import budget
    from epicortex.ecosystem.history import total_seconds
    from epicortex.run.lifecycle import Watcher

    counted: list[Counts] = []

    def expect(networks: int) -> None:
        """A budget of trainings says how many generations there will be, if there are no more networks."""
        if config.evolution.trainings is not None:
            left = config.evolution.trainings - budget.spent(counted, config)
            display.watch.generations = len(counted) + -(-left // max(1, networks))

    class Shown(Watcher):
        def reading(self, what: str, done: int, total: int) -> None:
            """Show it."""
            display.reading(what, done, total)

        def maximised(self, fitness: str) -> None:
            """Write figures accordingly."""
            display.watch.unit = fitness

        def begin(self, state: EcosystemState, history: History) -> None:
            """Show the generations before, too."""
            about = display.watch
            about.loading = False
            about.points += [Point.of(generation) for generation in history]
            about.total = len(state.networks)
            counted.extend(history)
            expect(len(state.networks))
            if config.evolution.minutes is not None:
                about.minutes = config.evolution.minutes - total_seconds(history) / 60

        def planned(self, plan: Plan) -> None:
            """Show it."""
            display.phase(plan.phase)

        def progress(self, done: int, total: int, failed: str | None = None) -> None:
            """Show it."""
            display.progress(done, total, failed)

        def generation(self, tally: Tally, seconds: float) -> None:
            """Show it."""
            counted.append(tally)
            expect(tally.networks)
            display.generation(tally, seconds)

        def note(self, text: str) -> None:
            """Show it."""
            display.note(text)

    return Shown()


class Stopper:
    """Turns the first signal into a request to stop, and the second into an end at once."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.received: int | None = None
        self.display: Display | None = None
        """Says so, where there is one."""
        self.before: dict[int, Any] = {}
        """Who heard the signals until now."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Called by Python between two instructions of the main thread."""
        if self.received is not None:
            # Whatever hangs while things are being closed, a third one ends.
            signal.signal(number, signal.SIG_DFL)
            before = self.before.get(number)
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
        self.received = number
        self.stop.set()
        if self.display is not None:
            self.display.notice("stopping after a checkpoint; Ctrl-C again ends at once")


@contextmanager
def signals() -> Iterator[Stopper]:
    """Ctrl-C and the like become requests to stop."""
    stopper = Stopper()
    if threading.current_thread() is not threading.main_thread():
        yield stopper
        return
    # What was ignored from the start, as nohup has it, stays ignored.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    stopper.before = {number: signal.signal(number, stopper.handle) for number in heard}
    try:
        yield stopper
    finally:
        for number, handler in stopper.before.items():
            signal.signal(number, handler)


def _interrupted(command: str, received: int | None) -> int:
    with suppress(OSError):  # the terminal may be what went away
        print(f"stopped; this goes on:  {command}", flush=True)
    return 128 + (received or signal.SIGINT)


def _conclude(result: Result, folder: Path, *, quiet: bool) -> None:
    from epicortex.champion import words
    from epicortex.cli import COMMANDS
    from epicortex.ecosystem.history import total_seconds

    assert result.champion is not None
    facts = result.champion.facts
    seconds = total_seconds(result.history)
    print(f"champion  {words.headline(facts)}")
    for number, line in enumerate(words.details(facts)):
        print(f"{'' if number else 'test':<9} {line}")
    print(f"size      {words.size(result.champion.outline)}")
    if not quiet:
        print(f"ended     {result.stop_reason} ({duration(seconds)})")
    print(f"results   {clean(str(folder))}")
    if quiet:
        return
    run = shell([str(folder)])
    useless = _CLASSIFIERS if facts.is_reward else _TASKS
    steps = [
        text.format(run=run) for command, text in _NEXT if command in COMMANDS and command not in useless
    ]
    for number, step in enumerate(steps):
        print(f"{'' if number else 'next':<9} {step}")
