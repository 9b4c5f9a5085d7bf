"""All that a report is made from, read from a run's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epicortex.champion.file import Champion
from epicortex.ecosystem.history import History, total_seconds
from epicortex.pages.units import Unit
from epicortex.registry import Parts
from epicortex.report import mistakes
from epicortex.report.mistakes import Tested
from epicortex.report.summary import RunSummary, summarise
from epicortex.run import lineage
from epicortex.run.lineage import Ancestor
from epicortex.run.record import RunRecord, read_run


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """All that a report is made from."""

    run: RunRecord
    unit: Unit
    champion: Champion | None
    """None before the first generation is complete."""
    lineage: tuple[Ancestor, ...]
    summary: RunSummary
    tested: Tested | str
    """The champion on the test set, or why that is not known."""

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
        """The champion's accuracy on the test set, where it is known."""
        noted = self.champion.facts.test_accuracy if self.champion else None
        return self.tested.accuracy if noted is None and isinstance(self.tested, Tested) else noted


def read(
    run_folder: Path, *, data_dir: Path | None = None, parts: Parts | None = None, trust: bool = False
) -> Material:
    """All that a report is made from; anything unsound in the folder is a `StorageError`.

    `parts` holds the family, where it is a person's own; `trust` allows the data that somebody else's run
    names.
    """
    run = read_run(run_folder)
    champion = run.champion(parts) if run.history else None
    ancestors: tuple[Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(run.networks(), champion.facts.network, until=champion.facts.generation)
    family = champion.family if champion else None
    followed = frozenset(one.id for one in ancestors)
    summary = summarise(run.networks(), run.history, family=family, followed=followed)
    tested = mistakes.look(run, champion, data_dir, trust=trust) if champion else "there is no champion yet."
    return Material(run, Unit.of_config(run.config), champion, ancestors, summary, tested)
