"""A small finished run, and the real command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from epicortex.cli import main
from tests.contracts.world import PATIENCE

Command: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]

#: Enough to see everything happen, small enough to take a second.
SMALL = (
    *("--engine", "serial", "--preset", "paper", "--training.portion", "0.2"),
    *("--evolution.initial-networks", "6", "--evolution.max-networks", "8"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "4"),
)


def words(*args: str) -> list[str]:
    """The command line of the real command."""
    return [sys.executable, "-m", "epicortex", *args]


def run_command(args: Sequence[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(*args),
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def epicortex(tmp_path: Path) -> Command:
    """Runs the real command in an empty folder."""

    def run(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_command(args, tmp_path, **variables)

    return run


class Here:
    """Runs the command in this process, where torch is loaded already, in an empty folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *args: str, code: int = 0) -> str:
        """What it prints; on standard error where it is refused."""
        self._capsys.readouterr()
        ended = main(args)
        out, err = self._capsys.readouterr()
        assert ended == code, err
        return err if code else out


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command in this process."""
    monkeypatch.chdir(tmp_path)
    return Here(capsys)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A finished run of five generations, and what the command said."""
    folder = tmp_path_factory.mktemp("finished")
    args = ("evolve", "digits", *SMALL, "--generations", "5", "--training.fitness-on", "validation")
    done = run_command(args, folder)
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "digits-1", done
