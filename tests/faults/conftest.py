"""The nursery, and the undisturbed run that all others have to equal."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.world import until
from tests.faults.world import COUNTING, SMALL, Command, Nursery, same_bytes

GENERATIONS = 3


@dataclass(frozen=True)
class Reference:
    """A run that nothing disturbed."""

    words: tuple[str, ...]
    """The command that it was begun with, without --out."""
    plugin: Path
    path: Path
    bytes: dict[str, Any]
    trainings: int
    """How many there were."""
    calls: dict[str, int]
    """How many writes, fsyncs and so on it took."""


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    if sys.platform != "linux":
        pytest.skip("looks at processes through /proc")
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture
def memory() -> Iterator[Path]:
    """An empty folder, in memory where that can be had: for tests that write files by the thousand."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(
        prefix="faults-", dir=shared if os.access(shared, os.W_OK) else None
    ) as folder:
        yield Path(folder)


def make_reference(nursery: Nursery, folder: Path, generations: int, *more: str) -> Reference:
    """A run to the end, counted."""
    import json

    plugin = folder / "counting.py"
    plugin.write_text(COUNTING)
    words = (
        *("evolve", "digits", *SMALL, "--generations", str(generations), "--engine", "serial"),
        *("--training.optimiser", "counted", "--plugin", str(plugin), *more),
    )
    count, calls = folder / "count", folder / "calls"
    ended = nursery.run(*words, "--out", folder / "run", calls=calls, EPICORTEX_COUNT=str(count))
    assert ended.code == 0, ended
    return Reference(
        words,
        plugin,
        folder / "run",
        same_bytes(folder / "run"),
        count.stat().st_size,
        json.loads(calls.read_text()),
    )


@pytest.fixture(scope="session")
def reference(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return make_reference(nursery, tmp_path_factory.mktemp("reference"), GENERATIONS)


#: Trains one generation, and waits for a file before it goes on: there is time to do something about the run,
#: and no more than it takes.
HELD = """
import os, time
from epicortex.evaluation.optimisers import find_optimiser

def held(parameters, **arguments):
    run = os.environ["EPICORTEX_HELD"]
    if os.path.exists(os.path.join(run, "checkpoints", "00000001")) and not os.path.exists(run + ".held"):
        open(run + ".held", "w").close()
        while not os.path.exists(run + ".go"):
            time.sleep(0.01)
    return find_optimiser("Adadelta")(parameters, **arguments)

optimisers = {"counted": held}
"""


@dataclass(frozen=True)
class Held:
    """Starts the reference run, which waits after its first checkpoint until it may go on."""

    nursery: Nursery
    words: tuple[str, ...]

    def start(self, run: Path) -> Command:
        """A run that waits in a later generation."""
        command = self.nursery.start(*self.words, "--out", run, EPICORTEX_HELD=str(run))
        assert until(run.with_name(f"{run.name}.held").exists), command.err
        return command

    def go(self, run: Path) -> None:
        """Let it go on."""
        run.with_name(f"{run.name}.go").touch()


@pytest.fixture
def held(nursery: Nursery, reference: Reference, tmp_path: Path) -> Held:
    plugin = tmp_path / "held.py"
    plugin.write_text(HELD)
    words = tuple(str(plugin) if word == str(reference.plugin) else word for word in reference.words)
    return Held(nursery, words)


#: Trains so slowly that there is time to do something about it, and notes which process is at work.
SLOW = """
import os, time
from epicortex.evaluation.optimisers import find_optimiser

def slow(parameters, **arguments):
    if sum(parameter.numel() for parameter in parameters) > 100:
        with open(os.environ["EPICORTEX_COUNT"], "a") as stream:
            stream.write(f"{os.getpid()}\\n")
        time.sleep(0.3)
    return find_optimiser("Adadelta")(parameters, **arguments)

optimisers = {"counted": slow}
"""


@pytest.fixture
def slow(reference: Reference, tmp_path: Path) -> tuple[str, ...]:
    """The reference run with its time drawn out; its bytes stay the same."""
    plugin = tmp_path / "slow.py"
    plugin.write_text(SLOW)
    return tuple(str(plugin) if word == str(reference.plugin) else word for word in reference.words)
