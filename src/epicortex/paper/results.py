"""What the runs of an experiment came to, read from their folders: figures, curves, costs, how each ended.

Every run that was begun is listed. Those that count are finished and have the settings of the experiment;
of the others it is said why they do not. One that counted may have been kept (see `results_file`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from epicortex.config import Config
from epicortex.config.fields import shown, value_of
from epicortex.ecosystem import budget
from epicortex.ecosystem.history import Generation, total_seconds
from epicortex.errors import EpiCortexError
from epicortex.pages.commands import evolve_command
from epicortex.paper.controls import of_lineage
from epicortex.paper.execution import between_experiments, differences, expected, is_finished, portable
from epicortex.paper.plan import Experiment, Plan, PlannedRun, found
from epicortex.run.record import RunRecord, read_run
from epicortex.storage import NetworkLine

#: Mutations that add or remove nodes and layers: what the paper calls structural.
STRUCTURAL: Final = frozenset({"layer", "node"})
_NO_ORIGINAL: Final = "the run it belongs to, {}, is not finished"


@dataclass(frozen=True, slots=True)
class ComparedGeneration(Generation):
    """A generation with what the published code says of it."""

    average_untrained: float | None
    """The average fitness if newborns count with that before their training, as in the published code."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to. Fitness is a fraction from 0 to 1."""

    history: tuple[ComparedGeneration, ...]
    spent: tuple[int, ...]
    """The trainings after each generation."""
    whole: int
    """The generations in which all networks were trained: of a run with a budget not always the last."""
    seconds: float
    champion: float
    """The highest fitness of any generation."""
    champion_parameters: int
    test: float | None
    """The champion's accuracy on the test set, whether or not that was its fitness."""
    tried: int | None
    """Attempts to add or remove nodes and layers, of networks that lived on to the next generation; None
    where that is not on record."""
    refused: int | None
    """Those of them that were refused."""
    lineage: int | None = None
    """Of the control with the champion's structure: the trainings of the original champion's lineage."""

    def until(self, generation: int) -> Figures:
        """The same run as it stood after a generation."""
        return replace(
            self,
            history=self.history[:generation],
            spent=self.spent[:generation],
            whole=min(self.whole, generation),
        )

    @property
    def trainings(self) -> int:
        """What it cost."""
        return self.spent[-1]

    def last(self, measure: str) -> float | None:
        """A field of the last generation in which all were trained; the highest fitness of the very last.

        Networks that were only scored since the budget ended, newborns above all, would lower a mean.
        """
        line = self.history[-1 if measure == "highest_fitness" else max(1, self.whole) - 1]
        value: float | None = getattr(line, measure)
        return value


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that counted, as it was kept; its folder may be gone, or on another machine."""

    run: PlannedRun
    config: Config
    """The settings that all runs of its experiment share."""
    command: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that was begun."""

    run: PlannedRun
    done: int
    """Complete generations."""
    command: str
    """A command that gives the same figures."""
    figures: Figures | None
    """What it came to so far; None before its first generation is complete, or where it cannot be read."""
    why_not: str = ""
    """Why it does not count; empty where it does."""
    kept: bool = False
    """Whether its figures were kept, and not read from its folder."""
    backend: str = "auto"
    """The arithmetic it settled on."""

    @property
    def counts(self) -> bool:
        """Whether it is finished, with the settings of the experiment."""
        return not self.why_not


@dataclass(frozen=True, slots=True)
class Results:
    """All that there is to report."""

    plan: Plan
    runs: tuple[BegunRun, ...]
    """Every run that was begun, in the order of the table."""
    due: tuple[PlannedRun, ...]
    """Those of the plan that were not begun."""
    counted: dict[Experiment, tuple[Figures, ...]] = field(default_factory=dict)

    def of(self, experiment: Experiment) -> tuple[Figures, ...]:
        """The runs that count of one experiment, in the order of their seeds."""
        return self.counted.get(experiment, ())

    @property
    def experiments(self) -> list[Experiment]:
        """The experiments that were planned or begun, in the order of the table; controls after theirs."""
        runs = [*(one.run for one in self.runs), *self.due]
        return sorted({run.experiment for run in runs}, key=lambda one: one.place)

    @property
    def complete(self) -> bool:
        """Whether every run of the plan is finished and counts."""
        return not self.due and all(one.counts for one in self.runs)


def read_results(plan: Plan, out: Path, kept: Iterable[Kept] = ()) -> Results:
    """Read everything below an output folder; where a run there does not count, one kept may do instead."""
    runs = {run: _begun(plan, run, out) for run in found(out)}
    for record in kept:
        here, there = runs.get(record.run), _from_kept(plan, record)
        if here is None or (there.counts and not here.counts):
            runs[record.run] = there
    runs |= {run: _beside_original(one, runs.get(run.original)) for run, one in runs.items() if one.kept}
    begun = sorted(runs.values(), key=lambda one: one.run.place)
    counted: dict[Experiment, list[Figures]] = {}
    for one in begun:
        if one.counts and one.figures is not None:
            counted.setdefault(one.run.experiment, []).append(one.figures)
    due = tuple(run for run in plan.planned() if run not in runs)
    return Results(plan, tuple(begun), due, {name: tuple(figures) for name, figures in counted.items()})


