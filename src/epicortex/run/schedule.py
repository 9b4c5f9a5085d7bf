"""Which network to train first: the longest, so that no worker idles at a generation's end.

Estimates come from the clock and from the genome. They decide the order only, never a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Any

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.families.layered.genome import Genome

#: What a network costs however small it is, in multiplications for each sample.
_OVERHEAD = 10_000


class Schedule:
    """Learns from each generation how long networks take."""

    def __init__(self) -> None:
        self._pace: dict[int, float] = {}
        self._typical = 1.0

    def longest_first(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs, those likely to take longest first; equals in the order of ids."""
        return sorted(jobs, key=lambda job: (-self.estimate(job), job.network))

    def estimate(self, job: Job) -> float:
        """The seconds a job will take, as far as can be told."""
        return work(job.phenotype) * self._pace.get(job.network, self._typical)

    def learn(self, jobs: Iterable[Job], outcomes: Iterable[Outcome]) -> None:
        """Take in how long a generation's jobs took."""
        took = {outcome.network: outcome.train_seconds + outcome.score_seconds for outcome in outcomes}
        self._pace = {
            job.network: took[job.network] / work(job.phenotype) for job in jobs if took.get(job.network)
        }
        if self._pace:
            self._typical = median(self._pace.values())


def work(phenotype: Any) -> float:
    """About how many multiplications a forward pass of one sample takes.

    >>> from epicortex.families.layered.genome import FullLayer
    >>> from epicortex.families.layered import draw_phenotype
    >>> import numpy as np
    >>> work(draw_phenotype(Genome((1, 8, 8), (FullLayer(5),), 10), rng=np.random.default_rng(1)))
    10370.0
    """
    genome = getattr(phenotype, "genome", None)
    if not isinstance(genome, Genome):
        return float(_OVERHEAD + getattr(phenotype, "parameters", 0))
    places = (math.prod(shape[1:]) for shape in genome.output_shapes)
    # A layer computes with its whole dense weight, the zeros around small kernels too.
    return float(
        _OVERHEAD
        + sum(weights.weight.size * count for weights, count in zip(phenotype.weights, places, strict=True))
    )
