"""Whole runs on clusters: the command as it is typed, and what an undisturbed run leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.world import SMALL

#: Long enough to be interrupted.
GENERATIONS = 30
EVOLVE = ["evolve", "digits", *SMALL, "--generations", str(GENERATIONS), "--quiet"]
COMMAND = [sys.executable, "-m", "epicortex"]


def start(*words: object, before: list[str] | None = None, **environment: str) -> subprocess.Popen[str]:
    """The command, perhaps begun by another such as mpiexec; it runs from now on."""
    return subprocess.Popen(
        [*(before or []), *COMMAND, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def run(*words: object, before: list[str] | None = None, **environment: str) -> tuple[int, str, str]:
    """The command from beginning to end: its exit code, what it printed, what it complained about."""
    program = start(*words, before=before, **environment)
    try:
        out, err = program.communicate(timeout=600)
    finally:
        program.kill()
    return program.returncode, out, err


def descendants(pid: int) -> set[int]:
    """All processes below one, zombies aside."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        mine = {int(child) for task in tasks for child in (task / "children").read_text().split()}
    except OSError:
        return set()
    return mine.union(*map(descendants, mine))
