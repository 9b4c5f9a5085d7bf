"""Whole runs on clusters: the command as it is typed, and what an undisturbed run leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.contracts.world import PATIENCE, until
from tests.faults.world import SMALL

#: Long enough to be interrupted.
GENERATIONS = 15
EVOLVE = ["evolve", "digits", *SMALL, "--generations", str(GENERATIONS), "--quiet"]
COMMAND = [sys.executable, "-m", "epicortex"]


def start(
    *words: object, before: list[str] | None = None, cwd: Path | None = None, **environment: str
) -> subprocess.Popen[str]:
    """The command, perhaps begun by another such as mpiexec; it runs from now on."""
    return subprocess.Popen(
        [*(before or []), *COMMAND, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def at_work(folder: Path, program: subprocess.Popen[str]) -> bool:
    """Whether a run that was just begun, or resumed, has come to train."""
    seen = _journaled(folder)
    until(lambda: bool(_journaled(folder) - seen) or program.poll() is not None)
    return program.poll() is None


def _journaled(folder: Path) -> set[tuple[str, int]]:
    found = set()
    for path in (folder / "checkpoints").glob("*.journal"):
        with suppress(FileNotFoundError):  # its generation has just ended
            found.add((path.name, path.stat().st_size))
    return found


def run(
    *words: object, before: list[str] | None = None, cwd: Path | None = None, **environment: str
) -> tuple[int, str, str]:
    """The command from beginning to end: its exit code, what it printed, what it complained about."""
    program = start(*words, before=before, cwd=cwd, **environment)
    try:
        out, err = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    return program.returncode, out, err
