"""The queue between those who submit and those who work: first in, first out, and closed only once."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from epicortex.errors import EngineError
from epicortex.jobs import Job, Outcome


@dataclass(slots=True, eq=False)
class Task:
    """A job, the promise of its outcome, and how many workers it has cost."""

    job: Job
    future: Future[Outcome] = field(default_factory=Future)
    deaths: int = 0


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
