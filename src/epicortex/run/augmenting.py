"""`training.augment = "auto"`: which changes of training samples help is measured before the run begins.

Copies of one founder get the same work on the same samples, each with another change, and one with none; all
of it twice, since training has its luck. A change is used if it clearly lowers the loss on the validation
samples. What was found is written into the run's settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.ecosystem.jobs import Course, Job
from epicortex.engines import Engine
from epicortex.errors import ConfigError, RunError
from epicortex.evaluation.augmentation import SUITABLE, unsuitable
from epicortex.families.family import Array, Family, Shape
from epicortex.run import sizing
from epicortex.run.subject import Subject

#: The part of a run's time that is measured for, and the least number of minutes that is enough.
_SHARE: Final = 0.1
_LEAST_MINUTES: Final = 1.0
#: What is trained: a founder of this part of the largest one's cost, on small images.
_PART: Final = 0.25
#: By how many standard errors the loss has to be lower.
_CLEARLY: Final = 1.5
#: How often everything is measured.
_REPEATS: Final = 2
#: Without minutes: as many steps as so many generations have.
_GENERATIONS: Final = 3


def check(config: Config, subject: Subject) -> None:
    """Refuse changes that the data cannot have, and a measurement in a run that is not planned."""
    training = config.training
    if config.evaluator != "backprop" or not training.augment or training.tries_augment:
        return
    if training.measures_augment:
        if not sizing.is_planned(config):
            raise ConfigError(
                "training.augment: only planned runs (--preset default) find out by themselves what helps; "
                "name what is to be used, such as --training.augment rotation,cutout"
            )
        return
    dimensions = len(subject.problem.input_shape) - 1
    if wrong := unsuitable(training.augment, dimensions):
        suitable = ", ".join(SUITABLE[min(dimensions, len(SUITABLE) - 1)])
        raise ConfigError(
            f"training.augment: {', '.join(wrong)} cannot be done to this data, only {suitable}"
        )


def settled(
    config: Config, family: Family[Any], subject: Subject, engine: Engine, note: Callable[[str], None]
) -> Config:
    """The settings with what helps; the engine's workers are ready."""
    minutes = config.evolution.minutes
    if minutes is not None and minutes < _LEAST_MINUTES:
        note(f"training.augment: {minutes:g} minutes are too short to find out what helps; nothing is used")
        return settings.changed(config, training={"augment": ()})
    spatial = subject.problem.input_shape[1:]
    arms = [(), *((name,) for name in SUITABLE[min(len(spatial), len(SUITABLE) - 1)])]
    trial = _Trial(config, family, spatial, engine, len(arms))
    plain, *changed = trial.losses(arms)
    gains = dict(zip((name for (name,) in arms[1:]), compared(plain, changed), strict=True))
    chosen = tuple(name for name, (mean, error) in gains.items() if mean > _CLEARLY * error)
    if len(chosen) > 1:
        best = max(chosen, key=lambda name: gains[name][0])
        (together,) = trial.losses([chosen])
        if plain.mean() - together.mean() <= gains[best][0]:
            chosen = (best,)
    note(_told(gains, chosen, trial.steps))
    return settings.changed(config, training={"augment": chosen})


def compared(before: Array, after: Sequence[Array]) -> list[tuple[float, float]]:
    """By how much the mean loss fell with each change, and the standard error of that.

    All are losses [repeats, samples] of the same samples. The error is that of the samples and that of the
    repeats, which is estimated from all changes together.

    >>> before = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]], np.float32)
    >>> [(mean, round(error, 3)) for mean, error in compared(before, [before - 0.5, before + [[0.1], [0.2]]])]
    [(0.5, 0.035), (-0.15, 0.035)]
    """
    gains = [before.astype(np.float64) - one for one in after]
    repeats, samples = before.shape
    luck = float(np.mean([one.mean(1).var(ddof=1) for one in gains])) / repeats
    return [
        (round(float(one.mean()), 12), math.sqrt(float(one.mean(0).var()) / samples + luck)) for one in gains
    ]


class _Trial:
    """Trains copies of one founder, each with another change."""

    def __init__(
        self, config: Config, family: Family[Any], spatial: Shape, engine: Engine, arms: int
    ) -> None:
        own, sizes = config.budget, config.residual
        cost, parameters = sizes.start_cost or 1, sizes.start_parameters or 1
        self._seed, self._engine = config.evolution.seed, engine
        self._founder = sizing.founder(config, family, max(1, round(_PART * cost)), parameters)
        self._size = tuple(round(own.small_size * side) for side in spatial) if len(spatial) == 2 else None
        self.steps = _GENERATIONS * own.steps
        if config.evolution.minutes is not None:
            # what helps may have to be tried together: one more round
            rounds = math.ceil(_REPEATS * arms / engine.workers) + math.ceil(_REPEATS / engine.workers)
            seconds = 60 * config.evolution.minutes * _SHARE / rounds
            speed = (own.speed or 1.0) / (own.siblings or 1)
            shrunk = math.prod(self._size) / math.prod(spatial) if self._size else 1.0
            each = config.training.batch_size * family.cost(self._founder) * shrunk
            self.steps = max(1, round(speed * seconds / each))

    def losses(self, arms: Sequence[tuple[str, ...]]) -> list[Array]:
        """The losses [repeats, samples] on all validation samples after training with each of these."""
        jobs = [
            Job(1 + repeat, 0, self._seed, self._founder, course=self._course(arm, repeat))
            for arm in arms
            for repeat in range(_REPEATS)
        ]
        found = []
        for outcome in [future.result() for future in [self._engine.submit(job) for job in jobs]]:
            if outcome.failed or outcome.losses is None:
                raise RunError(
                    f"what helps could not be measured: {outcome.failed or 'training.losses is off'}"
                )
            found.append(outcome.losses)
        return [np.stack(found[at : at + _REPEATS]) for at in range(0, len(found), _REPEATS)]

    def _course(self, arm: tuple[str, ...], repeat: int) -> Course:
        return Course(
            steps=self.steps, stream=repeat, size=self._size, rates=(1.0, 0.0), augment=arm, average=True
        )


def _told(gains: dict[str, tuple[float, float]], chosen: tuple[str, ...], steps: int) -> str:
    """What was measured, in one line."""
    figures = ", ".join(f"{name} {-mean:+.3f} ± {error:.3f}" for name, (mean, error) in gains.items())
    what = f"{' and '.join(chosen)} will be used" if chosen else "nothing clearly helps, so none is used"
    return f"change of the validation loss after {steps} steps: {figures}; {what}"
