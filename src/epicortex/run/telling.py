"""A run watched from Python: a line a generation on standard error, where somebody is there to read it."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from epicortex.ecosystem.history import History
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState, Tally
from epicortex.measures import figure
from epicortex.run.loop import Watcher
from epicortex.text import duration, plural


class Told(Watcher):
    """Prints a line for each generation; notes are warnings as before."""

    def __init__(
        self, generations: int | None, stream: TextIO | None = None, *, fitness: str = "accuracy"
    ) -> None:
        """`generations` is how many there will be, where that is known; `fitness` what is maximised."""
        self.fitness = fitness
        self._of = "" if generations is None else f"/{generations}"
        self._stream = stream or sys.stderr
        self._phase = "generation"
        self._began = time.monotonic()

    def maximised(self, fitness: str) -> None:
        """Write figures accordingly."""
        self.fitness = fitness

    def begin(self, state: EcosystemState, history: History) -> None:
        """Say how large the start is."""
        self._say(f"evolving {plural(len(state.networks), 'network')}")

    def planned(self, plan: Plan) -> None:
        """Say what part of the run the generation belongs to."""
        self._phase = plan.phase

    def generation(self, tally: Tally, seconds: float) -> None:
        """Print its line."""
        self._say(
            f"{self._phase} {tally.generation}{self._of}  "
            f"best {figure(self.fitness, tally.highest_fitness)}  "
            f"mean {figure(self.fitness, tally.average_fitness)}  {plural(tally.networks, 'network')}  "
            f"{duration(seconds)}  {duration(time.monotonic() - self._began)} in all"
        )

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def wanted(progress: bool | None) -> bool:
    """Whether progress is shown: as asked, else where a person looks on, in a terminal or a notebook.

    >>> wanted(True), wanted(False)
    (True, False)
    """
    if progress is not None:
        return progress
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
