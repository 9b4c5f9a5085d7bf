"""Carries out a plan: begins what is missing, resumes what was broken off, keeps what is finished.

How a run goes is `run`'s affair. Nothing is remembered but the run folders themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from epicortex import budget, preparation
from epicortex.config import MAY_CHANGE_ON_RESUME, Config
from epicortex.errors import ConfigError, RunError, StorageError
from epicortex.fields import settings, shown, value_of
from epicortex.loop import Watcher
from epicortex.preparation import Extensions
from epicortex.reproduction.controls import CONTROLS, configured
from epicortex.reproduction.plan import Plan, PlannedRun
from epicortex.run import Result, evolve, resume
from epicortex.storage import RunRecord, read_run
from epicortex.storage.folder import read_config

State: TypeAlias = Literal["new", "begun", "finished"]
_GENERATIONS: Final = "evolution.generations"
#: Settings that neither the results of a run nor its length hang on.
FREE: Final = MAY_CHANGE_ON_RESUME - {
    _GENERATIONS,
    *("evolution.minutes", "evolution.target", "evolution.plateau", "training.time_limit", "data.source"),
}


class Observer(Protocol):
    """Is told how the experiment goes."""

    def begin(self, run: PlannedRun, folder: Path, config: Config) -> Watcher:
        """A run begins, or goes on; what it gives watches the run."""

    def end(self, run: PlannedRun, result: Result) -> None:
        """A run has come to its end, or was interrupted."""

    def failed(self, run: PlannedRun, error: RunError) -> None:
        """A run cannot go on; the others do."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a plan."""

    failed: int
    """Runs that could not go on."""
    interrupted: bool


def carry_out(
    plan: Plan, out: Path, observer: Observer, stop: threading.Event, *, command: str = ""
) -> Carried:
    """Run everything that is not finished yet, one run after another, until `stop` is set."""
    failed = 0
    for run in plan.planned():
        if stop.is_set():
            return Carried(failed, True)
        folder = out / run.folder
        config = expected(plan, run, out)
        if config is None:
            # Its original could not go on, which was said.
            failed += 1
            continue
        state = state_of(folder, config)
        if state == "finished":
            continue
        watcher = observer.begin(run, folder, config)
        try:
            result = _run(folder, config, state, watcher, stop, command)
        except RunError as error:
            observer.failed(run, error)
            failed += 1
            continue
        observer.end(run, result)
        if result.interrupted:
            return Carried(failed, True)
    return Carried(failed, False)


def expected(plan: Plan, run: PlannedRun, out: Path) -> Config | None:
    """The settings that a run has to have; None for a control whose original is not finished."""
    if run.experiment.control is None:
        return preparation.named(plan.configured(run), run.experiment.data, Extensions())
    original = expected(plan, run.original, out)
    folder = out / run.original.folder
    if original is None or state_of(folder, original) != "finished":
        return None
    return configured(CONTROLS[run.experiment.control], read_run(folder), original)


def state_of(folder: Path, config: Config) -> State:
    """How it stands with a run; a `ConfigError` where the folder holds another one."""
    if not (folder / "config.toml").exists():
        return "new"
    here, _ = read_config(folder)
    for name in differences(here, config):
        if name != _GENERATIONS or here.evolution.generations > config.evolution.generations:
            was, wanted = (shown(value_of(one, name)) for one in (here, config))
            raise ConfigError(
                f"{folder} holds a run whose {name} is {was}, not {wanted}; choose another --out, "
                "or give the settings it was begun with"
            )
    try:
        record = read_run(folder)
        return "finished" if is_finished(record, config) else "begun"
    except StorageError:
        # Resuming goes back to a sound state, or says why there is none.
        return "begun"


def is_finished(record: RunRecord, config: Config | None = None) -> bool:
    """Whether a run has all its generations, or has spent its budget, and its champion was tested."""
    evolution = (config or record.config).evolution
    spent = budget.spent(record.history, record.config.evolution)
    complete = len(record.history) >= evolution.generations
    if not complete and (evolution.trainings is None or spent < evolution.trainings):
        return False
    tested = record.config.training.fitness_on == "test"
    return tested or record.champion().facts.test_accuracy is not None


def differences(one: Config, other: Config) -> Iterator[str]:
    """The settings in which two runs differ, of those that its results or its length hang on."""
    return (name for name in settings() if name not in FREE and value_of(one, name) != value_of(other, name))


def portable(config: Config) -> Config:
    """The config without what is one machine's affair."""
    plain: dict[str, dict[str, Any]] = {}
    for name in FREE:
        section, _, field = name.partition(".")
        plain.setdefault(section, {})[field] = settings()[name].default
    return config.with_changes(**plain)


def _run(
    folder: Path, config: Config, state: State, watcher: Watcher, stop: threading.Event, command: str
) -> Result:
    if state == "new":
        return evolve(config.data.source, config, out=folder, watcher=watcher, stop=stop, command=command)
    here, _ = read_config(folder)
    changes = {
        name: value_of(config, name)
        for name in sorted(MAY_CHANGE_ON_RESUME)
        if value_of(here, name) != value_of(config, name)
    }
    return resume(folder, changes, watcher=watcher, stop=stop)
