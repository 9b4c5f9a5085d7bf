"""The engine `mpi`: rank 0 of an MPI job evolves, all other ranks train. Built on `mpi4py.futures`.

Nobody can replace a rank: if one dies, so does the job, and `resume` goes on; one that hangs holds the run
up until it is stopped. What the other ranks do is in `mpi_ranks`.
"""

from __future__ import annotations

import atexit
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from epicortex.config import Config
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import mpi_ranks
from epicortex.engines.base import Engine
from epicortex.engines.mpi_ranks import Order
from epicortex.engines.returns import Returns
from epicortex.engines.serving import WorkerBroken, inward, outward
from epicortex.engines.setup import WorkerSetup, needed_module
from epicortex.engines.sharing import shared
from epicortex.engines.task_queue import Task, TaskQueue
from epicortex.errors import EngineError, EpiCortexError
from epicortex.families.family import Family
from epicortex.versions import versions

if TYPE_CHECKING:
    from epicortex.data import DataSet

#: Held by the engine that the ranks work for; there can be one at a time.
_free: Final = threading.Lock()


class MpiEngine(Engine):
    """Trains in the other ranks of the MPI job that this process is rank 0 of.

    In any other rank it cannot be made: the program ends there when its rank has done its work.
    """

    def __init__(self, config: Config) -> None:
        if self.enlist():
            raise SystemExit(0)
        self._world = mpi_ranks.world()
        if not _free.acquire(blocking=False):
            raise EngineError("the ranks of this MPI job work for another engine; close that first")
        if module := needed_module(config):
            mpi_ranks.announce(self._world, module)
        ranks = len(self._world.others)
        self._count = min(config.training.workers or ranks, ranks)
        self._chunk = config.mpi.chunk
        self._hang_limit = config.training.hang_limit
        self._tasks = TaskQueue()
        self._returns = Returns("epicortex-mpi-outcomes")
        self._left = ExitStack()
        self._left.callback(_free.release)
        self._family: Any = None
        self._executor: Any = None
        self._running = 0
        self._changed = threading.Condition(threading.RLock())
        atexit.register(self.close)

    @classmethod
    def enlist(cls) -> bool:
        """Serve rank 0 to its end and say True, in any other rank."""
        if mpi_ranks.world().leads:
            return False
        mpi_ranks.serve()
        return True

    @property
    def workers(self) -> int:
        """How many ranks train at the same time."""
        return self._count

    def prepare(self, setup: WorkerSetup) -> None:
        """Hand in the setup; the data set goes to the first rank of every host."""
        self._family = setup.family
        content = setup.at(None).packed()
        try:
            data = self._mapped(setup)
        except EpiCortexError as error:
            self._tasks.close(EngineError(str(error)), cancel=False)
            return
        mpi_ranks.give(self._world, Order(content, versions(), data is not None), data)
        self._executor = MPICommExecutor(self._world.everyone, root=0).__enter__()
        self._feed()

    def submit(self, job: Job) -> Future[Outcome]:
        """Queue a job."""
        future = self._tasks.put(job)
        self._feed()
        return future

    def close(self) -> None:
        """Stop the ranks between two batches; they then wait for the next engine, or for the end."""
        atexit.unregister(self.close)
        self._tasks.close(EngineError("the engine was closed"), cancel=True)
        with self._changed:
            executor, self._executor = self._executor, None
        if executor is not None:
            others, everyone = self._world.others, self._world.everyone
            told = [everyone.isend(None, dest=rank, tag=mpi_ranks.STOP) for rank in others]
            self._wait_for_ranks()
            executor.shutdown()
            MPI.Request.waitall(told)
        self._returns.close()
        self._left.close()

    def _mapped(self, setup: WorkerSetup) -> DataSet | None:
        """The data set in a file that other ranks of this host can map; None where the run has none."""
        from epicortex.data import DataSet

        if setup.data is None:
            return None if setup.data_path is None else DataSet.open(setup.data_path)
        if setup.data.path is not None:
            return setup.data
        return DataSet.open(self._left.enter_context(shared(setup.data.write_to)).path)

    def _feed(self) -> None:
        """Give waiting tasks to ranks that have nothing to do."""
        with self._changed:
            while self._executor is not None and self._running < self._count and (batch := self._batch()):
                self._running += 1
                answer = self._executor.submit(
                    mpi_ranks.do, [outward(task.job, self._family) for task in batch]
                )
                answer.add_done_callback(partial(self._take_outcomes, batch))

    def _batch(self) -> list[Task]:
        batch: list[Task] = []
        while len(batch) < self._chunk and (task := self._tasks.take(0)) is not None:
            batch.append(task)
        return batch

    def _take_outcomes(self, batch: list[Task], answer: Future[list[Outcome]]) -> None:
        """Called in the thread of `mpi4py.futures` that talks to the ranks."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
        error = answer.exception()
        if isinstance(error, WorkerBroken):
            self._tasks.close(EngineError(str(error)), cancel=False)
        self._feed()
        if error is None:
            self._returns.put(partial(_give_back, batch, answer.result(), self._family))
        else:
            for task in batch:
                self._tasks.worker_died(task, f"{type(error).__name__}: {error}")

    def _wait_for_ranks(self) -> None:
        with self._changed:
            idle = self._changed.wait_for(lambda: self._running == 0, max(self._hang_limit, 10.0))
        if not idle:
            sys.stderr.write(
                f"epicortex: a rank has not answered for {self._hang_limit:g} s and cannot be stopped: the "
                "MPI job ends here; epicortex resume goes on\n"
            )
            sys.stderr.flush()
            self._world.everyone.Abort(1)


def _give_back(batch: list[Task], outcomes: list[Outcome], family: Family[Any]) -> None:
    for task, outcome in zip(batch, outcomes, strict=True):
        task.future.set_result(inward(outcome, task.job, family))
