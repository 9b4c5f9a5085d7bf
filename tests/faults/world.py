"""What every fault test needs: the real command, what makes two runs the same, a count of what survived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.contracts.world import PATIENCE

#: Set for the long version, by `python -m tests.faults`.
THOROUGH: Final = bool(os.environ.get("EPICORTEX_THOROUGH"))
TABLE: Final = "EPICORTEX_FAULTS_TABLE"
TOKEN: Final = "EPICORTEX_FAULT_CASE"

#: A run that takes a second and in which everything happens. On a machine with much else to do, a worker may
#: take minutes to start.
SMALL: Final = (
    *("--training.hang-limit", str(PATIENCE)),
    *("--preset", "paper", "--training.fitness-on", "validation", "--seed", "3"),
    *("--evolution.initial-networks", "6", "--evolution.max-networks", "8"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "4"),
)
#: An optimiser that counts how many trainings began, in a file that grows by a byte for each.
#: Adadelta is not made by torch.optim itself: that would import torch's compiler, for seconds in each worker.
COUNTING: Final = """
import os
from epicortex.evaluation.optimisers import find_optimiser

def counted(parameters, **arguments):
    if sum(parameter.numel() for parameter in parameters) > 100:  # no network, but a look at the settings
        with open(os.environ["EPICORTEX_COUNT"], "ab", 0) as stream:
            stream.write(b"x")
    return find_optimiser("Adadelta")(parameters, **arguments)

optimisers = {"counted": counted}
"""


@dataclass(slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    memory: int
    """The most memory it held, in kilobytes."""
    seconds: float
    """How much processor time it took."""

    @property
    def refusal(self) -> str:
        """The one line it was refused with."""
        assert self.code > 0, self
        assert "Traceback" not in self.err, self.err
        assert "this is a bug" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("epicortex:")]
        assert len(lines) == 1, self.err
        return lines[0]


class Nursery:
    """Starts commands; see the module of that name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"EPICORTEX_DATA": str(folder / "data"), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | self.environment,
        )
        assert self._read() == "ready"

    def start(
        self,
        *words: object,
        die_at: tuple[str, int, str] | None = None,
        calls: Path | None = None,
        file_limit: int | None = None,
        memory_limit: int | None = None,
        **environment: str,
    ) -> Command:
        """A command that runs from now on."""
        token = uuid.uuid4().hex
        temporary = self.folder / token
        temporary.mkdir()
        request = {
            "words": [str(word) for word in words],
            "out": str(temporary / "out"),
            "err": str(temporary / "err"),
            "die_at": die_at,
            "calls": str(calls) if calls else None,
            "file_limit": file_limit,
            "memory_limit": memory_limit,
            "environment": {TOKEN: token, "EPICORTEX_COUNT": os.devnull, **environment},
        }
        return Command(self, int(self._ask(request)), token, temporary)

    def run(self, *words: object, **options: Any) -> Ended:
        """A command from beginning to end."""
        return self.start(*words, **options).wait()

    def wait(self, pid: int, seconds: float) -> dict[str, Any] | None:
        """See `Command.wait`."""
        answer: dict[str, Any] | None = json.loads(self._ask({"wait": pid, "seconds": seconds}))
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _ask(self, request: Mapping[str, Any]) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@dataclass(slots=True)
class Command:
    """A command that runs."""

    nursery: Nursery
    pid: int
    token: str
    folder: Path

    def wait(self, seconds: float = PATIENCE) -> Ended:
        """How it ended; not to end is a failure."""
        answer = self.nursery.wait(self.pid, seconds)
        if answer is None:
            os.kill(self.pid, signal.SIGKILL)
            self.nursery.wait(self.pid, 60)
            raise AssertionError(f"still running after {seconds} s: {self.err}")
        return Ended(answer["code"], self.out, self.err, answer["memory"], answer["seconds"])

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    @property
    def out(self) -> str:
        """What it has printed so far."""
        return (self.folder / "out").read_text(errors="replace")

    @property
    def err(self) -> str:
        """What it has complained about so far."""
        return (self.folder / "err").read_text(errors="replace")

    def workers(self) -> list[int]:
        """The processes that it has started and that still run."""
        return sorted(set(_with_token(self.token)) - {self.pid})


def _with_token(token: str) -> Iterator[int]:
    wanted = f"{TOKEN}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if wanted in environment.split(b"\0") and state != "Z":
                yield int(entry.name)


def same_bytes(run: Path) -> dict[str, Any]:
    """What has to be equal for two runs to count as the same."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    without_clock = [
        {name: value for name, value in line.items() if not name.endswith("seconds")} for line in history
    ]
    champion = {path.name: path.read_bytes() for path in sorted((run / "champion").iterdir())}
    return {"history": without_clock, "networks": (run / "networks.jsonl").read_bytes(), **champion}


@dataclass(slots=True)
class Tally:
    """How many cases of a fault were tried, and what was lost; kept in the table as they come."""

    fault: str
    survived: int = 0
    lost: list[str] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    """How many trainings were begun again, case by case, where that is counted."""
    saved: float = 0.0

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """One case: lost if anything is raised in it."""
        try:
            yield
        except Exception as error:
            text = " ".join(str(error).split())
            self.lost.append(f"{name}: {type(error).__name__}: {text[:1000]}")
        else:
            self.survived += 1
        if time.monotonic() - self.saved > 1:
            self.save()

    def save(self) -> None:
        """Append a row that takes the place of this test's rows before it."""
        self.saved = time.monotonic()
        if path := os.environ.get(TABLE):
            row = {
                "test": os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)"),
                "fault": self.fault,
                "survived": self.survived,
                "lost": self.lost,
                "repeated": self.repeated,
            }
            with Path(path).open("a") as stream:
                stream.write(json.dumps(row) + "\n")


@contextmanager
def counted(fault: str) -> Iterator[Tally]:
    """Counts the cases of a fault; all of them are tried, and then any that was lost is a failure."""
    tally = Tally(fault)
    try:
        yield tally
    finally:
        tally.save()
    assert tally.survived + len(tally.lost) > 0
    assert not tally.lost, "\n".join([f"{len(tally.lost)} lost of {fault}:", *tally.lost])
