"""Starts the real command many times at the price of one: imports everything once, then forks.

A child can be told to kill itself with SIGKILL at its n-th write, fsync, rename or removal, before, after or
in the middle of it, and to live with a limit on the size of files. Requests and answers are lines of JSON.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

#: What a child can die at: the calls by which anything in a run's folder changes.
CALLS: Final = {
    "write": ("write", "writev"),
    "fsync": ("fsync",),
    "rename": ("rename", "replace"),
    "remove": ("unlink", "rmdir", "ftruncate"),
}


def main() -> None:
    """Serve requests until standard input ends."""
    _import_everything()
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(json.dumps(_wait(request["wait"], request["seconds"])), flush=True)
        elif (pid := os.fork()) == 0:
            _be(request)
        else:
            print(pid, flush=True)


def _import_everything() -> None:
    # Much of this is imported late on purpose: what is left out here is paid for by every child.
    for name in (
        "torch",
        "tensorboard.compat.proto.event_pb2",
        "tensorboard.summary.writer.record_writer",
        "epicortex.champion.front",
        "epicortex.champion.module",
        "epicortex.cli.display",
        "epicortex.cli.evolve",
        "epicortex.cli.resume",
        "epicortex.cli.show",
        "epicortex.cli.progress",
        "epicortex.engines.processes",
        "epicortex.engines.serial",
        "epicortex.evaluation.backprop",
        "epicortex.evaluation.compiled",
        "epicortex.evaluation.trainer",
        "epicortex.families.layered.network",
        "epicortex.registry",
        "epicortex.report",
        "epicortex.run.lifecycle",
        "epicortex.run.lineage",
        "epicortex.run.record",
        "epicortex.storage.journal",
        "epicortex.storage.tensorboard",
        "rich.console",
        "rich.table",
    ):
        importlib.import_module(name)
    importlib.import_module("epicortex.data").load("digits")


def _wait(pid: int, seconds: float) -> dict[str, Any] | None:
    """How a child ended, how much memory it took, in kilobytes, and processor time; None if it has not."""
    deadline = time.monotonic() + seconds
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return {
                "code": os.waitstatus_to_exitcode(status),
                "memory": usage.ru_maxrss,
                "seconds": usage.ru_utime + usage.ru_stime,
            }
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


def _be(request: dict[str, Any]) -> NoReturn:
    """The child: the command, as if it had been typed."""
    from epicortex.cli import main as command

    os.environ.update(request["environment"])
    for number, (path, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), *((request[name], os.O_WRONLY | os.O_CREAT) for name in ("out", "err"))]
    ):
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin.close()
    if request["memory_limit"]:
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_limit"], resource.RLIM_INFINITY))
    if request["file_limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_limit"], resource.RLIM_INFINITY))
    _watch_calls(request["die_at"], request["calls"])
    code = command(request["words"])
    sys.stdout.flush()
    sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)  # taking a copy of all of torch apart would cost more than the run


def _watch_calls(die_at: tuple[str, int, str] | None, counts: str | None) -> None:
    """Count the calls of each kind, and die at the one that is asked for."""
    seen = dict.fromkeys(CALLS, 0)
    lock = threading.Lock()

    def watched(kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            with lock:
                seen[kind] += 1
                dies = die_at is not None and [kind, seen[kind]] == list(die_at[:2])
            if not dies:
                return real(*arguments, **named)
            how = die_at[2] if die_at else ""
            if how == "torn" and kind == "write":
                pieces = arguments[1]
                data = b"".join(pieces) if isinstance(pieces, list) else bytes(pieces)
                os_write(arguments[0], data[: len(data) // 2])
            elif how == "after":
                real(*arguments, **named)
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        return call

    os_write = os.write
    for kind, names in CALLS.items():
        for name in names:
            setattr(os, name, watched(kind, getattr(os, name)))
    if counts:

        def note() -> None:
            with open(counts, "w") as stream:  # noqa: PTH123  this does not pass through os.write
                json.dump(seen, stream)

        atexit.register(note)


if __name__ == "__main__":
    main()
