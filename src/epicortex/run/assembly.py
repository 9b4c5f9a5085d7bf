"""From a config and what a program hands over to the parts of a run: data, evolution, what workers need.

What only a program can bring (operators, a fitness function) is named in the config, never imported from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from epicortex import measures, randomness, registry, tasks
from epicortex.champion import words
from epicortex.champion.file import TASK, Champion, Facts
from epicortex.config import MAY_CHANGE_ON_RESUME, Config, fields
from epicortex.config import resolving as settings
from epicortex.data import DataOptions, DataSet, Progress, load
from epicortex.data.catalog import BUILT_INS
from epicortex.data.dataset import DEEP
from epicortex.ecosystem import census
from epicortex.ecosystem.comparison import loss
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.ecosystem.strategies import Strategies
from epicortex.errors import ConfigError, GenomeError
from epicortex.evaluation.figures import Verdict
from epicortex.evaluation.sight import Sight, scaling_of, sums_of
from epicortex.evolution import Evolution
from epicortex.families.family import Family, HasAverages, HasTransfer, Problem
from epicortex.machine import too_much
from epicortex.randomness import generator
from epicortex.run.subject import Subject
from epicortex.tasks.gym import Gym

if TYPE_CHECKING:
    from epicortex.engines import Engine
    from epicortex.evaluation.evaluator import Recipe
    from epicortex.tasks import Task

#: How many episodes of random actions a running scaling begins with.
_FIRST_EPISODES: Final = 5
#: About what a network takes besides its weights.
_NETWORK_BYTES: Final = 5_000


@dataclass(frozen=True, slots=True)
class Extensions:
    """What only a program can bring along."""

    operators: Sequence[Any] = ()
    fitness: Callable[..., float] | None = None
    optimiser: Callable[..., Any] | None = None
    engine: Engine | None = None
    parts: registry.Parts = field(default_factory=dict)
    """Families, evaluators and strategies: kind -> name -> part."""


def default_config(data: Any, parts: registry.Parts) -> Config:
    """The settings where a program gives none: those that suit the data or the task."""
    return settings.resolve(*tasks.preset_for(data, parts.get("task")))


def parts_by_name(parts: Mapping[str, Any] | None) -> registry.Parts:
    """Parts as a program hands them over, one of a kind, under the names that the config gives them.

    A table of several, name -> part, is taken as it is.
    """
    for kind in parts or {}:
        if kind not in registry.SHELVES:
            raise registry.unknown("parts", "kind of part", kind, registry.SHELVES)
    return {
        kind: part if isinstance(part, Mapping) else {registry.named(part): part}
        for kind, part in (parts or {}).items()
    }


def named(config: Config, data: Any, extensions: Extensions, ancestor: Any | None = None) -> Config:
    """The config with the names of all that was handed over, so that it says what the run is."""
    known = config.evolution.operators
    added = [operator.name for operator in extensions.operators if operator.name not in known]
    own_tasks = extensions.parts.get("task", {})
    source = data if isinstance(data, str) and data in own_tasks else _source(data)
    changes: dict[str, object] = {"evolution.operators": [*known, *added], "data.source": source}
    if ancestor is not None:
        description = json.dumps(_described(ancestor), separators=(",", ":"))
        changes["evolution.start_genome"] = description
    if extensions.fitness is not None:
        changes["training.fitness"] = registry.named(extensions.fitness)
    if extensions.optimiser is not None:
        changes["training.optimiser"] = registry.named(extensions.optimiser)
        if not settings.is_of_a_preset(config, "training.optimiser_arguments"):
            changes["training.optimiser_arguments"] = config.training.optimiser_arguments
    for kind, own in extensions.parts.items():
        setting = registry.SHELVES[kind].setting
        if kind != "task" and len(own) == 1 and fields.value_of(config, setting) not in own:
            changes[setting] = next(iter(own))
    return settings.changed(config, **fields.by_section(changes))


def advice(config: Config) -> str | None:
    """What a person should know about these settings before a run begins."""
    own = config.evolution
    if own.evolve and own.selection == "paper" and own.initial_networks == 1:
        return (
            "a single network has no mate, and so no offspring: it will only be trained; "
            "--evolution.initial-networks 2 or more let it evolve"
        )
    return None


def suited(config: Config, subject: Subject) -> Config:
    """The config with the fitness that suits what is predicted: accuracy, the default, is for classes."""
    if not _learns(config) or subject.data is None or subject.data.task == "classes":
        return config
    fitness = measures.suited(config.training.fitness, subject.data.task)
    return settings.changed(config, training={"fitness": fitness})


def _learns(config: Config) -> bool:
    """Whether networks learn from data, so that their fitness is that of `training.fitness`."""
    return config.evaluator in ("backprop", "es")


def fitted(
    ancestor: Any, config: Config, subject: Subject, extensions: Extensions, note: Callable[[str], None]
) -> Any:
    """An ancestor that fits the data: a champion for other classes, channels or sizes is made to.

    Layers that fit are kept, known classes keep their outputs, and all else is drawn new.
    """
    if not isinstance(ancestor, Champion):
        return ancestor
    before = Problem(tuple(ancestor.outline.input_shape), ancestor.outline.outputs)
    task = subject.data.task if subject.data else "classes"
    if before == subject.problem and ancestor.classes == subject.classes and ancestor.facts.task == task:
        return ancestor
    if ancestor.family.name != config.family:
        raise ConfigError(
            f"the champion to start from is of the family {ancestor.family.name}, this run is of "
            f"{config.family}: give --family {ancestor.family.name}, or a preset of that family"
        )
    family = make_family(config, subject, extensions)
    if not isinstance(family, HasTransfer):
        raise ConfigError(f"networks of the family {family.name} cannot be fitted to other data")
    # an output that meant something else is of no use
    same_task = ancestor.facts.task == task
    known = {name: place for place, name in enumerate(ancestor.classes) if same_task}
    rows = [known.get(name) for name in subject.classes]
    rng = randomness.generator(config.evolution.seed, "transfer")
    try:
        network, kept = family.adapted(ancestor.phenotype, rows, rng)
    except GenomeError as error:
        raise ConfigError(f"the champion to start from does not fit this data: {error}") from None
    same = sum(row is not None for row in rows)
    note(
        f"starting from a champion for {len(ancestor.classes)} {words.OUTPUTS[ancestor.facts.task]} of "
        f"{ancestor.facts.data}: {kept} layers below the outputs are kept, and the outputs of {same} "
        f"{words.OUTPUTS[task]}; "
        f"{len(rows) - same} outputs are new"
    )
    return network


def _described(ancestor: Any) -> Any:
    """The structure of a champion, a phenotype or a genome, as plain values."""
    if isinstance(ancestor, Champion):
        return ancestor.description
    return getattr(ancestor, "genome", ancestor).to_dict()


def changed(config: Config, changes: Mapping[str, object]) -> Config:
    """The config with the changes that `resume` allows; any other is refused with the reason."""
    after = settings.changed(config, **fields.by_section(changes))
    for name in changes:
        was, becomes = (fields.value_of(each, name) for each in (config, after))
        if was != becomes and name not in MAY_CHANGE_ON_RESUME:
            raise ConfigError(
                f"{name} is {was} in this run and cannot become {becomes}: its generations rest on it; "
                f"begin a new run, or change only {', '.join(sorted(MAY_CHANGE_ON_RESUME))}"
            )
    return after


def subject(
    data: Any, config: Config, progress: Progress | None = None, parts: registry.Parts | None = None
) -> Subject:
    """What the run is about: a data set, read as the config says, a task, or a bare problem."""
    task = tasks.given(data, (parts or {}).get("task"))
    if task is not None:
        return of_task(task, config)
    given = data if isinstance(data, Problem) else load_data(data, config, progress)
    return Subject.of(given, config.evaluator)


def of_task(task: Task, config: Config) -> Subject:
    """A task with the target and the episodes of the settings, and its observations scaled, if they ask."""
    own = config.episodes
    if isinstance(task, Gym):
        task = task.aimed(config.evolution.target, own.number)
    return replace(Subject.of(task), sight=_sight(task, config))


def _sight(task: Task, config: Config) -> Sight:
    """Observations as they are, or scaled by what some episodes of random actions show, and what follows."""
    wanted = config.episodes.normalise
    if not wanted:
        return Sight()
    if task.name in tasks.TASKS:
        raise ConfigError(f"episodes.normalise: what is seen in {task.name} is scaled already; leave it out")
    if isinstance(task, Gym):
        rng = generator(config.evolution.seed, "observations")
        sums = sums_of(task.observations(rng, _FIRST_EPISODES if wanted == "running" else wanted))
        return Sight(start=sums) if wanted == "running" else Sight(scaling_of(sums))
    if wanted != "running":
        raise ConfigError("episodes.normalise: a task of your own takes running, or 0")
    size = int(np.prod(task.problem.input_shape))
    # as if one observation had been all 0 and one all ±1, so that there is a scaling before anybody looked
    return Sight(start=(2.0, *[0.0] * size, *[2.0] * size))


def load_data(data: Any, config: Config, progress: Progress | None = None) -> DataSet:
    """The data set, read as the config says."""
    own = config.data
    given = own.model_dump(
        exclude={"source", "directory"} | ({"total_pixels"} if own.total_pixels is None else set())
    )
    options = DataOptions(**given)
    directory = Path(own.directory) if own.directory else None
    return load(data, data_dir=directory, options=options, progress=progress)


def make_family(config: Config, subject: Subject, extensions: Extensions) -> Family[Any]:
    """The family that the config names; an operator that nobody brought along is refused."""
    kind = registry.find(registry.SHELVES["family"], config.family, extensions.parts.get("family"))
    family: Family[Any] = kind.from_config(config, subject.problem, extensions.operators)
    return family


def with_backend(
    config: Config,
    family: Family[Any],
    subject: Subject,
    extensions: Extensions,
    note: Callable[[str], None],
) -> Config:
    """The config with the arithmetic settled: once for a run, here, and never by a worker.

    Where `training.backend` asks for native arithmetic and the run cannot have it, it is refused. Where the
    library is missing, a note says so: pip shows nothing of a build that failed.
    """
    if config.evaluator != "backprop" or config.training.backend == "torch":
        return settings.changed(config, training={"backend": "torch"})
    from epicortex import native
    from epicortex.evaluation.compiled import why_torch

    why = why_torch(config.training, family, subject.problem, subject.data, extensions.optimiser)
    if why is not None and config.training.backend == "native":
        raise ConfigError(f"training.backend is native, but this run cannot have it: {why}; set it to torch")
    if not native.available():
        note(f"networks train on torch, which takes several times as long: {native.why_not()}")
    return settings.changed(config, training={"backend": "native" if why is None else "torch"})


def make_evolution(
    config: Config, family: Family[Any], extensions: Extensions, ancestor: Any | None
) -> Evolution:
    """The rules of the run."""
    return Evolution(config, family, ancestor, Strategies.from_config(config, extensions.parts))


def founders(evolution: Evolution) -> EcosystemState:
    """The state before the first generation, if there is memory for it; settings may come from anyone."""
    genome = getattr(evolution.family, "start", None)
    each = _NETWORK_BYTES + 4 * getattr(genome, "parameters", 0)
    networks = evolution.config.evolution.initial_networks
    if (reason := too_much(networks * each)) is not None:
        raise ConfigError(
            f"evolution.initial_networks is {networks}; for so many networks of this size {reason}"
        )
    return evolution.start()


def make_recipe(config: Config, family: Family[Any], subject: Subject, extensions: Extensions) -> Recipe:
    """How workers evaluate; settings that could evaluate no network are refused."""
    own = extensions.parts.get("evaluator", {})
    part = registry.find(registry.SHELVES["evaluator"], config.evaluator, own)
    functions: dict[str, Any] = {
        name: function
        for name, function in (
            ("fitness", extensions.fitness),
            ("optimiser", extensions.optimiser),
            ("task", subject.task),
            ("sight", subject.sight if subject.task is not None else None),
        )
        if function is not None
    }
    if not hasattr(part, "from_config"):
        from epicortex.evaluation.function import FunctionRecipe

        part, functions = FunctionRecipe, {config.evaluator: part}
    recipe: Recipe = part.from_config(config, family, functions)
    recipe.check(subject.data)
    return recipe


def describe_champion(
    state: EcosystemState,
    config: Config,
    subject: Subject,
    family: Family[Any],
    *,
    test: float | None = None,
    verdict: Verdict | None = None,
) -> Champion | None:
    """The run's champion with all that is needed to use it; None before the first generation is complete."""
    if state.champion is None or state.champion.fitness is None:
        return None
    champion = _model(state.champion, state.champion_generation, config, subject, family, test, verdict)
    if subject.task is None:
        return champion
    return replace(champion, scaling=subject.sight.after(state.champion_sums))


