"""The queue between those who submit and those who work: first in, first out, and closed only once."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import EngineError

#: A network that costs so many workers has failed.
MAX_DEATHS: Final = 3
#: So has one that has lost so many without being at fault: whole nodes went, or the network between them.
MAX_LOSSES: Final = 10


@dataclass(slots=True, eq=False)
class Task:
    """A job, the promise of its outcome, and how many workers it has cost."""

    job: Job
    future: Future[Outcome] = field(default_factory=Future)
    deaths: int = 0
    losses: int = 0


class TaskQueue:
    """Tasks that wait for a worker. Once closed it gives no more and takes no more."""

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._changed = threading.Condition()
        self._closed: EngineError | None = None

    @property
    def closed(self) -> EngineError | None:
        """Why it was closed; None while it is open."""
        return self._closed

    def put(self, job: Job) -> Future[Outcome]:
        """Queue a job."""
        task = Task(job)
        with self._changed:
            if self._closed is not None:
                raise EngineError(str(self._closed))
            self._waiting.append(task)
            self._changed.notify()
        return task.future

    def put_back(self, task: Task) -> None:
        """A task that has begun goes to the front, to be tried again."""
        with self._changed:
            if self._closed is None:
                self._waiting.appendleft(task)
                self._changed.notify()
                return
        task.future.set_exception(EngineError(str(self._closed)))

    def worker_died(self, task: Task, how: str) -> None:
        """Its worker died over it: the task is tried again, but not for ever."""
        task.deaths += 1
        self._again(task, task.deaths < MAX_DEATHS, f"killed its worker {MAX_DEATHS} times ({how})")

    def worker_lost(self, task: Task, how: str) -> None:
        """Its worker is gone for a reason of its own: the task is tried again, more often."""
        task.losses += 1
        self._again(task, task.losses < MAX_LOSSES, f"lost its worker {MAX_LOSSES} times ({how})")

    def _again(self, task: Task, patient: bool, reason: str) -> None:
        if patient or self._closed is not None:
            self.put_back(task)
        else:
            task.future.set_result(Outcome(task.job.network, task.job.generation, failed=reason))

    def take(self, timeout: float | None = None) -> Task | None:
        """The next task, or None after `timeout` seconds, or at once when the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed is not None, timeout)
            while self._waiting and self._closed is None:
                task = self._waiting.popleft()
                if task.future.running() or task.future.set_running_or_notify_cancel():
                    return task
        return None

    def close(self, reason: EngineError, *, cancel: bool) -> bool:
        """Close it; waiting tasks are cancelled or get the reason. False if it was closed before."""
        with self._changed:
            if self._closed is not None:
                return False
            self._closed = reason
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for task in waiting:
            if not (cancel and task.future.cancel()):
                _refuse(task, reason)
        return True


def _refuse(task: Task, reason: EngineError) -> None:
    if task.future.running() or task.future.set_running_or_notify_cancel():
        task.future.set_exception(EngineError(str(reason)))
