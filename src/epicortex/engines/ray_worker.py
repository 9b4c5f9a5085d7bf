"""A worker of the engine `ray`: an actor, in a process of its own on some node, that trains what it is sent.

Ray starts it, with the environment of every worker; retries and replacements are left to the engine.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epicortex.engines import serving

if TYPE_CHECKING:
    from epicortex.data import DataSet


class RayWorker:
    """Trains one network at a time; `pulse` answers in a thread of its own meanwhile."""

    def __init__(self, module: str | None = None) -> None:
        """`module`: what will be needed; it is imported while the data is read."""
        serving.keep_freed_memory()
        if module:
            importlib.import_module(module)

        self._bench: serving.Bench | None = None
        self._alive: float | None = None

    def prepare(
        self, content: bytes, made_with: Mapping[str, str], data: DataSet | None, path: Sequence[str]
    ) -> tuple[str, int, str]:
        """Get ready to work; gives the node, the process id, and why it cannot, if it cannot.

        Modules of the user's are found where the program finds them, but nothing there hides what is
        installed here.
        """
        import ray

        sys.path += [entry for entry in path if entry not in sys.path]
        try:
            serving.check_versions(made_with)
            # The arrays are the node's own copy in the object store, mapped by all its workers.
            self._bench = serving.make_ready(content, data)
            broken = ""
        except serving.WorkerBroken as error:
            broken = str(error)
        return ray.get_runtime_context().get_node_id(), os.getpid(), broken

    def run(self, job: bytes) -> bytes:
        """Do a job."""
        assert self._bench is not None
        self._beat()
        try:
            outcome = self._bench.perform(pickle.loads(job), heartbeat=self._beat)
        finally:
            self._alive = None
        return pickle.dumps(outcome, protocol=5)

    def pulse(self) -> float:
        """How many seconds ago the job under way gave a sign of life."""
        alive = self._alive
        return 0.0 if alive is None else time.monotonic() - alive

    def _beat(self) -> None:
        self._alive = time.monotonic()
