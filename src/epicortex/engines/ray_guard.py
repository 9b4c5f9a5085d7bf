"""Ends a Ray of ours when its program is gone, however it went: a process that waits for nothing else.

It is started by `ray_session`, never by a person. Ray's agents outlive a program that was killed by minutes.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: In the environment of every process of the Ray, and of no other.
MARK = "EPICORTEX_RAY"
_TICK = 0.1
_CALM_TICKS = 5


def main(session: str, folder: str) -> None:
    """Wait until standard input ends; then kill what is left of the session, and remove its folder."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    calm = 0
    while calm < _CALM_TICKS:  # one that was just starting another may have been killed
        found = list(_processes(f"{MARK}={session}".encode()))
        for pid in found:
            with suppress(ProcessLookupError):  # it went by itself
                os.kill(pid, signal.SIGKILL)
        calm = 0 if found else calm + 1
        time.sleep(_TICK)
    shutil.rmtree(folder, ignore_errors=True)


def _processes(mark: bytes) -> Iterator[int]:
    """Those of this user that have the mark; a dead one that nobody has reaped shows no environment."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
