"""How long runs take: seconds a training, from runs that are there or from a short measurement.

Networks grow and shrink as they evolve, so an estimate is no promise; it decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from epicortex import engines
from epicortex.config import Config
from epicortex.ecosystem import budget
from epicortex.ecosystem.history import History, total_seconds
from epicortex.errors import StorageError
from epicortex.paper.execution import State, check_control, expected, state_of
from epicortex.paper.plan import Experiment, Plan, PlannedRun, found
from epicortex.run import assembly
from epicortex.run.assembly import Extensions
from epicortex.run.record import read_run

#: How many founders a measurement trains, for each worker.
_SAMPLE: Final = 4


#: What the pace hangs on: the data set, and whether there are species, since without them networks grow.
Kind: TypeAlias = tuple[str, bool]


def kind(experiment: Experiment) -> Kind:
    """What the pace of an experiment's runs hangs on."""
    return experiment.data, experiment.speciation


@dataclass(slots=True)
class Pace:
    """Seconds a training, by data set and mode, learned from whatever generations there are."""

    seconds: dict[Kind, float] = field(default_factory=dict)
    trainings: dict[Kind, int] = field(default_factory=dict)

    def add(self, kind: Kind, seconds: float, trainings: int) -> None:
        """Take in so many trainings, and the seconds they took together."""
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds
        self.trainings[kind] = self.trainings.get(kind, 0) + trainings

    def copy(self) -> Pace:
        """Another that can learn on its own."""
        return Pace(dict(self.seconds), dict(self.trainings))

    def of(self, kind: Kind) -> float | None:
        """The seconds of a training of this kind, else on this data, else on any; None where none is known.

        >>> pace = Pace()
        >>> pace.add(("mnist", True), 30.0, 60)
        >>> pace.of(("mnist", True)), pace.of(("mnist", False)), pace.of(("svhn", True))
        (0.5, 0.5, 0.5)
        >>> Pace().of(("mnist", True)) is None
        True
        """
        known = [other for other, number in self.trainings.items() if number]
        near = [other for other in known if other == kind] or [one for one in known if one[0] == kind[0]]
        names = near or known
        trainings = sum(self.trainings[name] for name in names)
        return sum(self.seconds[name] for name in names) / trainings if trainings else None


def trainings(config: Config) -> int:
    """About how many trainings a run takes: its budget, or as many as fit while it grows to its limit.

    With k offspring born, the next has a chance of about 1/(2(k + 1)): n visits give about √n of them.

    >>> two = Config(evolution={"generations": 2})
    >>> trainings(two), trainings(Config(evolution={"trainings": 500}))
    (136, 500)
    >>> trainings(Config(evolution={"generations": 2}, budget={"newborns": "scored"}))
    128
    """
    settings, scored = config.evolution, config.budget.newborns == "scored"
    if settings.trainings is not None:
        return settings.trainings
    total, networks = 0, settings.initial_networks
    untrained = networks if config.budget.founders == "scored" else 0
    for _ in range(settings.generations):
        total += networks - untrained
        newborns = math.isqrt(networks) if settings.evolve else 0
        untrained = newborns if scored else 0
        networks = min(settings.max_networks, networks + newborns)
    return total


@dataclass(frozen=True, slots=True)
class Due:
    """A run, how it stands with it, and about how many trainings it still takes."""

    run: PlannedRun
    state: State
    trainings: int

    def seconds(self, pace: Pace) -> float | None:
        """About how long that takes."""
        each = pace.of(kind(self.run.experiment))
        return None if each is None else each * self.trainings


def survey(plan: Plan, out: Path, kept: Collection[PlannedRun] = ()) -> list[Due]:
    """All runs of a plan as they stand; a `ConfigError` where one was begun with other settings.

    One that is kept need not be finished, unless a control that is not kept belongs to it.
    """
    needed = {run.original for run in plan.planned() if run not in kept}
    due = {run: _due(plan, run, out) for run in plan.planned()}

    def spared(run: PlannedRun) -> bool:
        finished = due[run].state == due[run.original].state == "finished"
        return run in kept and run not in needed and not finished

    return [Due(run, "kept", 0) if spared(run) else one for run, one in due.items()]


def _due(plan: Plan, run: PlannedRun, out: Path) -> Due:
    try:
        config = expected(plan, run, out)
        if config is None:
            check_control(plan, run, out)
            return _waiting(plan, run, out)
        state = state_of(out / run.folder, config)
    except StorageError:
        # Only this run is concerned: what is wrong with it is said when its turn comes.
        return Due(run, "damaged", 0)
    if state == "finished":
        return Due(run, state, 0)
    left = trainings(config)
    if state == "begun":
        left -= budget.spent(_history(out / run.folder), config)
    return Due(run, state, max(1, left))


def _waiting(plan: Plan, run: PlannedRun, out: Path) -> Due:
    """A control whose original is not finished: it takes what that takes, or what it was begun with."""
    folder = out / run.folder
    if not (folder / "config.toml").exists():
        return Due(run, "new", trainings(plan.configured(run)))
    record = read_run(folder)
    left = trainings(record.config) - budget.spent(record.history, record.config)
    return Due(run, "begun" if left > 0 else "finished", max(0, left))


def learned(out: Path) -> Pace:
    """The pace of all runs that are there; those whose files are unsound teach nothing."""
    pace = Pace()
    for run in found(out):
        try:
            record = read_run(out / run.folder)
        except StorageError:
            continue
        seconds = total_seconds(record.history)
        pace.add(kind(run.experiment), seconds, budget.spent(record.history, record.config))
    return pace


def _history(folder: Path) -> History:
    """The generations of a run; none where its files are unsound, which resuming will deal with."""
    try:
        return read_run(folder).history
    except StorageError:
        return []


def measure(config: Config) -> tuple[float, int]:
    """Train some founders once, on all workers: the seconds that took, and how many there were."""
    subject = assembly.subject(config.data.source, config)
    family = assembly.make_family(config, subject, Extensions())
    evolution = assembly.make_evolution(config, family, Extensions(), None)
    recipe = assembly.make_recipe(config, family, subject, Extensions())
    with engines.create(config.training.engine, None, config) as engine:
        engine.prepare(engines.WorkerSetup(recipe=recipe, family=family, data=subject.data))
        jobs = evolution.ask(evolution.start())
        # Founders stand in the order of their species: every nth is a fair sample.
        step = max(1, len(jobs) // (_SAMPLE * engine.workers))
        trained = [replace(job, train=True) for job in jobs[::step]]
        outcomes = [future.result() for future in [engine.submit(job) for job in trained]]
        busy = sum(outcome.train_seconds + outcome.score_seconds for outcome in outcomes)
        return busy / engine.workers, len(outcomes)
