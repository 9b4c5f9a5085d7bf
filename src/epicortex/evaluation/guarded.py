"""The frame of an evaluation: a plain function of a job, timed and watched, that cannot end a worker.

`backprop` has a frame of its own, since it measures more; what a network is worth is left to others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from epicortex.ecosystem.jobs import Job, Outcome, Sums
from epicortex.evaluation.evaluator import Pace, Stopped, finite, reason


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """An evaluator that asks a function for the outcome; whatever that raises becomes a reason."""

    evaluate: Callable[[Job, Pace], Outcome]
    name: str
    """What gives the fitness, for people."""
    time_limit: float | None = None

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Evaluate one network. What is not training is scoring, in the seconds that are counted."""
        pace, began = Pace(heartbeat, should_stop, self.time_limit), time.perf_counter()
        try:
            pace()
            outcome = self.evaluate(job, pace)
            for fitness in (outcome.fitness, outcome.fitness_before):
                if fitness is not None:
                    finite(fitness, self.name)
            pace()
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))
        return replace(outcome, score_seconds=time.perf_counter() - began - outcome.train_seconds)


def scored(job: Job, fitness: float, phenotype: Any = None, sums: Sums | None = None) -> Outcome:
    """The outcome of a network that was not trained: a newborn's fitness before training is the same."""
    return Outcome(
        job.network,
        job.generation,
        job.phenotype if phenotype is None else phenotype,
        float(fitness),
        float(fitness) if job.newborn else None,
        sums=sums or {},
    )
