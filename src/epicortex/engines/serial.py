"""The engine `serial`: one network after another, in this process. For small work and for debugging.

It works in a thread of its own, so that outcomes come one by one and Ctrl-C reaches the main thread at once.
"""

from __future__ import annotations

import atexit
import threading
from concurrent.futures import Future

from epicortex.config import Config
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines.base import Engine
from epicortex.engines.setup import WorkerSetup
from epicortex.engines.task_queue import TaskQueue
from epicortex.errors import EngineError, EpiCortexError


class SerialEngine(Engine):
    """Trains in this process, in one thread."""

    def __init__(self, config: Config) -> None:
        del config  # one worker, whatever it says
        self._tasks = TaskQueue()
        self._setup: WorkerSetup | None = None
        self._prepared = threading.Event()
        self._thread = threading.Thread(target=self._work, name="epicortex-serial", daemon=True)
        self._thread.start()
        # a daemon thread must not be inside torch when the interpreter goes
        atexit.register(self.close)

    @property
    def workers(self) -> int:
        """Always one."""
        return 1

    def prepare(self, setup: WorkerSetup) -> None:
        """Hand in the setup; the evaluator is made in the engine's thread."""
        self._setup = setup
        self._prepared.set()

    def submit(self, job: Job) -> Future[Outcome]:
        """Queue a job."""
        return self._tasks.put(job)

    def close(self) -> None:
        """Stop between two batches."""
        self._tasks.close(EngineError("the engine was closed"), cancel=True)
        self._prepared.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        atexit.unregister(self.close)

    def _work(self) -> None:
        self._prepared.wait()
        if self._setup is None or self._tasks.closed is not None:
            return
        try:
            evaluator = self._setup.evaluator()
        except Exception as error:
            reason = str(error) if isinstance(error, EpiCortexError) else f"{type(error).__name__}: {error}"
            self._tasks.close(EngineError(reason), cancel=False)
            return
        while (task := self._tasks.take()) is not None:
            try:
                outcome = evaluator.run(task.job, should_stop=lambda: self._tasks.closed is not None)
            except BaseException as error:
                closed = self._tasks.closed
                task.future.set_exception(error if closed is None else EngineError(str(closed)))
            else:
                task.future.set_result(outcome)
            del task
