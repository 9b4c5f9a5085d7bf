"""An engine of any number of workers that only seem to train: for the costs of the main process.

A job takes as long as it is told to, and no processor. What the main process does for a job is real: it is
encoded and pickled, and its outcome is given back as the engines of clusters do it. What the library below
an engine costs for a job can be added, as processor time spent.
"""

from __future__ import annotations

import heapq
import itertools
import pickle
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from epicortex.config import Config, changed
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import Engine, WorkerSetup
from epicortex.engines.returns import Returns
from epicortex.engines.serving import outward
from epicortex.engines.task_queue import Task, TaskQueue
from epicortex.errors import EngineError
from epicortex.families.family import Family
from epicortex.families.genes import Genes
from epicortex.families.layered.phenotype import Phenotype


class SimulatedEngine(Engine):
    """Keeps the contract of every engine, with synthetic durations and synthetic fitness."""

    def __init__(
        self, workers: int, duration: Callable[[Job], float], *, cost: float = 0.0, before: bool = False
    ) -> None:
        """`before`: outcomes are given back in the thread that hands out, not in one of their own."""
        self._count = workers
        self._duration = duration
        self._cost = cost
        self._tasks = TaskQueue()
        self._returns = None if before else Returns("simulated-outcomes")
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()
        self._family: Family[Any] | None = None
        self._thread = threading.Thread(target=self._lead, name="simulated-lead", daemon=True)
        self._thread.start()

    @property
    def workers(self) -> int:
        return self._count

    def prepare(self, setup: WorkerSetup) -> None:
        self._family = setup.family
        with self._changed:
            self._changed.notify()

    def submit(self, job: Job) -> Future[Outcome]:
        future = self._tasks.put(job)
        with self._changed:
            self._changed.notify()
        return future

    def close(self) -> None:
        self._tasks.close(EngineError("the engine was closed"), cancel=True)
        with self._changed:
            self._changed.notify()
        self._thread.join()
        if self._returns:
            self._returns.close()

    def _lead(self) -> None:
        """One thread, as an engine of a cluster has: it hands out and takes back."""
        while self._tasks.closed is None:
            self._hand_out()
            with self._changed:
                wait = self._due[0][0] - time.monotonic() if self._due else 0.5
                if wait > 0:
                    self._changed.wait(min(wait, 0.5))
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, task = heapq.heappop(self._due)
                give_back = partial(self._give_back, task)
                if self._returns:
                    self._returns.put(give_back)
                else:
                    give_back()
                self._hand_out()
        for _, _, task in self._due:
            self._tasks.put_back(task)

    def _hand_out(self) -> None:
        family = self._family
        while family and len(self._due) < self._count and (task := self._tasks.take(0)) is not None:
            pickle.dumps(outward(task.job, family), protocol=5)
            _spend(self._cost)
            due = time.monotonic() + self._duration(task.job)
            heapq.heappush(self._due, (due, next(self._numbers), task))

    def _give_back(self, task: Task) -> None:
        task.future.set_result(outcome(task.job, self._duration(task.job)))


def outcome(job: Job, took: float = 0.0) -> Outcome:
    """As if it had been trained: other arrays, and a fitness that follows from its id and generation.

    Copying the arrays and checking them again takes about as long as unpickling them.
    """
    weights = tuple(
        Genes(**{name: array.copy() for name, array in genes.items()}) for genes in job.phenotype.weights
    )
    score = random.Random(f"{job.network} {job.generation}").random()
    return Outcome(
        job.network,
        job.generation,
        Phenotype(job.phenotype.genome, weights),
        fitness=score,
        fitness_before=score / 2 if job.newborn else None,
        samples=1,
        train_seconds=took,
    )


def _spend(seconds: float) -> None:
    """Keep a processor busy for so long, as an engine's library would."""
    end = time.thread_time() + seconds
    while seconds and time.thread_time() < end:
        pass


def config_for(networks: int, generations: int, *, seed: int = 1) -> Config:
    """A full ecosystem from the start, its species in proportion."""
    return changed(
        Config(),
        evolution={
            "seed": seed,
            "generations": generations,
            "initial_networks": networks,
            "max_networks": networks,
            "initial_species": max(1, networks // 100),
            "max_species": max(2, networks // 25),
            "keep_checkpoints": 1,
        },
    )
