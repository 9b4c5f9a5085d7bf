"""One worker process, seen from its parent: started, given jobs, listened to, killed, reaped.

When to start one, and what to do when it dies, is left to `processes`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any, Final

from epicortex.ecosystem.jobs import Outcome
from epicortex.engines.channel import Channel, ChannelClosed
from epicortex.engines.serving import ENVIRONMENT, WorkerBroken, search_path
from epicortex.errors import EngineError

#: How long a worker may take to import torch and map the data, at least; slow disks exist.
START_LIMIT: Final = 120.0
#: So many workers in a row that die before they are ready mean that none ever will be.
MAX_FAILED_STARTS: Final = 3
_TICK: Final = 0.5
#: Its search path is the parent's, and nothing is imported before it is set.
_BOOT: Final = (
    "import json, sys; path, *rest = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from epicortex.engines.worker import main; main(*rest)"
)


class WorkerLost(Exception):
    """A worker died or hung; the message says how, such as `signal 9`."""


class WorkerProcess:
    """A worker process. Only one thread may use it, save for `kill`."""

    def __init__(self, module: str | None = None) -> None:
        """`module`: what the worker imports at once, while it waits for what it is to do."""
        if not sys.executable:
            raise EngineError(
                "there is no Python interpreter to start workers with; set training.engine to serial"
            )
        ours, theirs = socket.socketpair()
        arguments = json.dumps([search_path(), theirs.fileno(), os.getpid(), module])
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _BOOT, arguments],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **ENVIRONMENT},
                    process_group=0,  # Ctrl-C in a terminal is for the parent
                )
        except OSError as error:
            ours.close()
            raise EngineError(f"a worker process cannot be started: {error}") from None
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is there; a dead one is reaped by asking."""
        return self._process.poll() is None

    def prepare(self, setup: list[bytes | memoryview], hang_limit: float) -> None:
        """Hand in the encoded setup, and wait until the worker is ready."""
        limit = max(hang_limit, START_LIMIT)
        try:
            self._channel.send_encoded(setup, timeout=limit)
            kind, content = self._next(limit)
        except ChannelClosed:
            raise WorkerLost(self._death()) from None
        if kind == "broken":
            raise WorkerBroken(content)

    def run(self, job: list[bytes | memoryview], hang_limit: float) -> Outcome:
        """Have an encoded job done."""
        try:
            self._channel.send_encoded(job, timeout=hang_limit)
            while True:
                kind, content = self._next(hang_limit)
                if kind == "done":
                    outcome: Outcome = content
                    return outcome
        except ChannelClosed:
            raise WorkerLost(self._death()) from None

    def kill(self) -> None:
        """Kill it; harmless when it is dead. Workers keep nothing that would have to be saved."""
        self._process.kill()

    def end(self) -> None:
        """Kill and reap it, and close the connection."""
        self._process.kill()
        self._process.wait()
        self._channel.close()

    def _next(self, limit: float) -> tuple[str, Any]:
        """The next message. Silence is counted in ticks, so that a time in which this process itself was
        stopped does not count against the worker.
        """
        silent = 0.0
        while silent < limit:
            asked = time.monotonic()
            if self._channel.waits(min(_TICK, limit)):
                message: tuple[str, Any] = self._channel.receive(timeout=limit)
                return message
            silent += min(time.monotonic() - asked, 2 * _TICK)
        self._process.kill()
        raise WorkerLost(f"no sign of life for {limit:g} s")

    def _death(self) -> str:
        """How it died; one that only closed its end, or stalled, is killed."""
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return "it stopped answering"
        return f"signal {-code}" if code < 0 else f"exit code {code}"
