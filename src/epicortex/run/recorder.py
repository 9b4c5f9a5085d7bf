"""What a run leaves, written generation by generation in a thread, beside the training of the next.

Logs, champion and checkpoint of a generation are durable before its journal goes. An error in the thread ends
the run at the next call. What the files hold is left to the modules beside this one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from epicortex.champion import file as champion
from epicortex.champion import front
from epicortex.champion.file import Champion
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState
from epicortex.families.family import Family
from epicortex.storage import atomic, checkpoint, journal, lines, plans
from epicortex.storage.atomic import Log
from epicortex.storage.checkpoint import Checkpoint, Snapshot
from epicortex.storage.folder import RunFolder
from epicortex.storage.journal import Heading, Journal
from epicortex.storage.tensorboard import Scalars

_LOGS = ("history.jsonl", "networks.jsonl")


class Recorder:
    """The files of a run that goes on from a checkpoint, or from its beginning."""

    def __init__(
        self,
        folder: RunFolder,
        start: Checkpoint | None,
        *,
        family: Family[Any],
        note: Callable[[str], None] = warnings.warn,
    ) -> None:
        """Cut the logs back to where the run goes on; checkpoints of what is cut off are of no use then.

        `note` takes what a person should know; it may be called from the recorder's thread.
        """
        self.folder = folder
        self._note = note
        self._family = family
        checkpoint.remove_after(folder.path / "checkpoints", start.state.generation if start else 0)
        for name in _LOGS:
            atomic.cut(folder.path / name, start.logs[name].length if start else 0)
        self.history = lines.read_history(folder.path / "history.jsonl")
        #: The plans of all generations that are done, of one that was broken off, and those that were given.
        self.plans = plans.read(folder.path)
        self._logs = {name: Log(folder.path / name) for name in _LOGS}
        if start and not self.history:
            self.history = lines.remembered(start.state.tally)
            self._logs["history.jsonl"].append(b"".join(map(lines.history_line, self.history)))
        self._scalars: Scalars | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="epicortex-recorder")
        self._pending: Future[None] | None = None

    def journal(self, generation: int, digest: str) -> Journal:
        """The journal of the generation that follows the state with this digest."""
        heading = Heading(self.folder.info.id, generation, digest)
        return Journal(journal.place(self.folder.path, generation), heading, family=self._family)

    def plan(self, *new: Plan) -> None:
        """Write down how generations are to be spent; durable when this returns."""
        self.wait()
        self.plans.update({plan.generation: plan for plan in new})
        plans.write(self.folder.path, self.plans)

    def generation(
        self,
        evaluated: EcosystemState,
        snapshot: Snapshot,
        counted: Generation,
        best: Champion | None,
    ) -> None:
        """Record a generation; `best` is the run's champion if it is new. Returns before all is written."""
        self.wait()
        self._pending = self._thread.submit(self._write, evaluated, snapshot, counted, best)

    def champion(self, best: Champion) -> None:
        """Write the champion's folder now."""
        self.wait()
        champion.write(self.folder.path / "champion", best)

    def front(self, members: Sequence[Champion]) -> None:
        """Write the models of the run besides its champion."""
        if members or (self.folder.path / front.FOLDER).is_dir():
            front.write(self.folder.path, members)

    def check(self) -> None:
        """Raise what went wrong in the thread, if anything has; never waits."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Return when everything given so far is durable."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()

    def close(self) -> None:
        """Wait for what is being written, and close all files."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()
            for log in self._logs.values():
                log.close()
            if self._scalars is not None:
                self._scalars.close()

    def _write(
        self, evaluated: EcosystemState, snapshot: Snapshot, counted: Generation, best: Champion | None
    ) -> None:
        path = self.folder.path
        self.folder.check()
        for log in self._logs.values():
            if log.restore():
                self._note(f"{log.path} was removed or replaced; it is back, whole")
        self._logs["networks.jsonl"].append(lines.network_lines(evaluated, self._family))
        if best is not None:
            champion.write(path / "champion", best)
        # The line that makes a generation complete for whoever reads the run comes after what it tells of.
        self._logs["history.jsonl"].append(lines.history_line(counted))
        for log in self._logs.values():
            log.sync()
        checkpoint.write(
            path / "checkpoints",
            snapshot,
            run=self.folder.info.id,
            logs={name: log.mark for name, log in self._logs.items()},
            keep=self.folder.config.evolution.keep_checkpoints,
        )
        journal.remove(path, up_to=snapshot.generation)
        if self._scalars is None:
            self._scalars = Scalars(path / "tensorboard", self.history)
        self._scalars.add(counted)
        self.history.append(counted)
