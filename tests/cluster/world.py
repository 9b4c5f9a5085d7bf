"""Whole runs on clusters: the command as it is typed, and what an undisturbed run leaves."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.contracts.world import PATIENCE
from tests.faults.world import SMALL

#: Long enough to be interrupted.
GENERATIONS = 15
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
        out, err = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    return program.returncode, out, err
