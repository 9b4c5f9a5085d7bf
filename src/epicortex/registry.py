"""Names and parts: what a setting's name stands for, wherever the part comes from.

A part is ours, of an installed package (an entry point), handed over in Python, or defined by a plug-in file
that a person names on the command line. A run's files only name parts: no file can make a name known.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from epicortex.errors import ConfigError, EpiCortexError
from epicortex.text import nearest, one_line

Functions = Literal["fitness", "optimisers"]
Parts = Mapping[str, Mapping[str, Any]]
"""Parts of a person's own: kind -> name -> part."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the parts of one kind are found."""

    kind: str
    """What people call one of them."""
    setting: str
    """The setting that names it."""
    group: str
    """The entry-point group of installed packages."""
    built_in: Mapping[str, str] = field(default_factory=dict)
    """Ours: name -> "module:attribute", imported when it is first asked for."""


#: The replaceable parts of a run. The keys are also the names of the tables in a plug-in file.
SHELVES: Final = {
    "family": Shelf(
        "family",
        "family",
        "epicortex.families",
        {
            "layered": "epicortex.families.layered.family:LayeredFamily",
            "residual": "epicortex.families.residual.family:ResidualFamily",
            "unstructured": "epicortex.families.unstructured.family:UnstructuredFamily",
        },
    ),
    "evaluator": Shelf(
        "evaluator",
        "evaluator",
        "epicortex.evaluators",
        {
            "backprop": "epicortex.evaluation.backprop:Backprop",
            "episodes": "epicortex.evaluation.episodes:Episodes",
            "es": "epicortex.evaluation.es:EvolutionStrategy",
        },
    ),
    "task": Shelf("task", "data.source", "epicortex.tasks"),
    "speciation": Shelf(
        "speciation",
        "evolution.speciation",
        "epicortex.speciation",
        {
            "key": "epicortex.ecosystem.speciation:SpeciesByKey",
            "none": "epicortex.ecosystem.speciation:NoSpecies",
            "cost": "epicortex.ecosystem.classes:CostClasses",
        },
    ),
    "selection": Shelf(
        "selection",
        "evolution.selection",
        "epicortex.selection",
        {
            "paper": "epicortex.ecosystem.selection:PaperSelection",
            "credit": "epicortex.ecosystem.credit:CreditSelection",
            "challengers": "epicortex.ecosystem.challengers:ChallengerSelection",
            "generational": "epicortex.ecosystem.generational:GenerationalSelection",
        },
    ),
    "culling": Shelf(
        "culling",
        "evolution.culling",
        "epicortex.culling",
        {
            "paper": "epicortex.ecosystem.culling:PaperCulling",
            "age": "epicortex.ecosystem.culling:AgeCulling",
            "improvement": "epicortex.ecosystem.improvement:ImprovementCulling",
            "beaten": "epicortex.ecosystem.challengers:OutcompetedCulling",
        },
    ),
    "budget": Shelf(
        "budget",
        "evolution.budget",
        "epicortex.budget",
        {
            "paper": "epicortex.ecosystem.budget:PaperBudget",
            "planned": "epicortex.ecosystem.planned:PlannedBudget",
        },
    ),
}
OPERATORS: Final = Shelf("operator", "evolution.operators", "epicortex.operators")


def find(shelf: Shelf, name: str, own: Mapping[str, Any] | None = None) -> Any:
    """The part of this name; an unknown one is a `ConfigError` that names the nearest.

    >>> find(SHELVES["selection"], "paper").__name__
    'PaperSelection'
    """
    if own and name in own:
        return own[name]
    if name in shelf.built_in:
        module, _, attribute = shelf.built_in[name].partition(":")
        return getattr(import_module(module), attribute)
    points = installed(shelf.group)
    if name in points:
        return loaded(points[name], shelf.setting)
    raise unknown(shelf.setting, shelf.kind, name, (*(own or ()), *shelf.built_in, *points))


