"""A whole run: `evolve` begins one and `resume` goes on with one; both end in a `Result`.

The parts are made in `preparation`, the generations run in `loop`, the files are written by `storage`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex import engines
from epicortex.champion.file import Champion
from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.data import DataSet
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import DataError, RunError
from epicortex.evolution import Evolution
from epicortex.families.layered import Operator
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.run import assembly as preparation
from epicortex.run import consent
from epicortex.run.assembly import Extensions
from epicortex.run.loop import INTERRUPTED, Hooks, Loop, Watcher, why_stop
from epicortex.run.recorder import Recorder
from epicortex.storage import RunFolder, RunInfo, checkpoint
from epicortex.storage.checkpoint import Checkpoint
from epicortex.versions import versions

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier
    from epicortex.engines import Engine, WorkerSetup
    from epicortex.evaluation import FitnessFunction

__all__ = ["INTERRUPTED", "Result", "Watcher", "evolve", "resume"]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a run came to."""

    best: Champion | None
    """The fittest network of any generation, with its classes and scaling; None if there was none yet."""
    history: list[dict[str, Any]]
    """A dict a generation, as in history.jsonl."""
    state: EcosystemState
    stop_reason: str
    """Why the run ended, in words; `INTERRUPTED` if it was asked to."""
    folder: Path | None
    """Where the run was written; None where it was kept in memory."""
    test: float | None
    """The champion's accuracy on the test set; None if fitness was measured there, or on interruption."""

    @property
    def champion(self) -> Classifier:
        """The champion as an `nn.Module`: raw values in, logits out, as `epicortex.load` gives it."""
        from epicortex.champion.module import Classifier

        if self.best is None:
            raise RunError("there is no champion: the run was stopped in its first generation; resume it")
        return Classifier(self.best)

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop before its end."""
        return self.stop_reason == INTERRUPTED


def evolve(
    data: Any,
    config: Config | None = None,
    *,
    out: Path | str | None = None,
    operators: Sequence[Operator] = (),
    fitness: FitnessFunction | None = None,
    optimiser: Callable[..., Any] | None = None,
    engine: Engine | None = None,
    ancestor: Phenotype | Genome | None = None,
    watcher: Watcher | None = None,
    stop: threading.Event | None = None,
    on_generation: Callable[[dict[str, Any]], None] | None = None,
    on_champion: Callable[[Champion], None] | None = None,
    command: str = "",
) -> Result:
    """Evolve networks for a data set: a built-in name, a path, arrays, a torch `Dataset` or a `DataSet`.

    Without `out` nothing is written. An `ancestor` is where evolution starts: a genome, or a network with its
    weights. Setting `stop` ends the run within seconds; it can then be resumed. An `engine` that is given is
    prepared here and closed by its owner.
    """
    hooks = Hooks(watcher or Watcher(), stop or threading.Event(), on_generation, on_champion)
    extensions = Extensions(operators, fitness, optimiser, engine)
    config = preparation.named(config or settings.resolve(), data, extensions, ancestor)
    with ExitStack() as stack:
        workers = engine or stack.enter_context(engines.create(config.training.engine, None, config))
        data_set = preparation.load_data(data, config, hooks.watcher.reading)
        for note in data_set.notes:
            hooks.watcher.note(note)
        network = ancestor if isinstance(ancestor, Phenotype) else None
        evolution = preparation.make_evolution(config, data_set, extensions, network)
        # What cannot work is refused before there is a folder.
        setup = preparation.worker_setup(config, data_set, extensions)
        run = _Run(evolution, data_set, setup, hooks)
        state = preparation.founders(evolution)
        if out is None:
            return run(workers, state)
        info = RunInfo.now(data=data_set.name, data_digest=data_set.digest, command=command)
        folder = RunFolder.create(Path(out), config, info, ancestor=network)
        stack.enter_context(closing(folder))
        return run(workers, state, folder)


def resume(
    path: Path | str,
    changes: Mapping[str, object] | None = None,
    *,
    data: Any = None,
    operators: Sequence[Operator] = (),
    fitness: FitnessFunction | None = None,
    optimiser: Callable[..., Any] | None = None,
    engine: Engine | None = None,
    trust: bool = False,
    watcher: Watcher | None = None,
    stop: threading.Event | None = None,
    on_generation: Callable[[dict[str, Any]], None] | None = None,
    on_champion: Callable[[Champion], None] | None = None,
) -> Result:
    """Go on where a run stopped; `changes` by dotted name, such as {"evolution.generations": 200}.

    Only settings in `config.MAY_CHANGE_ON_RESUME` may change. The end is the same, bit for bit, as that of a
    run that was never interrupted. What was handed over in Python has to be handed over again.

    A run of somebody else that names files or lifts limits is refused unless those are among `changes`, or
    you `trust` it.
    """
    hooks = Hooks(watcher or Watcher(), stop or threading.Event(), on_generation, on_champion)
    extensions = Extensions(operators, fitness, optimiser, engine)
    with ExitStack() as stack:
        folder = stack.enter_context(closing(RunFolder.open(Path(path))))
        config = preparation.changed(folder.config, changes or {})
        decided = {*(changes or {}), *(["data.source"] if data is not None else [])}
        consent.check_files(folder.path, config, decided, trust=trust)
        workers = engine or stack.enter_context(
            engines.create(
                config.training.engine, None, consent.consented(config, changes or {}, hooks.watcher.note)
            )
        )
        start, problems = checkpoint.read_latest(folder.path, run=folder.info.id)
        for problem in problems:
            back = f"generation {start.state.generation}" if start else "the beginning"
            hooks.watcher.note(f"{problem}; going back to {back}")
        source = config.data.source if data is None else data
        data_set = _same_data(source, config, folder, hooks.watcher)
        for name, version in versions().items():
            if (before := getattr(folder.info, name)) != version:
                hooks.watcher.note(f"{name} was {before} and is now {version}: the last bits may differ")
        evolution = preparation.make_evolution(config, data_set, extensions, folder.ancestor())
        folder.change(config)
        state = start.state if start else preparation.founders(evolution)
        setup = preparation.worker_setup(config, data_set, extensions)
        return _Run(evolution, data_set, setup, hooks)(workers, state, folder, start)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run with all its parts made."""

    evolution: Evolution
    data: DataSet
    setup: WorkerSetup
    hooks: Hooks

    def __call__(
        self,
        engine: Engine,
        state: EcosystemState,
        folder: RunFolder | None = None,
        start: Checkpoint | None = None,
    ) -> Result:
        """From a state to the end, whatever ends it."""
        config = self.evolution.config
        with ExitStack() as stack:
            recorder = (
                stack.enter_context(closing(Recorder(folder, start, note=self.hooks.watcher.note)))
                if folder
                else None
            )
            history = list(recorder.history) if recorder else []
            best = preparation.describe_champion(state, config, self.data)
            if recorder and best:
                recorder.champion(best)
            self.hooks.watcher.begin(state, history)
            reason = why_stop(state, self.evolution, history)
            if reason is None:
                engine.prepare(self.setup)
                loop = Loop(self.evolution, self.data, engine, recorder, self.hooks, history)
                state, reason = loop.run(state)
            best, test = preparation.describe_champion(state, config, self.data), None
            if best and reason != INTERRUPTED:
                test = preparation.test_accuracy(best.phenotype, config, self.data)
                best = preparation.describe_champion(state, config, self.data, test=test)
                if recorder and best:
                    recorder.champion(best)
            if recorder:
                recorder.wait()
        return Result(best, history, state, reason, folder.path if folder else None, test)


def _same_data(source: Any, config: Config, folder: RunFolder, watcher: Watcher) -> DataSet:
    """The data that a run was begun with, or a `DataError`."""
    if source is None:
        raise DataError(f"{folder.path} was begun with data from a program; hand it to `resume` again")
    data = preparation.load_data(source, config, watcher.reading)
    if data.digest != folder.info.data_digest:
        raise DataError(f"this is not the data that {folder.path} was begun with ({folder.info.data})")
    return data
