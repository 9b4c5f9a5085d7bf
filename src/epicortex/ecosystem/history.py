"""A run's history: a `Generation` for each one that is complete.

It is a line of history.jsonl and what callbacks, reports and budgets read. The files are left to `storage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypeAlias

from epicortex import markup
from epicortex.ecosystem.state import Counts
from epicortex.text import NOTHING, duration

#: How many generations a notebook lists.
_SHOWN: Final = 10


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


class Generations(list[Generation]):
    """The generations of a run: a list that notebooks show as curves and a table."""

    def _repr_html_(self) -> str:
        fit = {"best": [one.highest_fitness for one in self], "mean": [one.average_fitness for one in self]}
        rows = [
            (
                one.generation,
                *(
                    NOTHING if value is None else f"{value:.4f}"
                    for value in (one.highest_fitness, one.average_fitness)
                ),
                one.networks,
                one.species,
                f"{one.champion_parameters:,}",
                duration(one.seconds),
            )
            for one in self[-_SHOWN:]
        ]
        head = ("generation", "best", "mean", "networks", "species", "champion's parameters", "time")
        few = f"the last {_SHOWN} of {len(self)} generations" if len(self) > _SHOWN else ""
        return f"{markup.curves(fit)}{markup.table(rows, head, few)}"


History: TypeAlias = Sequence[Generation]
"""The complete generations of a run, in order."""


def total_seconds(history: Iterable[Generation]) -> float:
    """The time that all these generations took."""
    return sum((generation.seconds for generation in history), 0.0)
