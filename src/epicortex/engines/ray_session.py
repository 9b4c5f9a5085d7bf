"""This process's connection to Ray, of which there can be only one: made by the first engine that needs it,
shared by all, and ended with the last. One that the program itself has made is used and left as it is.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import ray
from ray._private import ray_constants
from ray._raylet import AuthenticationTokenLoader, Config

from epicortex.engines import ray_guard
from epicortex.errors import EngineError

#: Ray makes sockets some 62 characters below its folder, and a socket's path has at most 107.
_LONGEST_FOLDER: Final = 44
_PREFIX: Final = "epicortex-ray-"
_KNOCK_SECONDS: Final = 10.0
_JOIN_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2
#: How a client of HTTP/2 begins, with empty settings; whoever speaks it answers with settings.
_GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEAD: Final = 9
_SETTINGS_FRAME: Final = 4
_QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LOOPBACK: Final = ("127.0.0.1", "::1")


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
        try:
            name = secrets.token_hex(16)
            closed = _private() if self.address is None else nullcontext()
            with _guarded_folder(name) as folder, closed:
                try:
                    with _environment({ray_guard.MARK: name}):
                        _init(self.address, self._cpus, folder)
                    self.started.set()
                    self.finished.wait()
                finally:
                    ray.shutdown()
        except BaseException as error:
            self.problem = error
        finally:
            self.started.set()


_lock: Final = threading.Lock()
_session: _Session | None = None


@contextmanager
def connected(address: str | None, *, cpus: float, given_up: Callable[[], bool]) -> Iterator[None]:
    """Connected to the cluster at `address`; without one, to a Ray of our own with so many processors.

    `given_up` says whether to stop waiting for a cluster that does not answer.
    """
    session = _entered(address, cpus, given_up)
    try:
        yield
    finally:
        if session is not None:
            _left(session)


def _entered(address: str | None, cpus: float, given_up: Callable[[], bool]) -> _Session | None:
    global _session  # noqa: PLW0603  as there is one connection a process
    with _lock:
        if _session is None:
            if ray.is_initialized():
                return None
            session = _Session(address, cpus)
            session.start()
            _await(session, given_up)
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


def _await(session: _Session, given_up: Callable[[], bool]) -> None:
    """Wait until it has connected or failed, but not for ever: Ray itself may try for ten minutes."""
    waited = 0.0
    while not session.started.wait(_LOOK_SECONDS):
        waited += _LOOK_SECONDS
        if given_up() or (session.address is not None and waited >= _JOIN_SECONDS):
            session.finished.set()  # should it connect after all
            raise EngineError(f"the Ray cluster {session.address} did not answer within {waited:.0f} s")


def _init(address: str | None, cpus: float, folder: Path) -> None:
    # Workers begin in an empty folder: Ray would have them import from the program's current one.
    options: dict[str, Any] = {"address": address, "runtime_env": {"working_dir": str(folder / "empty")}}
    if address is not None:
        _knock(address)
    else:
        options |= {
            "address": "local",
            "num_cpus": math.ceil(cpus),
            "include_dashboard": False,
            "_temp_dir": str(folder / "r"),
        }
    with _environment(_QUIET), _only_errors(logging.getLogger("ray")):
        # What workers print stays in Ray's logs: it would run through the program's own output.
        ray.init(**options, log_to_driver=False, configure_logging=False, namespace="epicortex")
    if address is None and (listens := ray.nodes()[0]["NodeManagerAddress"]) not in _LOOPBACK:
        raise EngineError(f"it listens on {listens} and not on this machine alone; is this a newer Ray?")


@contextmanager
def _private() -> Iterator[None]:
    """A Ray that is started here listens on the loopback alone, and asks everyone for a token of ours."""
    # Ray reads these once, when it is imported; the first is how it stays local on a desktop.
    own = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }
    clustered, ray_constants.ENABLE_RAY_CLUSTER = ray_constants.ENABLE_RAY_CLUSTER, False
    try:
        with _environment(own, override=True):
            _read_token_again()
            yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = clustered
        _read_token_again()


def _read_token_again() -> None:
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def _knock(address: str) -> None:
    """Hear at once where nobody listens at HOST:PORT, or nobody who speaks as Ray does."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return
    with socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return  # the greeting would have to be in TLS
        connection.sendall(_GREETING)
        head = connection.makefile("rb").read(_FRAME_HEAD)
    if len(head) < _FRAME_HEAD or head[3] != _SETTINGS_FRAME:
        raise EngineError("whoever listens there does not speak as Ray does")


@contextmanager
def _guarded_folder(session: str) -> Iterator[Path]:
    """A folder that only this user can enter, whatever Ray does below it.

    A process of our own removes it at the end, with all that is left of this Ray, even if we are killed.
    """
    for place in (tempfile.gettempdir(), "/tmp"):
        if len(place) + len(f"/{_PREFIX}12345678/r") <= _LONGEST_FOLDER:
            break
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    for name in ("r", "empty"):
        (folder / name).mkdir()
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", ray_guard.__file__, session, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        guard.communicate()


@contextmanager
def _environment(values: dict[str, str], *, override: bool = False) -> Iterator[None]:
    """Variables that what is started here inherits; what a person has set stays, but for an `override`."""
    added = {name: value for name, value in values.items() if override or name not in os.environ}
    before = {name: os.environ[name] for name in added if name in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
        os.environ.update(before)


@contextmanager
def _only_errors(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
