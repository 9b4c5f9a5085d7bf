"""What a run has spent, counted in trainings: one network trained once, in one generation, on its portion.

A run may have a budget of them (`evolution.trainings`), spent to the last one: in the generation that
would overdraw it, only as many networks are trained as are left, drawn evenly, and the others are scored.
Everything follows from the run's history, so that a resumed run spends the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from epicortex.config import Config
from epicortex.ecosystem.jobs import Job
from epicortex.ecosystem.state import Counts, EcosystemState, Individual
from epicortex.randomness import generator


class PaperBudget:
    """The paper's rule: every network is trained in every generation, on a portion of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def jobs(self, state: EcosystemState, *, generation: int) -> tuple[Job, ...]:
        """A job for every network; newborns are scored before any training."""
        return tuple(self._job(network, generation) for network in state.networks)

    def limited(self, jobs: Sequence[Job], history: Sequence[Counts]) -> tuple[Job, ...]:
        """With no more trainings among them than are left."""
        return limited(jobs, history, self._config)

    def spent(self, history: Sequence[Counts]) -> int:
        """One for each network and generation."""
        return spent(history, self._config)

    def _job(self, network: Individual, generation: int) -> Job:
        # Founders are no newborns.
        young = network.birth == generation - 1
        newborn = young and network.birth > 0
        settings = self._config.budget
        untrained = (settings.newborns if newborn else settings.founders) == "scored"
        return Job(
            network=network.id,
            generation=generation,
            seed=self._config.evolution.seed,
            phenotype=network.phenotype,
            newborn=newborn,
            train=not (young and untrained),
            rate=_aging(network) if settings.learning_rate == "aging" else 1.0,
        )


def _aging(network: Individual) -> float:
    """The published code's part of the learning rate: the fitter and the older, the less a network learns."""
    return (1 - (network.relative_fitness or 0.0)) / (network.age + 1)


def spent(history: Sequence[Counts], config: Config) -> int:
    """The trainings of these generations; networks that failed were trained too, as far as they came.

    >>> first = Counts(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
    >>> lines = [first, replace(first, generation=2, networks=6, offspring=1)]
    >>> spent(lines, Config()), spent(lines, Config(budget={"newborns": "scored"}))
    (10, 8)
    """
    return totals(history, config)[-1] if history else 0


def totals(history: Sequence[Counts], config: Config) -> list[int]:
    """The trainings spent after each of these generations."""
    return [min(asked, config.evolution.trainings or asked) for asked in _asked(history, config)]


def whole(history: Sequence[Counts], config: Config) -> int:
    """How many generations there are in which nobody was left untrained for want of a budget.

    >>> first = Counts(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
    >>> lines = [first, replace(first, generation=2, networks=6, offspring=1)]
    >>> whole(lines, Config()), whole(lines, Config(evolution={"trainings": 9}))
    (2, 1)
    """
    return sum(asked <= (config.evolution.trainings or asked) for asked in _asked(history, config))


def _asked(history: Sequence[Counts], config: Config) -> list[int]:
    """The trainings that all generations up to each would take."""
    scored = config.budget.newborns == "scored"
    born = [0, *(one.offspring if scored else 0 for one in history[:-1])]
    if config.budget.founders == "scored" and history:
        born[0] = history[0].networks
    return list(accumulate(one.networks - young for one, young in zip(history, born, strict=False)))


def limited(jobs: Sequence[Job], history: Sequence[Counts], config: Config) -> tuple[Job, ...]:
    """The jobs of the next generation, with no more trainings among them than are left."""
    asked = [job for job in jobs if job.train]
    most = config.evolution.trainings
    if most is None or len(asked) <= (left := most - spent(history, config)):
        return tuple(jobs)
    rng = generator(config.evolution.seed, "last trainings", generation=asked[0].generation)
    chosen = {asked[place].network for place in rng.permutation(len(asked))[:left]}
    return tuple(replace(job, train=job.train and job.network in chosen) for job in jobs)