def judged(recipe: Recipe, champion: Champion, subject: Subject) -> tuple[float | None, Verdict]:
    """The champion's figure on the test set, and what else the evaluator can tell, if it can."""
    if hasattr(recipe, "seeing"):
        recipe = recipe.seeing(champion.scaling)
    if not hasattr(recipe, "judge"):
        return recipe.test(champion.phenotype, subject.data), Verdict()
    verdict: Verdict = recipe.judge(champion.phenotype, subject.data)
    return verdict.figure, verdict


def smaller_models(
    state: EcosystemState, config: Config, subject: Subject, family: Family[Any], recipe: Recipe
) -> list[Champion]:
    """The best network of every other species that a planned run has polished, tested as the champion is.

    One that is larger than the champion in every way is of no use: the champion is fitter.
    """
    if state.plan is None or state.champion is None:
        return []
    groups = census.by_species(census.evaluated(state.networks))
    others = [group for species, group in groups.items() if species != state.champion.species]
    found = []
    champion = state.champion.phenotype
    for network in (min(group, key=lambda one: (loss(one), one.id)) for group in others):
        own = network.phenotype
        if family.parameters(own) >= family.parameters(champion) and family.cost(own) >= family.cost(
            champion
        ):
            continue
        model = _model(network, state.generation, config, subject, family)
        test, verdict = judged(recipe, model, subject)
        found.append(_model(network, state.generation, config, subject, family, test, verdict))
    return found


