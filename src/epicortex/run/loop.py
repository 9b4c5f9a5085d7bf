"""The generations of a run, one after another: ask, train, tell, record.

Outcomes are journaled as they come and replayed after a crash. What is decided in `evolution` is not decided
here; this only says in which order things happen, and when to stop.
"""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from epicortex.champion.file import Champion
from epicortex.config import Config
from epicortex.ecosystem import budget, stopping
from epicortex.ecosystem.history import Generation, History, total_seconds
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState, Tally
from epicortex.ecosystem.stopping import Progress
from epicortex.engines import Engine
from epicortex.errors import RunError
from epicortex.evolution import Evolution
from epicortex.families.family import Family
from epicortex.run.assembly import describe_champion
from epicortex.run.recorder import Recorder
from epicortex.run.schedule import Schedule
from epicortex.run.subject import Subject
from epicortex.storage import checkpoint, journal
from epicortex.storage.journal import Journal

INTERRUPTED: Final = "interrupted"
"""The stop reason of a run that was asked to stop; it can be resumed."""
_LOOK_AROUND: Final = 0.1


class Watcher:
    """Is told how a run goes; this one says nothing but warnings. Override what is of interest."""

    def reading(self, what: str, done: int, total: int) -> None:
        """Data is being read; `total` is 0 where it is not known."""

    def maximised(self, fitness: str) -> None:
        """What is maximised, now that the data is known."""

    def begin(self, state: EcosystemState, history: History) -> None:
        """The run begins, or goes on after the generations in `history`."""

    def planned(self, plan: Plan) -> None:
        """A generation of a planned run is about to begin."""

    def progress(self, done: int, total: int, failed: str | None = None) -> None:
        """A network of this generation is back; `failed` says why it failed."""

    def generation(self, tally: Tally, seconds: float) -> None:
        """A generation is complete."""

    def note(self, text: str) -> None:
        """Something that a person should know."""
        warnings.warn(text, RuntimeWarning, stacklevel=3)


@dataclass(slots=True)
class Hooks:
    """Who is told, and who may stop the run."""

    watcher: Watcher
    stop: threading.Event
    on_generation: Callable[[Generation], None] | None = None
    on_champion: Callable[[Champion], None] | None = None
    began: float = field(default_factory=time.monotonic)
    """When the run, or its continuation, began."""


