"""A worker of the engine `ray`: an actor, in a process of its own on some node, that trains what it is sent.

Ray starts it, with the environment of every worker; retries and replacements are the engine's affair.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epicortex.engines import serving as bench

if TYPE_CHECKING:
    from epicortex.data import DataSet
    from epicortex.evaluation import Trainer


class RayWorker:
    """Trains one network at a time; `pulse` answers in a thread of its own meanwhile."""

    def __init__(self) -> None:
        bench.keep_freed_memory()
        import epicortex.evaluation  # noqa: F401  (torch takes a second or two; meanwhile the data is read)

        self._trainer: Trainer | None = None
        self._alive: float | None = None

    def prepare(
        self, content: bytes, made_with: Mapping[str, str], data: DataSet, path: Sequence[str]
    ) -> tuple[str, int, str]:
        """Get ready to work; gives the node, the process id, and why it cannot, if it cannot.

        Modules of the user's are found where the program finds them, but nothing there hides what is
        installed here.
        """
        import ray

        sys.path += [entry for entry in path if entry not in sys.path]
        try:
            bench.check_versions(made_with)
            # The arrays are the node's own copy in the object store, mapped by all its workers.
            self._trainer = bench.make_ready(content, data)
            broken = ""
        except bench.WorkerBroken as error:
            broken = str(error)
        return ray.get_runtime_context().get_node_id(), os.getpid(), broken

    def run(self, job: bytes) -> bytes:
        """Do a job."""
        assert self._trainer is not None
        self._beat()
        try:
            outcome = bench.perform(self._trainer, pickle.loads(job), heartbeat=self._beat)
        finally:
            self._alive = None
        return pickle.dumps(outcome, protocol=5)

    def pulse(self) -> float:
        """How many seconds ago the job under way gave a sign of life."""
        alive = self._alive
        return 0.0 if alive is None else time.monotonic() - alive

    def _beat(self) -> None:
        self._alive = time.monotonic()
