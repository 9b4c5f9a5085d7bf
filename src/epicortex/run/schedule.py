"""Which network to train first: the longest, so that no worker idles at a generation's end.

Estimates come from the clock and from the genome. They decide the order only, never a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.families.family import Family

#: What a network costs however small it is, in multiplications for each sample.
_OVERHEAD = 10_000


class Schedule:
    """Learns from each generation how long networks take."""

    def __init__(self, family: Family[Any]) -> None:
        self._family = family
        self._pace: dict[int, float] = {}
        self._typical = 1.0

    def longest_first(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs, those likely to take longest first; equals in the order of ids."""
        return sorted(jobs, key=lambda job: (-self.estimate(job), job.network))

    def estimate(self, job: Job) -> float:
        """The seconds a job will take, as far as can be told."""
        return self._work(job) * self._pace.get(job.network, self._typical)

    def learn(self, jobs: Iterable[Job], outcomes: Iterable[Outcome]) -> None:
        """Take in how long a generation's jobs took."""
        took = {outcome.network: outcome.train_seconds + outcome.score_seconds for outcome in outcomes}
        self._pace = {
            job.network: took[job.network] / self._work(job) for job in jobs if took.get(job.network)
        }
        if self._pace:
            self._typical = median(self._pace.values())

    def _work(self, job: Job) -> float:
        return float(_OVERHEAD + self._family.cost(job.phenotype))