@dataclass(slots=True)
class Loop:
    """The generations of one process."""

    evolution: Evolution
    subject: Subject
    engine: Engine
    recorder: Recorder | None
    """Where the run is written; None for a run in memory."""
    hooks: Hooks
    history: list[Generation]
    clock: Callable[[], float] = time.monotonic
    """The seconds of the run so far, those of earlier processes too."""
    schedule: Schedule = field(init=False)

    def __post_init__(self) -> None:
        self.schedule = Schedule(self.evolution.family)

    def run(self, state: EcosystemState, digest: str | None = None) -> tuple[EcosystemState, str]:
        """Generation after generation until there is a reason to stop.

        `digest` names the state where it was read from a checkpoint: another version may write it otherwise.
        """
        if digest is None:
            digest = checkpoint.take(state, self.evolution.family).digest if self.recorder else ""
        while (reason := why_stop(state, self.history, self.evolution.config)) is None:
            if self.hooks.stop.is_set():
                return state, INTERRUPTED
            began = time.monotonic()
            state = self._planned(state)
            jobs = self.evolution.strategies.budget.limited(self.evolution.ask(state), self.history)
            asked = time.monotonic()
            outcomes = self._train(state.generation + 1, jobs, digest)
            if outcomes is None:
                return state, INTERRUPTED
            train_seconds = time.monotonic() - asked
            state, digest = self._evolve(state, jobs, outcomes, began, train_seconds)
        return state, reason

    def _planned(self, state: EcosystemState) -> EcosystemState:
        """The state with the plan of its next generation: a known one, or a new one, written down first."""
        generation = state.generation + 1
        known = self.recorder.plans if self.recorder else {}
        plan = known.get(generation) or self.evolution.plan(state, self.history, elapsed=self.clock())
        if plan is None:
            return state
        if self.recorder and generation not in known:
            self.recorder.plan(plan)
        self.hooks.watcher.planned(plan)
        return self.evolution.planned(state, plan)

    def _train(self, generation: int, jobs: Sequence[Job], digest: str) -> list[Outcome] | None:
        """The outcomes of all jobs, replayed from the journal where it has them; None if asked to stop."""
        if self.recorder is None:
            return self._collect(jobs, {}, None)
        with closing(self.recorder.journal(generation, digest)) as kept:
            for problem in kept.problems:
                self.hooks.watcher.note(problem)
            outcomes = self._collect(jobs, _fitting(kept.outcomes, jobs, self.evolution.family), kept)
            kept.sync()
            return outcomes

    def _collect(
        self, jobs: Sequence[Job], outcomes: dict[int, Outcome], kept: Journal | None
    ) -> list[Outcome] | None:
        waiting = self.schedule.longest_first(job for job in jobs if job.network not in outcomes)[::-1]
        finished: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        hand_over = _journaled(kept, finished)
        running = 0
        while waiting or running:
            # Not all at once: a worker never waits, and a run that is asked to stop has little to call off.
            most = 2 * self.engine.workers + 1
            while waiting and running < most and not self.hooks.stop.is_set():
                self.engine.submit(waiting.pop()).add_done_callback(hand_over)
                running += 1
            if kept:
                kept.sync_now_and_then()
            try:
                outcome = finished.get(timeout=_LOOK_AROUND).result()
            except queue.Empty:
                if self.recorder:
                    self.recorder.check()
                if self.hooks.stop.is_set():
                    return None
                continue
            running -= 1
            outcomes[outcome.network] = outcome
            self.hooks.watcher.progress(len(outcomes), len(jobs), outcome.failed)
        return list(outcomes.values())

    def _evolve(
        self,
        state: EcosystemState,
        jobs: Sequence[Job],
        outcomes: list[Outcome],
        began: float,
        train_seconds: float,
    ) -> tuple[EcosystemState, str]:
        """The part of a generation after training; gives the next state and its digest."""
        try:
            step = self.evolution.tell(state, outcomes)
        except RunError as error:
            self._forget(state.generation + 1)
            raise RunError(f"{error}; resuming tries this generation again") from None
        self.schedule.learn(jobs, outcomes)
        after, tally = step.state, step.state.tally
        assert tally is not None
        new = after.champion_generation == after.generation
        family, config = self.evolution.family, self.evolution.config
        best = describe_champion(after, config, self.subject, family) if new else None
        snapshot = checkpoint.take(after, family) if self.recorder else None
        seconds = time.monotonic() - began
        counted = Generation.timed(tally, train_seconds=train_seconds, seconds=seconds)
        self.history.append(counted)
        if self.recorder and snapshot:
            self.recorder.generation(step.evaluated, snapshot, counted, best)
        self.hooks.watcher.generation(tally, seconds)
        for warning in tally.warnings:
            self.hooks.watcher.note(f"generation {tally.generation}: {warning}")
        if self.hooks.on_generation:
            self.hooks.on_generation(counted)
        if self.hooks.on_champion and best:
            self.hooks.on_champion(best)
        return after, snapshot.digest if snapshot else ""

    def _forget(self, generation: int) -> None:
        """Remove the journal of a generation in which all failed: kept, it would be replayed for ever."""
        if self.recorder:
            self.recorder.wait()
            journal.remove(self.recorder.folder.path, up_to=generation)


def why_stop(state: EcosystemState, history: History, config: Config) -> str | None:
    """The reason to end the run here, after the generations of all processes; None while it goes on.

    The history only says what the run cost: its log may have been removed, and begin late.
    """
    trainings, minutes = budget.spent(history, config), total_seconds(history) / 60
    progress = Progress.of_state(state, trainings=trainings, minutes=minutes)
    return stopping.reason(progress, config.evolution, fitness=config.fitness_name)


def _journaled(
    kept: Journal | None, finished: queue.SimpleQueue[Future[Outcome]]
) -> Callable[[Future[Outcome]], None]:
    """What the engine's threads call with a finished job, before they begin the next one.

    The outcome is in the journal by then: whatever ends this process, no more is lost than was under way.
    """

    def hand_over(future: Future[Outcome]) -> None:
        try:
            if kept and not future.cancelled() and future.exception() is None:
                kept.append(future.result())
        except Exception as error:
            # futures swallow what a callback raises; the main thread has to hear of a full disk
            future = Future()
            future.set_exception(error)
        finished.put(future)

    return hand_over


def _fitting(outcomes: Mapping[int, Outcome], jobs: Sequence[Job], family: Family[Any]) -> dict[int, Outcome]:
    """The journaled outcomes that answer these jobs: same network, same structure."""
    asked = {job.network: job.phenotype for job in jobs}

    def fits(outcome: Outcome) -> bool:
        if outcome.phenotype is None:
            return True
        return bool(family.encode(outcome.phenotype)[0] == family.encode(asked[outcome.network])[0])

    return {id: outcome for id, outcome in outcomes.items() if id in asked and fits(outcome)}
