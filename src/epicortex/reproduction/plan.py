"""Which runs an experiment consists of, in which order, with which settings, and where each is kept.

Seeds come first: one run of everything is worth more than many of one thing. A control follows the run it
belongs to, since it is given that run's budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from epicortex.config import Config
from epicortex.reproduction.controls import CONTROLS
from epicortex.reproduction.published import DATA

_MODES: Final = {True: "speciation-on", False: "speciation-off"}
_SEED: Final = re.compile(r"seed-([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A row of the table: runs that differ in their seeds only."""

    data: str
    speciation: bool
    control: str | None = None

    @property
    def folder(self) -> Path:
        """Where its runs are.

        >>> str(Experiment("mnist", True).folder), str(Experiment("svhn", False, "founders").folder)
        ('mnist/speciation-on', 'svhn/speciation-off/founders')
        """
        return Path(self.data, _MODES[self.speciation], *filter(None, [self.control]))

    @property
    def title(self) -> str:
        """As people call it.

        >>> Experiment("mnist", False).title, Experiment("digits", True, "mutation").title
        ('MNIST, no speciation', 'digits, speciation, mutation only')
        """
        control = [CONTROLS[self.control].title] if self.control else []
        mode = "speciation" if self.speciation else "no speciation"
        return ", ".join([DATA.get(self.data, self.data), mode, *control])

    @property
    def original(self) -> Experiment:
        """The experiment that a control belongs to."""
        return Experiment(self.data, self.speciation)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run."""

    experiment: Experiment
    seed: int

    @property
    def folder(self) -> Path:
        """Its place below the output folder.

        >>> str(PlannedRun(Experiment("mnist", True), 3).folder)
        'mnist/speciation-on/seed-3'
        """
        return self.experiment.folder / f"seed-{self.seed}"

    @property
    def original(self) -> PlannedRun:
        """The run that a control belongs to."""
        return PlannedRun(self.experiment.original, self.seed)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run."""

    config: Config
    """The settings that all runs share."""
    data: tuple[str, ...]
    speciation: tuple[bool, ...]
    runs: int
    controls: tuple[str, ...] = ()

    def planned(self) -> Iterator[PlannedRun]:
        """All runs, in order."""
        for seed in range(1, self.runs + 1):
            for data in self.data:
                for speciation in self.speciation:
                    for control in (None, *self.controls):
                        yield PlannedRun(Experiment(data, speciation, control), seed)

    def configured(self, run: PlannedRun) -> Config:
        """The settings of a run that is not a control."""
        return self.config.with_changes(
            evolution={"seed": run.seed, "speciation": run.experiment.speciation},
            data={"source": run.experiment.data},
        )


def found(out: Path) -> Iterator[PlannedRun]:
    """The runs below an output folder, begun by whatever command, in the order of the table."""
    names = sorted(path.name for path in out.iterdir() if path.is_dir()) if out.is_dir() else []
    order = [*DATA, *(name for name in names if name not in DATA)]
    for data in (name for name in order if name in names):
        for speciation in _MODES:
            for control in (None, *CONTROLS):
                experiment = Experiment(data, speciation, control)
                for seed in _seeds(out / experiment.folder):
                    yield PlannedRun(experiment, seed)


def _seeds(folder: Path) -> list[int]:
    """The seeds of the runs in a folder that have begun."""
    if not folder.is_dir():
        return []
    matches = (_SEED.fullmatch(path.parent.name) for path in folder.glob("seed-*/config.toml"))
    return sorted(int(match[1]) for match in matches if match)