def _model(
    network: Individual,
    generation: int,
    config: Config,
    subject: Subject,
    family: Family[Any],
    test: float | None = None,
    verdict: Verdict | None = None,
) -> Champion:
    verdict = verdict or Verdict()
    facts = Facts(
        classes=subject.classes,
        data=subject.name,
        network=network.id,
        generation=generation,
        fitness=census.fitness(network),
        fitness_on=config.training.fitness_on if subject.data is not None else TASK,
        test_accuracy=test,
        seed=config.evolution.seed,
        fitness_name=config.fitness_name
        if subject.data is not None and _learns(config)
        else config.evaluator,
        test=verdict.test,
        temperature=verdict.temperature,
        bits=subject.data.bits if subject.data else DEEP,
        columns=subject.data.columns if subject.data else (),
        label_kind=subject.data.label_kind if subject.data else "text",
        task=subject.data.task if subject.data else "classes",
        targets=subject.data.targets if subject.data else None,
        table=subject.data.table if subject.data else None,
        regression=verdict.regression,
        labels=verdict.labels,
    )
    phenotype = family.settled(network.phenotype) if isinstance(family, HasAverages) else network.phenotype
    return Champion(phenotype, family, subject.scaling, facts)


def _source(data: Any) -> str | None:
    """How config.toml names the data: so that it is found again, from whatever folder."""
    if not isinstance(data, str | Path):
        return None
    return (
        str(data)
        if str(data) in BUILT_INS or tasks.is_task(data)
        else str(Path(data).expanduser().absolute())
    )
