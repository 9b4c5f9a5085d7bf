"""Runs to report on: whole evolutions, recorded as ever, in which only the training is made up."""

from __future__ import annotations

import math
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from epicortex.config import resolving as settings
from epicortex.data import DataSet, load
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import Engine, WorkerSetup
from epicortex.run.lifecycle import evolve

FAILURES = ("ran out of memory", "the loss became nan in training step 7")


class PretendEngine(Engine):
    """Gives every network a fitness that rises with its size and its age; some networks fail."""

    def __init__(self, failing: float = 0.0, ceiling: float = 0.999) -> None:
        self._failing = failing
        self._ceiling = ceiling

    workers = property(lambda self: 1)

    def prepare(self, setup: WorkerSetup) -> None:
        pass

    def submit(self, job: Job) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(self._outcome(job))
        return future

    def close(self) -> None:
        pass

    def _outcome(self, job: Job) -> Outcome:
        rng = np.random.default_rng([job.seed, job.generation, job.network])
        if rng.random() < self._failing:
            return Outcome(job.network, job.generation, failed=FAILURES[job.network % len(FAILURES)])
        size = math.log10(job.phenotype.parameters)
        learnt = 1 - math.exp(-(job.generation + 4) * size / 30)
        fitness = float(np.clip(0.99 * learnt + rng.normal(0, 0.015), 0.05, self._ceiling))
        before = fitness - abs(float(rng.normal(0, 0.03))) if job.newborn else None
        return Outcome(job.network, job.generation, job.phenotype, round(fitness, 4), before)


def few_digits() -> DataSet:
    """Every fourth digit."""
    digits = load("digits")
    return DataSet(
        name="few digits",
        x_train=digits.x_train[::4],
        y_train=digits.y_train[::4],
        x_test=digits.x_test[::4],
        y_test=digits.y_test[::4],
        classes=digits.classes,
        scaling=digits.scaling,
    )


def pretended_run(
    out: Path,
    *,
    data: Any = "digits",
    failing: float = 0.0,
    ceiling: float = 0.999,
    command: str = "",
    **changes: Any,
) -> Path:
    """A run folder as `evolve` leaves it, written in seconds; changes such as evolution__seed=3.

    No network gets beyond the ceiling, and those that reach it are equally fit.
    """
    small = {
        "evolution.generations": 12,
        "evolution.initial_networks": 12,
        "evolution.max_networks": 20,
        "evolution.initial_species": 3,
        "evolution.max_species": 6,
        "training.engine": "serial",
    }
    dotted = {name.replace("__", "."): value for name, value in changes.items()}
    config = settings.resolve("layered", {**small, **dotted})
    evolve(data, config, out=out, engine=PretendEngine(failing, ceiling), command=command)
    return out
