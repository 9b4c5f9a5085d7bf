"""From a config and what a program hands over to the parts of a run: data, evolution, what workers need.

What only a program can bring (operators, a fitness function) is named in the config, never imported from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.champion.file import Champion, Facts
from epicortex.config import MAY_CHANGE_ON_RESUME, Config
from epicortex.config import resolving as settings
from epicortex.data import DataOptions, DataSet, Progress, load
from epicortex.data.catalog import BUILT_INS
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import ConfigError
from epicortex.evolution import Evolution
from epicortex.families.layered import OPERATORS, LayeredFamily, Operator, Rules
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.machine import too_much

if TYPE_CHECKING:
    from epicortex.engines import Engine, WorkerSetup
    from epicortex.evaluation import FitnessFunction
    from epicortex.families.activations import Activations

ENTRY_POINTS: Final = "epicortex.operators"
#: About what a network takes besides its weights.
_NETWORK_BYTES: Final = 5_000


@dataclass(frozen=True, slots=True)
class Extensions:
    """What only a program can bring along."""

    operators: Sequence[Operator] = ()
    fitness: FitnessFunction | None = None
    optimiser: Callable[..., Any] | None = None
    engine: Engine | None = None


def named(
    config: Config, data: Any, extensions: Extensions, ancestor: Phenotype | Genome | None = None
) -> Config:
    """The config with the names of all that was handed over, so that it says what the run is."""
    changes: dict[str, dict[str, Any]] = {"evolution": {}, "training": {}, "data": {}}
    known = config.evolution.operators
    added = [operator.name for operator in extensions.operators if operator.name not in known]
    changes["evolution"]["operators"] = [*known, *added]
    if ancestor is not None:
        genome = ancestor.genome if isinstance(ancestor, Phenotype) else ancestor
        changes["evolution"]["start_genome"] = genome.to_json()
    if extensions.fitness is not None:
        changes["training"]["fitness"] = _name(extensions.fitness)
    if extensions.optimiser is not None:
        changes["training"]["optimiser"] = _name(extensions.optimiser)
    changes["data"]["source"] = _source(data)
    return settings.changed(config, changes)


def changed(config: Config, changes: Mapping[str, object]) -> Config:
    """The config with the changes that `resume` allows; any other is refused with the reason."""
    sections: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        section, _, rest = name.partition(".")
        sections.setdefault(section, {})[rest] = value
    after = settings.changed(config, sections)
    for name in changes:
        section, _, rest = name.partition(".")
        was, becomes = (getattr(getattr(each, section), rest) for each in (config, after))
        if was != becomes and name not in MAY_CHANGE_ON_RESUME:
            raise ConfigError(
                f"{name} is {was} in this run and cannot become {becomes}: its generations rest on it; "
                f"begin a new run, or change only {', '.join(sorted(MAY_CHANGE_ON_RESUME))}"
            )
    return after


def load_data(data: Any, config: Config, progress: Progress | None = None) -> DataSet:
    """The data set, read as the config says."""
    own = config.data
    options = DataOptions(**own.model_dump(exclude={"source", "directory"}))
    directory = Path(own.directory) if own.directory else None
    return load(data, data_dir=directory, options=options, progress=progress)


def make_evolution(
    config: Config, data: DataSet, extensions: Extensions, ancestor: Phenotype | None
) -> Evolution:
    """The rules of the run; an operator that nobody brought along is refused."""
    given = {**OPERATORS, **{operator.name: operator for operator in extensions.operators}}
    operators = [given.get(name) or _installed(name, given) for name in config.evolution.operators]
    start = config.evolution.start_genome
    family = LayeredFamily(
        data.input_shape,
        len(data.classes),
        rules=Rules.from_config(config.evolution),
        operators=operators,
        start=Genome.from_json(start) if start else None,
    )
    return Evolution(config, family, ancestor)


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


def _installed(name: str, others: Iterable[str]) -> Operator:
    """The operator that an installed package offers under this name; no file can make a name known."""
    points = entry_points(group=ENTRY_POINTS)
    for point in points:
        if point.name == name:
            try:
                part = point.load()
                operator = part() if isinstance(part, type) else part
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise ConfigError(f"evolution.operators: {name!r} cannot be loaded: {reason}") from error
            if not isinstance(operator, Operator) or operator.name != name:
                raise ConfigError(
                    f"evolution.operators: {point.value} is not an operator called {name!r}; it needs the "
                    "members name, possible, weight and apply"
                )
            return operator
    names = dict.fromkeys((*others, *(point.name for point in points)))
    raise ConfigError(
        f"evolution.operators: no operator is called {name!r}; there are {', '.join(names)} "
        "(one of your own is handed over in Python, or with --plugin FILE.py)"
    )


def worker_setup(config: Config, data: DataSet, extensions: Extensions) -> WorkerSetup:
    """All that a worker needs; settings that could train no network are refused."""
    from epicortex.engines import WorkerSetup
    from epicortex.evaluation import check_training

    training = config.training
    check_training(
        training,
        data=data,
        fitness={training.fitness: extensions.fitness} if extensions.fitness else None,
        optimiser=extensions.optimiser,
    )
    return WorkerSetup(
        data=data,
        training=training,
        activations=_activations(config),
        seed=config.evolution.seed,
        fitness=extensions.fitness,
        optimiser=extensions.optimiser,
    )


def describe_champion(
    state: EcosystemState, config: Config, data: DataSet, *, test: float | None = None
) -> Champion | None:
    """The run's champion with all that is needed to use it; None before the first generation is complete."""
    best = state.champion
    if best is None or best.fitness is None:
        return None
    facts = Facts(
        conv_activation=config.evolution.conv_activation,
        full_activation=config.evolution.full_activation,
        classes=data.classes,
        data=data.name,
        network=best.id,
        generation=state.champion_generation,
        fitness=best.fitness,
        fitness_on=config.training.fitness_on,
        test_accuracy=test,
        seed=config.evolution.seed,
    )
    return Champion(best.phenotype, data.scaling, facts)


def test_accuracy(phenotype: Phenotype, config: Config, data: DataSet) -> float | None:
    """The accuracy on the test set, where there is one that fitness was not measured on."""
    if config.training.fitness_on == "test" or not len(data.y_test):
        return None
    from epicortex.evaluation import Trainer

    # Scoring takes no optimiser, and a name that a program gave to its own means nothing here.
    training = config.training.model_copy(update={"optimiser": "SGD"})
    trainer = Trainer(data, training, _activations(config), seed=config.evolution.seed)
    return trainer.score(phenotype, "test").accuracy


def _activations(config: Config) -> Activations:
    from epicortex.families.activations import Activations

    return Activations(conv=config.evolution.conv_activation, full=config.evolution.full_activation)


def _source(data: Any) -> str | None:
    """How config.toml names the data: so that it is found again, from whatever folder."""
    if not isinstance(data, str | Path):
        return None
    return str(data) if str(data) in BUILT_INS else str(Path(data).expanduser().absolute())


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
