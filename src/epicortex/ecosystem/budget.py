"""What a run has spent, counted in trainings: one network trained once, in one generation, on its portion.

A run may have a budget of them (`evolution.trainings`), spent to the last one: in the generation that
would overdraw it, only as many networks are trained as are left, drawn evenly, and the others are scored.
Everything follows from the run's history, so that a resumed run spends the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from epicortex.config import EvolutionConfig
from epicortex.ecosystem.jobs import Job
from epicortex.ecosystem.state import Counts
from epicortex.randomness import generator


def spent(history: Sequence[Counts], settings: EvolutionConfig) -> int:
    """The trainings of these generations; networks that failed were trained too, as far as they came.

    >>> first = Counts(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
    >>> lines = [first, replace(first, generation=2, networks=6, offspring=1)]
    >>> spent(lines, EvolutionConfig()), spent(lines, EvolutionConfig(newborns="scored"))
    (10, 8)
    """
    return totals(history, settings)[-1] if history else 0


def totals(history: Sequence[Counts], settings: EvolutionConfig) -> list[int]:
    """The trainings spent after each of these generations."""
    return [min(asked, settings.trainings or asked) for asked in _asked(history, settings)]


def whole(history: Sequence[Counts], settings: EvolutionConfig) -> int:
    """How many generations there are in which nobody was left untrained for want of a budget.

    >>> first = Counts(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
    >>> lines = [first, replace(first, generation=2, networks=6, offspring=1)]
    >>> whole(lines, EvolutionConfig()), whole(lines, EvolutionConfig(trainings=9))
    (2, 1)
    """
    return sum(asked <= (settings.trainings or asked) for asked in _asked(history, settings))


def _asked(history: Sequence[Counts], settings: EvolutionConfig) -> list[int]:
    """The trainings that all generations up to each would take."""
    scored = settings.newborns == "scored"
    newborns = [0, *(one.offspring if scored else 0 for one in history[:-1])]
    return list(accumulate(one.networks - born for one, born in zip(history, newborns, strict=False)))


def limited(jobs: Sequence[Job], history: Sequence[Counts], settings: EvolutionConfig) -> tuple[Job, ...]:
    """The jobs of the next generation, with no more trainings among them than are left."""
    asked = [job for job in jobs if job.train]
    if settings.trainings is None or len(asked) <= settings.trainings - spent(history, settings):
        return tuple(jobs)
    left = settings.trainings - spent(history, settings)
    rng = generator(settings.seed, "last trainings", generation=asked[0].generation)
    chosen = {asked[place].network for place in rng.permutation(len(asked))[:left]}
    return tuple(replace(job, train=job.train and job.network in chosen) for job in jobs)
