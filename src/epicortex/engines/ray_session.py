"""This process's connection to Ray, of which there can be only one: made by the first engine that needs it,
shared by all, and ended with the last. One that the program itself has made is used and left as it is.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import ray

from epicortex.errors import EngineError

#: Ray makes sockets some 62 characters below its folder, and a socket's path has at most 107.
_LONGEST_FOLDER: Final = 44
_KNOCK_SECONDS: Final = 30.0
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class _Session(threading.Thread):
    """A thread that connects, holds the connection, and ends it.

    Linux ends a local Ray with the thread that started it, so this must be one that outlives all users.
    Signal handlers, too, can be set in the main thread only: Ray leaves the program's alone here.
    """

    def __init__(self, address: str | None, cpus: float) -> None:
        super().__init__(name="epicortex-ray-session", daemon=True)
        self.address = address
        self.users = 0
        self.problem: BaseException | None = None
        self.started = threading.Event()
        self.finished = threading.Event()
        self._cpus = cpus

    def run(self) -> None:
        folder: Path | None = None
        try:
            if self.address is None:
                folder = _temporary_folder()
            _init(self.address, self._cpus, folder)
            self.started.set()
            self.finished.wait()
        except BaseException as error:
            self.problem = error
        finally:
            self.started.set()
            ray.shutdown()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


_lock: Final = threading.Lock()
_session: _Session | None = None


@contextmanager
def connected(address: str | None, *, cpus: float) -> Iterator[None]:
    """Connected to the cluster at `address`; without one, to a Ray of our own with so many processors."""
    session = _entered(address, cpus)
    try:
        yield
    finally:
        if session is not None:
            _left(session)


def _entered(address: str | None, cpus: float) -> _Session | None:
    global _session  # noqa: PLW0603  as there is one connection a process
    with _lock:
        if _session is None:
            if ray.is_initialized():
                return None
            session = _Session(address, cpus)
            session.start()
            session.started.wait()
            if session.problem is not None:
                session.join()
                where = f"the Ray cluster {address} cannot be joined" if address else "Ray cannot be started"
                reason = " ".join(str(session.problem).split()) or type(session.problem).__name__
                raise EngineError(f"{where}: {reason}")
            _session = session
        elif _session.address != address:
            raise EngineError("this process is connected to another Ray already; close that engine first")
        _session.users += 1
        return _session


def _left(session: _Session) -> None:
    global _session  # noqa: PLW0603
    with _lock:
        session.users -= 1
        if session.users == 0:
            _session = None
            session.finished.set()
            session.join()


def _init(address: str | None, cpus: float, folder: Path | None) -> None:
    if address is not None:
        _knock(address)
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {
            "address": "local",
            "num_cpus": math.ceil(cpus),
            "include_dashboard": False,
            "_temp_dir": str(folder),
        }
    with _environment(_QUIET), _only_errors(logging.getLogger("ray")):
        # What workers print stays in Ray's logs: it would run through the program's own output.
        ray.init(**options, log_to_driver=False, configure_logging=False, namespace="epicortex")


def _knock(address: str) -> None:
    """Hear at once where nobody listens at HOST:PORT. Ray would try for two minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


def _temporary_folder() -> Path:
    place = tempfile.gettempdir()
    with suppress(OSError):
        folder = tempfile.mkdtemp(prefix="epicortex-", dir=place)
        if len(folder) <= _LONGEST_FOLDER:
            return Path(folder)
        Path(folder).rmdir()
    return Path(tempfile.mkdtemp(prefix="epicortex-", dir="/tmp"))


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables that what is started here inherits, where a person has not set them."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _only_errors(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
