"""Runs as others read them: `show`, `report`, `compare`, `export`. Nothing is locked, written or executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from epicortex.champion import file as champions
from epicortex.champion.file import Champion
from epicortex.config import Config
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.plan import Plan
from epicortex.errors import StorageError
from epicortex.registry import Parts
from epicortex.storage import atomic, checkpoint, lines, plans
from epicortex.storage.atomic import LogMark
from epicortex.storage.folder import RunInfo, read_config
from epicortex.storage.lines import NetworkLine

_HISTORY: Final = "history.jsonl"
_NETWORKS: Final = "networks.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """A run, finished or still going on, as its files tell."""

    path: Path
    config: Config
    info: RunInfo
    history: list[Generation]
    """The complete generations, in order: the lines of history.jsonl."""
    marks: Mapping[str, LogMark] = field(default_factory=dict, repr=False)
    """How far the newest checkpoint vouches for the logs."""
    notes: tuple[str, ...] = ()
    """What a person should know: logs that somebody has removed."""
    plan: Plan | None = None
    """The plan of the last complete generation, where the run is planned."""

    def networks(self) -> Iterator[NetworkLine]:
        """Every network of every generation, line by line, without holding them all in memory."""
        if lines.is_gone(self.path / _NETWORKS, self.marks.get(_NETWORKS)):
            return iter(())
        return lines.read_networks(self.path / _NETWORKS, self.marks.get(_NETWORKS))

    def champion(self, parts: Parts | None = None) -> Champion:
        """The run's champion; a `StorageError` before the first generation is complete.

        `parts` holds the family, where it is a person's own.
        """
        return champions.read(self.path, parts)

    def check(self) -> None:
        """The logs are what the newest checkpoint says, no more and no less, and the champion can be read.

        Else a `StorageError`. A run whose checkpoints have been removed is taken as it is.
        """
        checkpoints = self.path / "checkpoints"
        if not self.marks and checkpoints.is_dir() and checkpoint.generations(checkpoints):
            raise StorageError(f"the newest checkpoint of {self.path} cannot be read")
        for name, mark in self.marks.items():
            if not atomic.matches(self.path / name, mark, exactly=True):
                raise lines.damaged(self.path / name)
        if self.history:
            self.champion()


def read_run(path: Path | str) -> RunRecord:
    """Read a run folder; anything in it that is damaged or not ours is a `StorageError` of one line."""
    path = Path(path)
    config, info = read_config(path)
    marks = checkpoint.read_marks(path, run=info.id)
    notes = [lines.gone(path / name) for name, mark in marks.items() if lines.is_gone(path / name, mark)]
    if lines.is_gone(path / _HISTORY, marks.get(_HISTORY)):
        history = lines.remembered(checkpoint.read_tally(path, run=info.id))
    else:
        history = lines.read_history(path / _HISTORY, marks.get(_HISTORY))
    plan = plans.read(path).get(history[-1].generation) if history else None
    return RunRecord(path, config, info, history, marks, tuple(notes), plan)


def load_champion(path: Path | str, parts: Parts | None = None) -> Champion:
    """The champion of a run folder, or of a model file by itself."""
    return champions.read(Path(path), parts)