def figures(record: RunRecord) -> Figures:
    """What one finished run came to, whatever folder it is in."""
    tally, averages = _over_networks(record.networks())
    facts = record.champion().facts
    measured_there = facts.fitness_on == "test" and record.config.training.fitness == "accuracy"
    return Figures(
        history=tuple(
            ComparedGeneration(**asdict(line), average_untrained=averages.get(line.generation))
            for line in record.history
        ),
        spent=tuple(budget.totals(record.history, record.config)),
        whole=budget.whole(record.history, record.config),
        seconds=total_seconds(record.history),
        champion=facts.fitness,
        champion_parameters=record.champion().outline.parameters,
        test=facts.fitness if measured_there else facts.test_accuracy,
        tried=tally.total(),
        refused=tally["refused"],
    )


def values(runs: Iterable[Figures], measure: str) -> list[float]:
    """What each run came to in one measure; those without it are left out."""
    return [value for run in runs if (value := run.last(measure)) is not None]


def repeating(config: Config, folder: Path) -> str:
    """A command that gives the same figures, on any machine: without what decides nothing but the time.

    >>> from epicortex.config import changed
    >>> config = changed(Config(), evolution={"seed": 3}, data={"source": "mnist", "directory": "/d"})
    >>> repeating(config, Path("again"))
    'epicortex evolve mnist --preset paper --evolution.seed 3 --out again'
    """
    return evolve_command(portable(config), str(folder)).replace(" \\\n  ", " ")


def _begun(plan: Plan, run: PlannedRun, out: Path) -> BegunRun:
    try:
        record = read_run(out / run.folder)
        own = figures(record) if record.history else None
    except EpiCortexError as error:
        return BegunRun(run, 0, "", None, f"it cannot be read: {error}")
    try:
        why_not = _why_not(record, expected(plan, run, out), run)
    except EpiCortexError as error:
        # Of a control: its original is another run than it should be.
        why_not = str(error)
    if own is not None and not why_not and run.experiment.control == "champion":
        own = replace(own, lineage=of_lineage(read_run(out / run.original.folder)))
    command, backend = repeating(record.config, run.folder), record.config.training.backend
    return BegunRun(run, len(record.history), command, own, why_not, backend=backend)


def _from_kept(plan: Plan, kept: Kept) -> BegunRun:
    generations = len(kept.figures.history)
    names = between_experiments(kept.config, plan.config)
    why_not = _other_settings(names, kept.config, plan.config)
    backend = kept.config.training.backend
    return BegunRun(kept.run, generations, kept.command, kept.figures, why_not, kept=True, backend=backend)


def _beside_original(one: BegunRun, original: BegunRun | None) -> BegunRun:
    """A control that was kept counts only beside a run that cost as much."""
    if one.run.experiment.control is None or not one.counts:
        return one
    if original is None or not original.counts or one.figures is None or original.figures is None:
        return replace(one, why_not=_NO_ORIGINAL.format(one.run.original.folder))
    own, others = one.figures.trainings, original.figures.trainings
    if own == others:
        return one
    return replace(
        one, why_not=f"it has {own:,} trainings, and {one.run.original.folder} beside it took {others:,}"
    )


def _other_settings(names: Iterable[str], config: Config, wanted: Config) -> str:
    other = [
        f"{name} is {shown(value_of(config, name))}, not {shown(value_of(wanted, name))}" for name in names
    ]
    return f"other settings: {'; '.join(other[:3])}" if other else ""


def _why_not(record: RunRecord, config: Config | None, run: PlannedRun) -> str:
    """Why a run does not count; empty where it does."""
    if config is None:
        return _NO_ORIGINAL.format(run.original.folder)
    if other := _other_settings(differences(record.config, config), record.config, config):
        return other
    if not is_finished(record, config):
        limits = config.evolution
        spent = budget.spent(record.history, config)
        if limits.trainings is not None:
            return f"not finished: {spent:,} of {limits.trainings:,} trainings"
        return f"not finished: {len(record.history)} of {limits.generations} generations"
    return ""


def _over_networks(lines: Iterable[NetworkLine]) -> tuple[Counter[str], dict[int, float]]:
    """What became of the attempts to add or remove nodes and layers; the averages with newborns untrained."""
    tally: Counter[str] = Counter()
    fitness: dict[int, list[float]] = {}
    for line in lines:
        tally.update(event.outcome for event in line.events if event.type in STRUCTURAL)
        before = line.fitness_before_training
        if line.fitness is not None:
            fitness.setdefault(line.generation, []).append(line.fitness if before is None else before)
    return tally, {generation: math.fsum(own) / len(own) for generation, own in fitness.items()}
