"""The contract of every engine, in prose. Each engine keeps it in its own way; one suite tests all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines.setup import WorkerSetup


class Engine(ABC):
    """Trains and scores networks, each one as a job that gives an outcome.

    An engine is made from a `Config` and given its `WorkerSetup` once, by `prepare`. Then:

    - `submit` returns at once. Jobs begin in the order they were submitted; the caller submits the longest
      first. Outcomes come as they are ready, in any order.
    - A job gives the same bits on every engine, with any number of workers, and when it is tried again.
    - A network that fails gives an `Outcome` with a reason, on every engine the same; its future has a result
      then, no exception.
    - Whatever happens to a worker (killed, stopped, out of memory) is handled by the engine: the worker is
      replaced and the job tried again. A job that costs three workers comes back as a failed network.
      (`mpi` cannot do this: a rank that dies ends the whole job, and one that hangs cannot be killed.)
    - Only what makes all work impossible, such as a data file that cannot be opened, breaks an engine: every
      unfinished future then raises `EngineError`, and so does `submit`.
    - A job that has not begun can be cancelled through its future.
    - `close` cancels what has not begun, breaks off what has (those futures raise `EngineError`), and ends
      the workers within seconds. No process, thread or file of the engine remains. Closing twice is harmless.
      An engine is its own context manager, and closes at the end of the `with` block.
    - If the program dies without closing, by whatever means, its workers end by themselves.
    - The caller's own torch settings are left as they were.

    `submit` and `close` may be called from any thread.
    """

    @classmethod
    def enlist(cls) -> bool:
        """Where someone else has started this process as a worker: work until all is done, and say True."""
        return False

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many jobs run at the same time."""

    @abstractmethod
    def prepare(self, setup: WorkerSetup) -> None:
        """Hand in what workers need; jobs submitted before wait for it."""

    @abstractmethod
    def submit(self, job: Job) -> Future[Outcome]:
        """Queue a job; its outcome comes through the future."""

    @abstractmethod
    def close(self) -> None:
        """End at once; see the class for what becomes of unfinished jobs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
