"""`write`: reads a run's folder, has its report made, and puts it in its place."""

from __future__ import annotations

from pathlib import Path

from epicortex.pages.units import Measure
from epicortex.registry import Parts
from epicortex.report import mistakes
from epicortex.report.narrative import Material
from epicortex.report.page import render
from epicortex.report.summary import gather
from epicortex.run import lineage
from epicortex.run.record import read_run
from epicortex.storage import atomic


def write(
    run_folder: Path | str,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    *,
    parts: Parts | None = None,
) -> Path:
    """Write a run's report, by default to `report.html` in its folder, and give its path.

    The run may still be going on. `data_dir` is where the built-in data sets are, if not where the run's
    config says. `parts` holds a family of one's own, if the run has one.
    """
    material = read(Path(run_folder), data_dir=None if data_dir is None else Path(data_dir), parts=parts)
    path = Path(run_folder) / "report.html" if out is None else Path(out)
    atomic.replace_file(path, [render(material).encode("utf-8", "replace")])
    return path


def read(run_folder: Path, *, data_dir: Path | None = None, parts: Parts | None = None) -> Material:
    """All that a report is made from; anything unsound in the folder is a `StorageError`."""
    run = read_run(run_folder)
    champion = run.champion(parts) if run.history else None
    ancestors: tuple[lineage.Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(run.networks(), champion.facts.network, until=champion.facts.generation)
    family = champion.family if champion else None
    followed = frozenset(one.id for one in ancestors)
    gathered = gather(run.networks(), run.history, family=family, followed=followed)
    tested = mistakes.look(run, champion, data_dir) if champion else "there is no champion yet."
    return Material(run, Measure.of(run.config.training.fitness), champion, ancestors, gathered, tested)
