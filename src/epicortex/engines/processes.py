"""The engine `processes`: a supervised worker process a core, each a fresh interpreter with one torch thread.

A thread per worker starts it, feeds it, listens to it and replaces it. Workers map the data set's file, so it
is in memory once. Nothing is forked: the program may have threads, and a script needs no `__main__` guard.
"""

from __future__ import annotations

import atexit
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, Final

from epicortex.config import Config
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines.base import Engine
from epicortex.engines.channel import encode
from epicortex.engines.process import MAX_FAILED_STARTS, WorkerLost, WorkerProcess
from epicortex.engines.serving import WorkerBroken, inward, outward
from epicortex.engines.setup import WorkerSetup, needed_module
from epicortex.engines.sharing import shared
from epicortex.engines.task_queue import Task, TaskQueue
from epicortex.errors import EngineError
from epicortex.families.family import Family
from epicortex.machine import available_cores

_LOOK_SECONDS: Final = 0.5


class ProcessEngine(Engine):
    """Trains in worker processes on this machine."""

    def __init__(self, config: Config) -> None:
        training = config.training
        # each process on a graphics processor takes a context's worth of its memory
        default = available_cores() if training.device == "cpu" else 1
        self._count = training.workers or default
        self._module = needed_module(config)
        self._hang_limit = training.hang_limit
        self._tasks = TaskQueue()
        self._lock = threading.Lock()
        self._setup: list[bytes | memoryview] | None = None
        self._family: Family[Any] | None = None
        self._prepared = threading.Event()
        self._files = ExitStack()
        self._running: set[WorkerProcess] = set()
        self._threads = [
            threading.Thread(target=self._supervise, name=f"epicortex-worker-{number}", daemon=True)
            for number in range(1, self._count + 1)
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)

    @property
    def workers(self) -> int:
        """How many worker processes there are."""
        return self._count

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the workers that are there now."""
        with self._lock:
            return tuple(worker.pid for worker in self._running)

    def prepare(self, setup: WorkerSetup) -> None:
        """Hand in the setup. A data set with a file travels as its path and checksum; one in memory is
        written to a file that workers can map.
        """
        orphans_remove = []
        if setup.data is not None and setup.data.path is None:
            file = self._files.enter_context(shared(setup.data.write_to))
            orphans_remove = [file.path] if file.orphans_remove else []
            setup = setup.at(file.path)
        self._family = setup.family
        self._setup = encode((setup.packed(), orphans_remove))
        self._prepared.set()

    def submit(self, job: Job) -> Future[Outcome]:
        """Queue a job."""
        return self._tasks.put(job)

    def close(self) -> None:
        """Kill the workers and wait for them; they hold nothing that must be saved."""
        self._end(EngineError("the engine was closed"), cancel=True)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._files.close()
        atexit.unregister(self.close)

    def _end(self, reason: EngineError, *, cancel: bool = False) -> None:
        self._tasks.close(reason, cancel=cancel)
        self._prepared.set()
        with self._lock:
            for worker in self._running:
                worker.kill()

    def _supervise(self) -> None:
        """One worker at a time, for as long as the engine is open. Runs in a thread of its own.

        The thread that starts a worker outlives it: Linux kills a worker when that thread ends.
        """
        failed_starts = 0
        try:
            while self._tasks.closed is None:
                worker = WorkerProcess(self._module)
                with self._lock:
                    self._running.add(worker)
                try:
                    if self._ready(worker):
                        failed_starts = 0
                        self._feed(worker)
                except WorkerLost as lost:
                    failed_starts += 1
                    if failed_starts == MAX_FAILED_STARTS:
                        raise EngineError(
                            f"{failed_starts} workers in a row died while starting ({lost}); is "
                            "there too little memory for so many? try fewer training.workers or engine serial"
                        ) from None
                finally:
                    with self._lock:
                        self._running.discard(worker)
                    worker.end()
        except (WorkerBroken, EngineError) as error:
            self._end(EngineError(str(error)))
        except BaseException as error:
            self._end(EngineError(f"a supervisor of workers failed: {type(error).__name__}: {error}"))
            raise

    def _ready(self, worker: WorkerProcess) -> bool:
        """Wait for the setup and hand it to the worker; False if the engine was closed meanwhile."""
        self._prepared.wait()
        if self._setup is None or self._tasks.closed is not None:
            return False
        worker.prepare(self._setup, self._hang_limit)
        return True

    def _feed(self, worker: WorkerProcess) -> None:
        """Give the worker one task after another until it dies or the engine is closed."""
        while worker.alive:
            task = self._tasks.take(_LOOK_SECONDS)
            if task is not None and not self._finished(task, worker):
                return
            if self._tasks.closed is not None:
                return

    def _finished(self, task: Task, worker: WorkerProcess) -> bool:
        """Have a task done; False if the worker was lost, the task then being put back or failed."""
        job, family = task.job, self._family
        assert family is not None
        try:
            outcome = worker.run(encode(outward(job, family)), self._hang_limit)
        except WorkerLost as lost:
            self._tasks.worker_died(task, str(lost))
            return False
        except BaseException as error:
            task.future.set_exception(EngineError(f"network {job.network} cannot be trained: {error}"))
            raise
        task.future.set_result(inward(outcome, job, family))
        return True
