"""A run's history: a `Generation` for each one that is complete.

It is a line of history.jsonl and what callbacks, reports and budgets read. The files are left to `storage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from epicortex.ecosystem.state import Counts


@dataclass(frozen=True, slots=True)
class Generation(Counts):
    """One complete generation: what it did, counted, and how long that took."""

    train_seconds: float
    """Training and scoring, until the last network was back."""
    evolve_seconds: float
    """Everything else: evolution and files."""
    seconds: float
    """The whole generation."""

    @classmethod
    def timed(cls, counts: Counts, *, train_seconds: float, seconds: float) -> Generation:
        """The generation with these counts; times are kept to the microsecond.

        >>> from epicortex.ecosystem.state import Tally
        >>> tally = Tally(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
        >>> Generation.timed(tally, train_seconds=1.5, seconds=1.75).evolve_seconds
        0.25
        """
        counted = (getattr(counts, field.name) for field in fields(Counts))
        clock = (round(value, 6) for value in (train_seconds, seconds - train_seconds, seconds))
        return cls(*counted, *clock)

    @property
    def mutations_tried(self) -> int:
        """All attempts at a mutation in place, whatever came of them."""
        return self.mutations + self.mutations_refused + self.mutations_failed


History: TypeAlias = Sequence[Generation]
"""The complete generations of a run, in order."""


def total_seconds(history: Iterable[Generation]) -> float:
    """The time that all these generations took."""
    return sum((generation.seconds for generation in history), 0.0)
