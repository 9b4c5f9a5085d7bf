"""What a run has spent, counted in trainings: one network trained once, in one generation, on its portion.

A run may have a budget of them (`evolution.trainings`), spent to the last one: in the generation that
would overdraw it, only as many networks are trained as are left, drawn evenly, and the others are scored.
Everything follows from the run's history, so that a resumed run spends the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epicortex.config import EvolutionConfig
from epicortex.jobs import Job
from epicortex.randomness import generator


def spent(history: Sequence[Mapping[str, Any]], settings: EvolutionConfig) -> int:
    """The trainings of these generations; networks that failed were trained too, as far as they came.

    >>> lines = [{"networks": 4, "offspring": 2}, {"networks": 6, "offspring": 1}]
    >>> spent(lines, EvolutionConfig()), spent(lines, EvolutionConfig(newborns="scored"))
    (10, 8)
    """
    trained = sum(int(line["networks"]) for line in history)
    if settings.newborns == "scored":
        trained -= sum(int(line["offspring"]) for line in history[:-1])
    return trained if settings.trainings is None else min(trained, settings.trainings)


def limited(
    jobs: Sequence[Job], history: Sequence[Mapping[str, Any]], settings: EvolutionConfig
) -> tuple[Job, ...]:
    """The jobs of the next generation, with no more trainings among them than are left."""
    asked = [job for job in jobs if job.train]
    if settings.trainings is None or len(asked) <= settings.trainings - spent(history, settings):
        return tuple(jobs)
    left = settings.trainings - spent(history, settings)
    rng = generator(settings.seed, "last trainings", generation=asked[0].generation)
    chosen = {asked[place].network for place in rng.permutation(len(asked))[:left]}
    return tuple(replace(job, train=job.train and job.network in chosen) for job in jobs)
