"""What a job does inside a worker, and how workers come to know it.

An `Evaluator` turns a job into an outcome; it is the only code that runs inside a worker. A `Recipe` is what
travels there: it is made once in the main process, checked, sent by value, and opened in every worker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import EpiCortexError
from epicortex.families.family import Family

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.data import DataSet

_MEMORY_WORDS: Final = ("can't allocate memory", "out of memory", "bad_alloc", "could not create a memory")


class Evaluator(Protocol):
    """Gives networks their fitness.

    The same job gives the same outcome, bit for bit, in any process and however often it runs: everything
    drawn comes from generators derived from the job. Fitness is higher for better networks. A network that
    cannot go on (NaN, memory, time, an exception) gives an outcome with `failed`, a reason without anything
    that differs between two equal runs; it never raises. `heartbeat` is called now and then, at least every
    few seconds, and so is `should_stop`, which breaks off with `Stopped`.
    """

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Evaluate one network."""


class Recipe(Protocol):
    """An evaluator to be: plain settings and functions, sent to every worker by value.

    The name of an evaluator stands for a class with `from_config`, or for a plain function
    `evaluate(model, rng) -> float` (see `function`).
    """

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """The recipe as a run's settings ask for it; `functions` are those handed over by the user."""

    def check(self, data: DataSet | None) -> None:
        """Refuse, with a `ConfigError`, what could evaluate no network."""

    def open(self, data: DataSet | None) -> Evaluator:
        """The evaluator, in this process, over this data set; None where the run has none."""

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """The champion's figure on what fitness was never measured on; None where there is nothing."""


class Stopped(EpiCortexError):
    """An evaluation was broken off because its caller asked for it."""


class NetworkFailed(Exception):
    """This network cannot go on, for the reason given."""


@dataclass(slots=True)
class Pace:
    """What happens between two pieces of work: a sign of life, a look at the clock and whether to stop."""

    heartbeat: Callable[[], None] | None = None
    should_stop: Callable[[], bool] | None = None
    time_limit: float | None = None
    began: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        """Call this at least every few seconds."""
        if self.heartbeat is not None:
            self.heartbeat()
        if self.should_stop is not None and self.should_stop():
            raise Stopped("training was stopped")
        if self.time_limit is not None and time.monotonic() - self.began > self.time_limit:
            raise NetworkFailed(f"took longer than the limit of {self.time_limit:g} s")


def finite(fitness: float, name: str) -> float:
    """A fitness, if it is a number."""
    if not math.isfinite(fitness):
        raise NetworkFailed(f"the fitness function {name} gave {fitness}")
    return fitness


def reason(error: Exception) -> str:
    """Why a network failed, in one line without anything that differs between two equal runs."""
    if isinstance(error, NetworkFailed):
        return str(error)
    text = " ".join(str(error).split())
    out_of_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if out_of_memory or any(words in text for words in _MEMORY_WORDS):
        return "ran out of memory"
    return f"{type(error).__name__}: {text}"[:300]
