"""The command: as a real process, or in this one where only what it says matters.

A process of its own imports everything anew, which takes longer than most of these commands do.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import warnings
from pathlib import Path

from epicortex.cli import main
from tests.contracts.world import PATIENCE


def command(*words: str | Path) -> list[str]:
    """The words of a real process."""
    return [sys.executable, "-m", "epicortex", *map(str, words)]


def run(*words: str | Path) -> str:
    """What a real process prints; it has to succeed."""
    done = subprocess.run(command(*words), check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def here(*words: str | Path, code: int = 0) -> str:
    """What the command prints in this process; on standard error if it has to fail."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a process of its own would print them
        ended = main(list(map(str, words)))
    assert ended == code, err.getvalue()
    return err.getvalue() if code else out.getvalue()


def refusal(*words: str | Path) -> str:
    """The one line that a command is refused with."""
    (line,) = here(*words, code=2).splitlines()
    return line
