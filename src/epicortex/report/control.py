"""Pausing and continuing a run from outside: its process, a signal that ends it cleanly, and `resume`.

A run is paused by ending its process, which loses nothing, and continued by a new one that resumes it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

from epicortex.errors import RunError
from epicortex.storage import lock

_OURS: Final = b"epicortex"
#: So many words of a command line name its program: the interpreter, its options, and ours.
_PROGRAM: Final = 4


class Control:
    """Holds the process that it has started, if any; others it finds by the lock of the run's folder."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._child: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether a process is at work on the run."""
        return self._holder() is not None

    @property
    def trouble(self) -> str:
        """The last line that a process of ours said before it failed; empty where none did."""
        if self._child is None or self._said is None or self._child.poll() in (None, 0, 130, 143):
            return ""
        self._said.seek(0)
        lines = self._said.read(10_000).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "the run cannot be continued"

    def pause(self) -> None:
        """Ask the run's process to end as soon as what it has is written."""
        process = self._holder()
        if process is None:
            return
        if not _is_command(process):
            raise RunError(f"the run was begun by a program (process {process}): stop it there")
        try:
            os.kill(process, signal.SIGTERM)
        except OSError as error:
            raise RunError(f"process {process} cannot be asked to stop: {error.strerror}") from None

    def resume(self) -> None:
        """Go on in a process of its own, which lives on without this one."""
        if self.running:
            return
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 it is read when the process has ended
        command = [sys.executable, "-m", "epicortex", "resume", str(self._run), "--quiet"]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
        )

    def _holder(self) -> int | None:
        """The process at work on the run, by its number."""
        if self._child is not None and self._child.poll() is None:
            return self._child.pid
        try:
            text = (self._run / lock.NAME).read_text("ascii", "replace").strip()
        except OSError:
            return None
        if not text.isdecimal() or len(text) > 10 or int(text) == os.getpid():
            return None
        # In this order: the lock is only tried while somebody may have it.
        return int(text) if _is_alive(int(text)) and lock.is_held(self._run) else None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _is_command(process: int) -> bool:
    """Whether a process is one of our commands, which end cleanly when asked to; others may not."""
    if not Path("/proc/self").exists():
        return True  # a system that does not tell
    try:
        words = Path("/proc", str(process), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return _OURS in map(os.path.basename, words[:_PROGRAM])
