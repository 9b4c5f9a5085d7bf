"""A whole run: `evolve` begins one and `resume` goes on with one; both end in a `Result`.

The parts are made in `assembly`, the generations run in `loop`, the files are written by `storage`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex import engines, markup
from epicortex.champion import words
from epicortex.champion.file import Champion
from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.ecosystem.history import Generation, Generations, total_seconds
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import DataError, RunError
from epicortex.evolution import Evolution
from epicortex.families.layered import Operator
from epicortex.registry import Parts
from epicortex.run import assembly, augmenting, consent, sizing, telling
from epicortex.run.assembly import Extensions
from epicortex.run.loop import INTERRUPTED, Hooks, Loop, Watcher, why_stop
from epicortex.run.recorder import Recorder
from epicortex.run.repeating import Repeated
from epicortex.run.subject import Subject
from epicortex.storage import RunFolder, RunInfo, checkpoint
from epicortex.storage.checkpoint import Checkpoint
from epicortex.text import plural
from epicortex.versions import versions

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier
    from epicortex.engines import Engine
    from epicortex.evaluation.evaluator import Recipe
    from epicortex.evaluation.fitness import FitnessFunction

__all__ = ["INTERRUPTED", "Result", "Watcher", "evolve", "resume"]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run came to."""

    champion: Champion | None
    """The fittest network of any generation, with its classes and scaling; None if there was none yet."""
    history: list[Generation]
    """The complete generations, in order, as in history.jsonl."""
    state: EcosystemState
    stop_reason: str
    """Why the run ended, in words; `INTERRUPTED` if it was asked to."""
    folder: Path | None
    """Where the run was written; None where it was kept in memory."""
    test: float | None
    """The champion's accuracy on the test set, R² or macro F1; None if fitness was measured there, or on
    interruption."""

    @cached_property
    def module(self) -> Classifier:
        """The champion as an `nn.Module`, built once: raw values in, logits out, as from `epicortex.load`."""
        from epicortex.champion.module import Classifier

        if self.champion is None:
            raise RunError("there is no champion: the run was stopped in its first generation; resume it")
        return Classifier(self.champion)

    def _repr_html_(self) -> str:
        where = "in memory" if self.folder is None else str(self.folder)
        rows = [("ended", self.stop_reason), ("generations", len(self.history)), ("results", where)]
        champion = "" if self.champion is None else self.champion._repr_html_()
        curves = {
            "best": [one.highest_fitness for one in self.history],
            "mean": [one.average_fitness for one in self.history],
        }
        return f"{markup.table(rows)}{markup.curves(curves)}{champion}"

    def __repr__(self) -> str:
        """One line: what came out, and where it is."""
        what = "no champion yet"
        if self.champion is not None:
            size = plural(self.champion.outline.parameters, "parameter")
            what = f"{words.headline(self.champion.facts)}; {size}"
        generations = plural(len(self.history), "generation")
        where = "kept in memory" if self.folder is None else f"in {self.folder}"
        return f"<Result: {what}; {generations}, {self.stop_reason}; {where}>"

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop before its end."""
        return self.stop_reason == INTERRUPTED


def evolve(
    data: Any,
    config: Config | Mapping[str, Any] | None = None,
    *,
    out: Path | str | None = None,
    operators: Sequence[Operator] = (),
    fitness: FitnessFunction | None = None,
    optimiser: Callable[..., Any] | None = None,
    engine: Engine | None = None,
    parts: Mapping[str, Any] | None = None,
    ancestor: Any | None = None,
    watcher: Watcher | None = None,
    stop: threading.Event | None = None,
    on_generation: Callable[[Generation], None] | None = None,
    on_champion: Callable[[Champion], None] | None = None,
    command: str = "",
    repeats: Repeated | None = None,
    began: float | None = None,
    progress: bool | None = None,
) -> Result:
    """Evolve networks for a data set: a built-in name, a path, arrays, a torch `Dataset` or a `DataSet`.

    `config` is what `epicortex.configure` gives, or only what is to differ from the preset `default`, such as
    {"evolution.generations": 20}.

    With an evaluator of one's own that needs no data, a `Problem` will do. `parts` are a family, an evaluator
    or strategies of one's own, such as {"selection": Tournament}; an evaluator may be a plain function
    (model, generator) -> fitness.

    Without `out` nothing is written. An `ancestor` is where evolution starts: a genome, or a champion or
    other network with its weights. Setting `stop` ends the run within seconds; it can then be resumed. An
    `engine` that is given is prepared here and closed by its owner.

    With the settings of another planned run (`run.repeating`), `repeats` has this one do the same work.
    The minutes of a run count from now, or from `began` (as `time.monotonic` tells). Without a `watcher`,
    `progress` prints a line a generation; by default in terminals and notebooks.
    """
    extensions = Extensions(operators, fitness, optimiser, engine, assembly.parts_by_name(parts))
    config = assembly.default_config(data, extensions.parts) if config is None else settings.of(config)
    if watcher is None and telling.wanted(progress):
        counted = config.evolution.budget != "planned" and config.evolution.minutes is None
        watcher = telling.Told(config.evolution.generations if counted else None)
    hooks = Hooks(watcher or Watcher(), stop or threading.Event(), on_generation, on_champion)
    hooks.began = hooks.began if began is None else began
    config = sizing.with_pixels(assembly.named(config, data, extensions))
    if (advice := assembly.advice(config)) is not None:
        hooks.watcher.note(advice)
    with ExitStack() as stack:
        workers = engine or stack.enter_context(engines.create(config.training.engine, None, config))
        subject = assembly.subject(data, config, hooks.watcher.reading, extensions.parts)
        if repeats is not None:
            repeats.check(subject.digest)
        for note in subject.notes:
            hooks.watcher.note(note)
        config = assembly.suited(config, subject)
        hooks.watcher.maximised(config.fitness_name)
        ancestor = assembly.fitted(ancestor, config, subject, extensions, hooks.watcher.note)
        config = assembly.named(config, data, extensions, ancestor)
        family = assembly.make_family(config, subject, extensions)
        config = assembly.with_backend(config, family, subject, extensions, hooks.watcher.note)
        network = _network(ancestor)
        # What cannot work is refused before there is a folder.
        recipe = assembly.make_recipe(config, family, subject, extensions)
        sizing.check(config)
        augmenting.check(config, subject)
        prepared = sizing.needs_clock(config) or config.training.measures_augment
        if prepared:
            hooks.watcher.reading("measuring how fast networks train", 0, 0)
            workers.prepare(engines.WorkerSetup(recipe=recipe, family=family, data=subject.data))
        if sizing.needs_clock(config):
            config = sizing.timed(config, family, subject, workers, network)
        elif sizing.is_planned(config):
            config = sizing.counted(config, subject)
        if config.training.measures_augment:
            hooks.watcher.reading("measuring which changes of samples help", 0, 0)
            config = augmenting.settled(config, family, subject, workers, hooks.watcher.note)
        family = assembly.make_family(config, subject, extensions)
        evolution = assembly.make_evolution(config, family, extensions, network)
        run = _Run(evolution, subject, recipe, hooks, prepared, repeats.plans if repeats else {})
        state = assembly.founders(evolution)
        if out is None:
            return run(workers, state)
        info = RunInfo.now(data=subject.name, data_digest=subject.digest, command=command)
        encoded = None if network is None else family.encode(network)
        folder = RunFolder.create(Path(out), config, info, ancestor=encoded)
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
    parts: Mapping[str, Any] | None = None,
    trust: bool = False,
    watcher: Watcher | None = None,
    stop: threading.Event | None = None,
    on_generation: Callable[[Generation], None] | None = None,
    on_champion: Callable[[Champion], None] | None = None,
) -> Result:
    """Go on where a run stopped; `changes` by dotted name, such as {"evolution.generations": 200}.

    Only settings in `config.MAY_CHANGE_ON_RESUME` may change. The end is the same, bit for bit, as that of a
    run that was never interrupted. What was handed over in Python has to be handed over again.

    A run of somebody else that names files or lifts limits is refused unless those are among `changes`, or
    you `trust` it.
    """
    hooks = Hooks(watcher or Watcher(), stop or threading.Event(), on_generation, on_champion)
    extensions = Extensions(operators, fitness, optimiser, engine, assembly.parts_by_name(parts))
    with ExitStack() as stack:
        folder = stack.enter_context(closing(RunFolder.open(Path(path))))
        config = assembly.changed(folder.config, changes or {})
        decided = {*(changes or {}), *(["data.source"] if data is not None else [])}
        consent.check_files(folder.path, config, decided, trust=trust)
        workers = engine or stack.enter_context(
            engines.create(
                config.training.engine, None, consent.consented(config, changes or {}, hooks.watcher.note)
            )
        )
        source = config.data.source if data is None else data
        subject = _same_subject(source, config, folder, hooks.watcher, extensions.parts)
        family = assembly.make_family(config, subject, extensions)
        start, problems = checkpoint.read_latest(folder.path, run=folder.info.id, family=family)
        for problem in problems:
            back = f"generation {start.state.generation}" if start else "the beginning"
            hooks.watcher.note(f"{problem}; going back to {back}")
        for name, version in versions().items():
            if (before := getattr(folder.info, name)) != version:
                hooks.watcher.note(f"{name} was {before} and is now {version}: the last bits may differ")
        config = assembly.with_backend(config, family, subject, extensions, hooks.watcher.note)
        evolution = assembly.make_evolution(config, family, extensions, folder.ancestor(family))
        # Founders first: they are refused, before one is made, where there is no memory for them.
        state = start.state if start else assembly.founders(evolution)
        recipe = assembly.make_recipe(config, family, subject, extensions)
        prepared = sizing.is_planned(config) and _given_minutes(folder.config, config)
        if prepared:
            hooks.watcher.reading("measuring how fast networks train", 0, 0)
            workers.prepare(engines.WorkerSetup(recipe=recipe, family=family, data=subject.data))
            config = sizing.timed_on(config, family, subject, workers, state)
            evolution = assembly.make_evolution(config, family, extensions, folder.ancestor(family))
        folder.change(config)
        hooks.watcher.maximised(config.fitness_name)
        return _Run(evolution, subject, recipe, hooks, prepared)(workers, state, folder, start)


def _given_minutes(before: Config, after: Config) -> bool:
    """Whether a run that counted generations goes on by the clock."""
    return before.evolution.minutes is None and after.evolution.minutes is not None


def _network(ancestor: Any) -> Any | None:
    """The network with its weights that an ancestor is; None where it is only a structure."""
    if isinstance(ancestor, Champion):
        return ancestor.phenotype
    return ancestor if hasattr(ancestor, "genome") else None


@dataclass(frozen=True, slots=True)
class _Run:
    """A run with all its parts made."""

    evolution: Evolution
    subject: Subject
    recipe: Recipe
    hooks: Hooks
    prepared: bool = False
    """Whether the engine is ready already."""
    plans: Mapping[int, Plan] = field(default_factory=dict)
    """The plans of another run, which this one follows."""

    def __call__(
        self,
        engine: Engine,
        state: EcosystemState,
        folder: RunFolder | None = None,
        start: Checkpoint | None = None,
    ) -> Result:
        """From a state to the end, whatever ends it."""
        config, family = self.evolution.config, self.evolution.family
        described = partial(assembly.describe_champion, config=config, subject=self.subject, family=family)
        with ExitStack() as stack:
            recorder = None
            if folder:
                writing = Recorder(folder, start, family=family, note=self.hooks.watcher.note)
                recorder = stack.enter_context(closing(writing))
                if self.plans:
                    recorder.plan(*self.plans.values())
            history = Generations(recorder.history if recorder else ())
            earlier = total_seconds(history)
            best = described(state)
            if recorder and best:
                recorder.champion(best)
            self.hooks.watcher.begin(state, history)
            reason = why_stop(state, history, config)
            if reason is None:
                if not self.prepared:
                    setup = engines.WorkerSetup(recipe=self.recipe, family=family, data=self.subject.data)
                    engine.prepare(setup)
                began = self.hooks.began
                clock = partial(_since, began - earlier)
                loop = Loop(self.evolution, self.subject, engine, recorder, self.hooks, history, clock)
                state, reason = loop.run(state, start.digest if start else None)
            best, test = described(state), None
            if best and reason != INTERRUPTED:
                test, verdict = assembly.judged(self.recipe, best, self.subject)
                best = described(state, test=test, verdict=verdict)
                if recorder and best:
                    recorder.champion(best)
                    recorder.front(assembly.smaller_models(state, config, self.subject, family, self.recipe))
            if recorder:
                recorder.wait()
        return Result(best, history, state, reason, folder.path if folder else None, test)


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _same_subject(source: Any, config: Config, folder: RunFolder, watcher: Watcher, parts: Parts) -> Subject:
    """What a run was begun with, or a `DataError`."""
    if source is None:
        raise DataError(f"{folder.path} was begun with data from a program; hand it to `resume` again")
    subject = assembly.subject(source, config, watcher.reading, parts)
    if subject.digest != folder.info.data_digest:
        raise DataError(f"this is not the data that {folder.path} was begun with ({folder.info.data})")
    return subject
