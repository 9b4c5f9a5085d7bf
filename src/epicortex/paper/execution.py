"""Carries out a plan: begins what is missing, resumes what was broken off, keeps what is finished.

Running is left to `run`; how far a run has come is read from its folder.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from epicortex import registry
from epicortex.config import MAY_CHANGE_ON_RESUME, Config, changed
from epicortex.config.fields import by_section, settings, shown, value_of
from epicortex.ecosystem import budget
from epicortex.ecosystem.stopping import Progress, limit_reached
from epicortex.errors import ConfigError, DataError, EpiCortexError, RunError, StorageError, UnwritableError
from epicortex.paper.controls import CONTROLS, configured
from epicortex.paper.plan import OWN_SETTINGS, Plan, PlannedRun
from epicortex.run import assembly as preparation
from epicortex.run.assembly import Extensions
from epicortex.run.lifecycle import Result, evolve, resume
from epicortex.run.loop import Watcher
from epicortex.run.record import RunRecord, read_run
from epicortex.storage import atomic
from epicortex.storage.folder import read_config

State: TypeAlias = Literal["new", "begun", "finished", "kept", "damaged"]
_GENERATIONS: Final = "evolution.generations"
_BACKEND: Final = "training.backend"
#: Settings that neither the results of a run nor its length hang on.
FREE: Final = MAY_CHANGE_ON_RESUME - {
    _GENERATIONS,
    *("evolution.minutes", "evolution.target", "evolution.plateau", "training.time_limit", "data.source"),
}
#: What only one rule of the ecosystem looks at: where neither run has that rule, it does not matter.
_ONLY_FOR: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("evolution.budget", "planned"): frozenset(
        f"budget.{name}"
        for name in (
            *("search", "small_images", "small_size", "passes", "steps"),
            *("siblings", "speed", "reserve"),
        )
    ),
    ("evolution.speciation", "cost"): frozenset({"speciation.classes"}),
    ("evolution.selection", "challengers"): frozenset({"selection.averaging"}),
}


class Observer(Protocol):
    """Is told how the experiment goes."""

    def begin(self, run: PlannedRun, folder: Path, config: Config) -> Watcher:
        """A run begins, or goes on; what it gives watches the run."""

    def end(self, run: PlannedRun, result: Result) -> None:
        """A run has come to its end, or was interrupted."""

    def failed(self, run: PlannedRun, error: EpiCortexError) -> None:
        """A run cannot go on, or its folder is beyond repair; the others go on."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a plan."""

    failed: int
    """Runs that could not go on."""
    interrupted: bool


def carry_out(
    plan: Plan,
    out: Path,
    observer: Observer,
    stop: threading.Event,
    *,
    command: str = "",
    spared: Collection[PlannedRun] = (),
) -> Carried:
    """Run all that is not finished yet and not to be spared, one run after another, until `stop` is set."""
    with atomic.explained(out, "made"):
        out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for run in (run for run in plan.planned() if run not in spared):
        if stop.is_set():
            return Carried(failed, True)
        try:
            result = _carry_on(plan, run, out, observer, stop, command)
        except UnwritableError:
            raise
        except (RunError, StorageError, DataError) as error:
            observer.failed(run, error)
            failed += 1
            continue
        if result is not None and result.interrupted:
            return Carried(failed, True)
    return Carried(failed, False)


def _carry_on(
    plan: Plan, run: PlannedRun, out: Path, observer: Observer, stop: threading.Event, command: str
) -> Result | None:
    """Begin a run or go on with it; None where it is finished already."""
    folder = out / run.folder
    config = expected(plan, run, out)
    if config is None:
        raise RunError(f"the run it belongs to, {run.original.folder}, is not finished")
    state = state_of(folder, config)
    if state == "finished":
        return None
    watcher = observer.begin(run, folder, config)
    result = _run(folder, config, state, watcher, stop, command)
    observer.end(run, result)
    return result


def expected(plan: Plan, run: PlannedRun, out: Path) -> Config | None:
    """The settings that a run has to have; None for a control whose original is not finished."""
    if run.experiment.control is None:
        return preparation.named(plan.configured(run), run.experiment.data, Extensions())
    original = expected(plan, run.original, out)
    folder = out / run.original.folder
    if original is None or state_of(folder, original) != "finished":
        return None
    return configured(CONTROLS[run.experiment.control], read_run(folder), original)


def check_control(plan: Plan, run: PlannedRun, out: Path) -> None:
    """A `ConfigError` where a control has the trainings of its original before that is extended."""
    folder, original = out / run.folder, out / run.original.folder
    if not (folder / "config.toml").exists():
        return
    budgeted = read_config(folder)[0].evolution.trainings
    try:
        record = read_run(original)
    except StorageError:
        # Resuming it goes back to a sound state, and then forward to the same trainings.
        return
    generations = plan.configured(run.original).evolution.generations
    spent = budget.spent(record.history, record.config)
    if len(record.history) < generations and budgeted is not None and budgeted <= spent:
        raise ConfigError(
            f"{folder} has the {budgeted} trainings of {original} when that was shorter; a longer run needs "
            "a control of its own: choose another --out, or move that folder away"
        )


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
        record.check()
        return "finished" if is_finished(record, config) else "begun"
    except StorageError:
        # Resuming goes back to a sound state, or says why there is none.
        return "begun"


def is_finished(record: RunRecord, config: Config | None = None) -> bool:
    """Whether a run has come to its end, by these settings or by its own, and its champion was tested."""
    config = config or record.config
    if limit_reached(Progress.of_history(record.history, config, record.plan), config.evolution) is None:
        return False
    tested = record.config.training.fitness_on == "test"
    return tested or record.champion().facts.test_accuracy is not None


def differences(one: Config, other: Config) -> Iterator[str]:
    """The settings in which two runs differ, of those that its results or its length hang on.

    A run has settled on its arithmetic; a plan that leaves the choice open takes either. Settings of a family
    or rule that neither run has do not count.
    """
    open_choice = "auto" in (one.training.backend, other.training.backend)
    passed = FREE | {_BACKEND} if open_choice else FREE
    for (part, name), names in _ONLY_FOR.items():
        if name not in (value_of(one, part), value_of(other, part)):
            passed |= names
    unused = registry.SHELVES["family"].built_in.keys() - {one.family, other.family}
    return (
        name
        for name, setting in settings().items()
        if name not in passed
        and setting.section not in unused
        and value_of(one, name) != value_of(other, name)
    )


def between_experiments(one: Config, other: Config) -> list[str]:
    """Those in which two experiments differ, whose runs have seeds, modes and data of their own."""
    return [name for name in differences(one, other) if name not in OWN_SETTINGS]


def portable(config: Config) -> Config:
    """The config without what concerns one machine only."""
    return changed(config, **by_section({name: settings()[name].default for name in FREE}))


def _run(
    folder: Path, config: Config, state: State, watcher: Watcher, stop: threading.Event, command: str
) -> Result:
    if state == "new":
        return evolve(config.data.source, config, out=folder, watcher=watcher, stop=stop, command=command)
    # Also what is as it was: engines and places are the plan's decision, not that of the run's files.
    changes = {name: value_of(config, name) for name in sorted(MAY_CHANGE_ON_RESUME)}
    return resume(folder, changes, watcher=watcher, stop=stop)
