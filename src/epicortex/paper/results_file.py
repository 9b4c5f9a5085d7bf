"""Runs that count, kept in one file, `runs.jsonl`: all that the results are made of, a line a run.

So results outlive the run folders, and those of several machines come together. Nothing of the networks is
in it: neither genomes nor weights.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from epicortex.config import Config, changed
from epicortex.config.resolving import from_values
from epicortex.errors import ConfigError, StorageError
from epicortex.paper.execution import between_experiments, portable
from epicortex.paper.plan import Plan, PlannedRun
from epicortex.paper.results import BegunRun, ComparedGeneration, Figures, Kept, Results
from epicortex.storage import atomic, strict

NAME: Final = "runs.jsonl"
FORMAT: Final = 1
_MOST_BYTES: Final = 1 << 30
#: Beyond this no figure of a run lies; plots and tables are not made for more.
_MOST: Final = 10**15
#: What every generation of a run that counts has.
_ALWAYS: Final = ("highest_fitness", "average_fitness", "mean_parameters", "champion_parameters")


def read(path: Path) -> list[Kept]:
    """The runs that a file, or an experiment's folder, keeps; what is not ours is a `StorageError`."""
    path = path / NAME if path.is_dir() else path
    lines = atomic.read_file(path, limit=_MOST_BYTES).split(b"\n")
    return [_kept(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def read_own(out: Path) -> list[Kept]:
    """The runs that an output folder keeps; none where it keeps none yet."""
    if not os.path.lexists(out / NAME):
        return []
    try:
        return read(out / NAME)
    except StorageError as error:
        raise StorageError(
            f"{error}; fix that, or move the file away: then it is written anew, from run folders alone"
        ) from None


def counting(plan: Plan, kept: Iterable[Kept]) -> set[PlannedRun]:
    """The runs among those kept that count: as planned, and a control only beside a run that cost as much."""
    costs: dict[PlannedRun, int] = {}
    for one in kept:
        if not between_experiments(one.config, plan.config):
            costs.setdefault(one.run, one.figures.trainings)
    return {run for run, cost in costs.items() if costs.get(run.original) == cost}


def write(out: Path, results: Results, before: Iterable[Kept]) -> None:
    """Keep every run that counts, and of those kept before the ones with other settings."""
    now = {one.run: kept for one in results.runs if (kept := _worth_keeping(results.plan.config, one))}
    others = [
        one for one in before if one.run not in now or between_experiments(one.config, now[one.run].config)
    ]
    runs = sorted([*now.values(), *others], key=lambda one: one.run.place)
    atomic.replace_file(out / NAME, (strict.dump(_line(one)) + b"\n" for one in runs))


def _worth_keeping(config: Config, one: BegunRun) -> Kept | None:
    if one.figures is None or not one.counts:
        return None
    return Kept(
        one.run, changed(portable(config), training={"backend": one.backend}), one.command, one.figures
    )


def _line(kept: Kept) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "run": kept.run.folder.as_posix(),
        "command": kept.command,
        # Without what is as ever: a setting that comes into being later is no difference.
        "settings": kept.config.model_dump(mode="json", exclude_defaults=True),
        "figures": strict.plain(kept.figures),
    }


def _kept(line: bytes, where: str) -> Kept:
    value = strict.parse(line, where)
    if not isinstance(value, dict):
        raise StorageError(f"{where} must be an object, not {strict.short(value)}")
    strict.check_format(value.get("format"), FORMAT, where)
    run, command = value.get("run"), value.get("command")
    planned = PlannedRun.at(run) if isinstance(run, str) else None
    if planned is None:
        raise StorageError(f"{where}: {strict.short(run)} is no run of an experiment")
    if not isinstance(command, str) or not _is_ours(command):
        raise StorageError(f"{where}: {strict.short(command)} is no command of ours")
    config, figures = _config(value.get("settings"), where), _figures(value.get("figures"), where)
    if planned.experiment.control is None and len(figures.history) < config.evolution.generations:
        raise StorageError(f"{where}: the run has not all its {config.evolution.generations} generations")
    return Kept(planned, config, command, figures)


def _is_ours(command: str) -> bool:
    """Whether a command that people may copy begins a run and nothing else: every word is plain or quoted."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return command.isprintable() and words[:2] == ["epicortex", "evolve"] and shlex.join(words) == command


def _config(value: Any, where: str) -> Config:
    if not isinstance(value, dict):
        raise StorageError(f"{where}: settings must be an object of sections")
    try:
        return from_values(value)
    except ConfigError as error:
        raise StorageError(f"{where}: {error}") from None


def _figures(value: Any, where: str) -> Figures:
    history = tuple(_history(value.get("history") if isinstance(value, dict) else None, where))
    found = strict.build(Figures, value, f"{where}, figures", given={"history": history})
    if not history or len(history) != len(found.spent) or not 0 <= found.whole <= len(history):
        raise StorageError(f"{where}: history, spent and whole are not of as many generations")
    if list(found.spent) != sorted(found.spent) or (found.lineage is not None and found.lineage < 1):
        raise StorageError(f"{where}: trainings cannot become fewer")
    counts = (*found.spent, found.tried or 0, found.refused or 0, found.champion_parameters)
    _check_size([*counts, found.seconds, found.champion, found.test], where)
    if min(counts) < 0:
        raise StorageError(f"{where}: a count cannot be below 0")
    return found


def _history(value: Any, where: str) -> Iterator[ComparedGeneration]:
    if not isinstance(value, list):
        raise StorageError(f"{where}: history must be a list")
    for number, line in enumerate(value, 1):
        here = f"{where}, generation {number}"
        generation = strict.build(ComparedGeneration, line, here)
        if generation.generation != number:
            raise StorageError(f"{here} is not in its place")
        if missing := [name for name in _ALWAYS if getattr(generation, name) is None]:
            raise StorageError(f"{here} has no {missing[0]}")
        own = astuple(generation)
        _check_size(own, here)
        if (generation.mean_parameters or 0) <= 0 or any(type(one) is int and one < 0 for one in own):
            raise StorageError(f"{here}: a count cannot be below 0")
        yield generation


def _check_size(values: Iterable[float | None], where: str) -> None:
    for value in values:
        if value is not None and abs(value) > _MOST:
            raise StorageError(f"{where}: {strict.short(value)} is beyond what a run can come to")
