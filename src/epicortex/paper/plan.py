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

from epicortex.config import Config, changed
from epicortex.paper.controls import CONTROLS
from epicortex.paper.published import DATA

#: The settings in which the runs of a plan differ; they share all others.
OWN_SETTINGS: Final = frozenset({"evolution.seed", "evolution.speciation", "data.source"})
_MODES: Final = {True: "speciation-on", False: "speciation-off"}
_PLACE: Final = re.compile(
    rf"(?P<data>[a-z0-9-]{{1,40}})/(?P<mode>{'|'.join(_MODES.values())})/((?P<control>[a-z]+)/)?"
    r"seed-(?P<seed>[1-9][0-9]{0,8})"
)


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

    @property
    def place(self) -> tuple[int, str, bool, int]:
        """Where it stands in the table: the paper's data sets first, controls after what they belong to."""
        known = [*DATA].index(self.data) if self.data in DATA else len(DATA)
        return known, self.data, not self.speciation, [None, *CONTROLS].index(self.control)


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

    @classmethod
    def at(cls, folder: str) -> PlannedRun | None:
        """The run whose place this is; None where it is no run's.

        >>> PlannedRun.at("mnist/speciation-on/founders/seed-3")
        PlannedRun(experiment=Experiment(data='mnist', speciation=True, control='founders'), seed=3)
        >>> PlannedRun.at("mnist/seed-3"), PlannedRun.at("../speciation-on/seed-3")
        (None, None)
        """
        match = _PLACE.fullmatch(folder)
        if not match or match["control"] not in (None, *CONTROLS):
            return None
        return cls(
            Experiment(match["data"], match["mode"] == _MODES[True], match["control"]), int(match["seed"])
        )

    @property
    def place(self) -> tuple[tuple[int, str, bool, int], int]:
        """Where it stands among all runs: by experiment, then by seed."""
        return self.experiment.place, self.seed

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
        return changed(
            self.config,
            evolution={"seed": run.seed, "speciation": run.experiment.speciation},
            data={"source": run.experiment.data},
        )


def found(out: Path) -> list[PlannedRun]:
    """The runs below an output folder, begun by whatever command, in the order of the table."""
    files = (*out.glob("*/*/seed-*/config.toml"), *out.glob("*/*/*/seed-*/config.toml"))
    runs = (PlannedRun.at(file.parent.relative_to(out).as_posix()) for file in files)
    return sorted((run for run in runs if run), key=lambda run: run.place)
