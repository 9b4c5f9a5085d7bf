"""All that a report is made from, read from a run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from epicortex.champion import front
from epicortex.champion.file import Champion
from epicortex.ecosystem.history import History, total_seconds
from epicortex.ecosystem.plan import Plan
from epicortex.measures import USUAL
from epicortex.pages.units import Unit
from epicortex.registry import Parts
from epicortex.report import mistakes
from epicortex.report.amounts import Judged
from epicortex.report.mistakes import Tested
from epicortex.report.summary import RunSummary, summarise
from epicortex.run import lineage
from epicortex.run.lineage import Ancestor
from epicortex.run.record import RunRecord, read_run
from epicortex.storage import plans

_LATER: Final = "the test set is looked at when the run has ended."


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """All that a report is made from."""

    run: RunRecord
    unit: Unit
    champion: Champion | None
    """None before the first generation is complete."""
    lineage: tuple[Ancestor, ...]
    summary: RunSummary
    tested: Tested | Judged | str
    """The champion on the test set, or why that is not known."""
    models: tuple[Champion, ...] = ()
    """The champion and the smaller models of the run, the smallest first."""
    plans: Mapping[int, Plan] = field(default_factory=dict)
    """The plan of each complete generation, where the run is planned."""

    @property
    def history(self) -> History:
        """The complete generations."""
        return self.run.history

    @property
    def seconds(self) -> float:
        """The time that all generations took."""
        return total_seconds(self.history)

    @property
    def test_accuracy(self) -> float | None:
        """The champion's accuracy on the test set, or R² or macro F1, where it is known."""
        noted = self.champion.facts.test_accuracy if self.champion else None
        return noted if noted is not None or isinstance(self.tested, str) else self.tested.accuracy

    @property
    def test_unit(self) -> Unit:
        """How that is written."""
        return Unit.of(USUAL[self.champion.facts.task] if self.champion else "accuracy")


def read(
    run_folder: Path,
    *,
    data_dir: Path | None = None,
    parts: Parts | None = None,
    trust: bool = False,
    test: bool = True,
) -> Material:
    """All that a report is made from; anything unsound in the folder is a `StorageError`.

    `parts` holds the family, where it is a person's own; `trust` allows the data that somebody else's run
    names; without `test` the test set is left alone.
    """
    run = read_run(run_folder)
    champion = run.champion(parts) if run.history else None
    ancestors: tuple[Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(run.networks(), champion.facts.network, until=champion.facts.generation)
    family = champion.family if champion else None
    followed = frozenset(one.id for one in ancestors)
    summary = summarise(run.networks(), run.history, family=family, followed=followed)
    tested: Tested | Judged | str = "there is no champion yet."
    if champion is not None:
        tested = mistakes.look(run, champion, data_dir, trust=trust) if test else _LATER
    models = tuple(front.read(run_folder, parts)) if champion else ()
    planned = {at: plan for at, plan in plans.read(run_folder).items() if at <= len(run.history)}
    unit = Unit.of_config(run.config)
    return Material(run, unit, champion, ancestors, summary, tested, models, planned)