def unknown(setting: str, kind: str, name: str, names: Iterable[str]) -> ConfigError:
    """What is said of a name that stands for nothing; it may come from anyone's file, and be long."""
    name = one_line(name)
    known = {known.lower(): known for known in names}
    near = nearest(name.lower(), known, cutoff=0.5)
    hint = f"did you mean {known[near]!r}?" if near else f"there are {', '.join(known.values())}"
    return ConfigError(
        f"{setting}: no {kind} is called {name!r}; {hint} "
        "(one of your own is handed over in Python, or with --plugin FILE.py)"
    )


def installed(group: str) -> dict[str, EntryPoint]:
    """What installed packages offer in a group."""
    return {point.name: point for point in entry_points(group=group)}


def loaded(point: EntryPoint, setting: str) -> Any:
    """The part that an installed package offers; one that cannot be imported is a `ConfigError`."""
    try:
        return point.load()
    except EpiCortexError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"{setting}: {point.name!r} is installed but cannot be loaded: {reason}") from error


def named(part: Any) -> str:
    """What a run's config calls a part that was handed over in Python."""
    name = str(getattr(part, "__name__", type(part).__name__))
    return "lambda" if name == "<lambda>" else name


@dataclass(frozen=True, slots=True)
class FromFile:
    """A function of a plug-in file that workers can be sent: there it is loaded from the file again."""

    path: Path
    table: Functions
    name: str

    @property
    def __name__(self) -> str:
        """What a run's config calls it."""
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return getattr(_module(self.path), self.table)[self.name](*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Plugins:
    """What all plug-in files of a command define."""

    operators: tuple[Any, ...] = ()
    fitness: Mapping[str, FromFile] = field(default_factory=dict)
    optimisers: Mapping[str, FromFile] = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)


def load(paths: Sequence[Path]) -> Plugins:
    """Run plug-in files and gather what they define; a file that fails is a `ConfigError` of one line."""
    operators: list[Any] = []
    functions: dict[Functions, dict[str, FromFile]] = {"fitness": {}, "optimisers": {}}
    parts: dict[str, dict[str, Any]] = {kind: {} for kind in SHELVES}
    for path in (path.absolute() for path in paths):
        module = _module(path)
        operators += _operators(module, path)
        for table, found in functions.items():
            found.update({name: FromFile(path, table, name) for name in _table(module, path, table)})
        for kind, own in parts.items():
            own.update(_table(module, path, kind))
        if not any(hasattr(module, name) for name in ("operators", *functions, *parts)):
            raise ConfigError(
                f"plug-in {path} defines none of operators, {', '.join(functions)}, {', '.join(parts)}"
            )
    return Plugins(tuple(operators), functions["fitness"], functions["optimisers"], parts)


def _module(path: Path) -> ModuleType:
    """The file as a module, run once in a process."""
    name = f"epicortex_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"plug-in {path} must be a Python file, with a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look a module up by its name while it runs.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"plug-in {path} failed: {type(error).__name__}: {error}") from error
    return module


def by_value() -> None:
    """Have cloudpickle send the classes of plug-in files as they are: workers cannot import such a file."""
    import cloudpickle  # type: ignore[import-untyped]

    for name, module in list(sys.modules.items()):
        if name.startswith("epicortex_plugin_"):
            cloudpickle.register_pickle_by_value(module)


def _operators(module: ModuleType, path: Path) -> Sequence[Any]:
    found = getattr(module, "operators", ())
    wanted = ("name", "possible", "apply")  # its family asks for the rest
    if not isinstance(found, Sequence) or not all(hasattr(one, name) for one in found for name in wanted):
        raise ConfigError(
            f"plug-in {path}: operators must be a list of objects with name, possible and apply"
        )
    return found


def _table(module: ModuleType, path: Path, table: str) -> Mapping[str, Any]:
    found = getattr(module, table, {})
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and callable(part) for name, part in found.items()
    ):
        raise ConfigError(f"plug-in {path}: {table} must be a dict from names to functions or classes")
    return found
