"""`write`: reads a run's folder, has its report made, and puts it in its place."""

from __future__ import annotations

from pathlib import Path

from epicortex.report import mistakes
from epicortex.report.gathering import gather
from epicortex.report.rendering import render
from epicortex.report.story import Material
from epicortex.report.words import Measure
from epicortex.run import lineage
from epicortex.run.record import read_run
from epicortex.storage import atomic


def write(
    run_folder: Path | str,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    *,
    trust: bool = False,
) -> Path:
    """Write a run's report, by default to `report.html` in its folder, and give its path.

    The run may still be going on. `data_dir` is where the built-in data sets are, if not where the run's
    config says. The data that the run of somebody else names is looked at only if you `trust` it.
    """
    material = read(Path(run_folder), data_dir=None if data_dir is None else Path(data_dir), trust=trust)
    path = Path(run_folder) / "report.html" if out is None else Path(out)
    atomic.replace_file(path, [render(material).encode("utf-8", "replace")])
    return path


def read(run_folder: Path, *, data_dir: Path | None = None, trust: bool = False) -> Material:
    """All that a report is made from; anything unsound in the folder is a `StorageError`."""
    run = read_run(run_folder)
    champion = run.champion() if run.history else None
    ancestors: tuple[lineage.Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(run.networks(), champion.facts.network, until=champion.facts.generation)
    gathered = gather(run.networks(), run.history, followed=frozenset(one.id for one in ancestors))
    tested = mistakes.look(run, champion, data_dir, trust=trust) if champion else "there is no champion yet."
    return Material(run, Measure.of(run.config.training.fitness), champion, ancestors, gathered, tested)
