"""A file of runs, one JSON line for each thing that happened to a run: started, finished or failed.

A run whose start is there and whose end is not was broken off; one that was done again, with later code, was
replaced. Nothing is ever removed, so that every run that was begun is reported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from epicortex.errors import StorageError

Ending: TypeAlias = Literal["finished", "failed", "broken off", "replaced"]


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What one run is of."""

    data: str
    """A built-in name or a path."""
    minutes: float
    cores: int
    arm: str
    seed: int

    @property
    def data_name(self) -> str:
        """The data set as tables call it."""
        return Path(self.data).name

    @property
    def name(self) -> str:
        """A name for files, such as mnist-10min-ours-1."""
        return f"{self.data_name}-{self.minutes:g}min-{self.arm}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was started, and what became of it."""

    number: int
    key: Key
    start: Mapping[str, Any]
    ending: Ending = "broken off"
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What a finished run found, or the reason of a failure."""


class Ledger:
    """The runs of a file, in the order in which they were started."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def runs(self) -> list[Run]:
        """All runs; a last line that was cut off counts as not written."""
        found: dict[int, Run] = {}
        for line in self._lines():
            number, event = line["run"], line["event"]
            key = Key(**{name: line[name] for name in Key.__dataclass_fields__})
            if event == "started":
                found[number] = Run(number, key, line)
            else:
                found[number] = Run(number, key, found[number].start, event, line)
        last = {run.key: run.number for run in found.values() if run.ending == "finished"}
        return [
            replace(run, ending="replaced")
            if run.ending == "finished" and last[run.key] != run.number
            else run
            for run in found.values()
        ]

    def finished(self, key: Key) -> Run | None:
        """The last run of a key that came to its end."""
        return next((run for run in self.runs() if run.key == key and run.ending == "finished"), None)

    def start(self, key: Key, **facts: Any) -> int:
        """Note that a run begins; gives its number."""
        number = 1 + max((run.number for run in self.runs()), default=0)
        self._append({"event": "started", "run": number, **asdict(key), **facts})
        return number

    def end(self, number: int, key: Key, event: Ending, figures: Mapping[str, Any]) -> None:
        """Note what a run came to."""
        self._append({"event": event, "run": number, **asdict(key), **figures})

    def _lines(self) -> Iterable[dict[str, Any]]:
        try:
            whole = self.path.read_bytes().split(b"\n")[:-1]
            return [json.loads(line) for line in whole]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StorageError(f"{self.path} cannot be read as lines of runs: {error}") from None

    def _append(self, line: Mapping[str, Any]) -> None:
        """Add a line, durable when this returns, in the place of one that was cut off."""
        text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
