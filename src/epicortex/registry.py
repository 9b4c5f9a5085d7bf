"""Parts of a person's own, in one Python file that is named on the command line.

Such a file defines any of `operators` (a list), `fitness` and `optimisers` (name -> function). Only a person
who types its path makes it run; no file that EpiCortex reads can name one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from epicortex.errors import ConfigError

if TYPE_CHECKING:
    from epicortex.families.layered import Operator

Table = Literal["fitness", "optimisers"]


@dataclass(frozen=True, slots=True)
class FromFile:
    """A function of a plug-in file that workers can be sent: there it is loaded from the file again."""

    path: Path
    table: Table
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

    operators: tuple[Operator, ...] = ()
    fitness: Mapping[str, FromFile] = field(default_factory=dict)
    optimisers: Mapping[str, FromFile] = field(default_factory=dict)


def load(paths: Sequence[Path]) -> Plugins:
    """Run plug-in files and gather what they define; a file that fails is a `ConfigError` of one line."""
    operators: list[Operator] = []
    tables: dict[Table, dict[str, FromFile]] = {"fitness": {}, "optimisers": {}}
    for path in (path.absolute() for path in paths):
        module = _module(path)
        operators += _operators(module, path)
        for table, parts in tables.items():
            parts.update({name: FromFile(path, table, name) for name in _functions(module, path, table)})
        if not any(hasattr(module, name) for name in ("operators", *tables)):
            raise ConfigError(f"plug-in {path} defines none of operators, fitness and optimisers")
    return Plugins(tuple(operators), tables["fitness"], tables["optimisers"])


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


def _operators(module: ModuleType, path: Path) -> Sequence[Operator]:
    found = getattr(module, "operators", ())
    parts = ("name", "possible", "weight", "apply")
    if not isinstance(found, Sequence) or not all(hasattr(one, part) for one in found for part in parts):
        raise ConfigError(
            f"plug-in {path}: operators must be a list of objects with name, possible, weight and apply"
        )
    return found


def _functions(module: ModuleType, path: Path, table: Table) -> Mapping[str, Any]:
    found = getattr(module, table, {})
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and callable(part) for name, part in found.items()
    ):
        raise ConfigError(f"plug-in {path}: {table} must be a dict from names to functions")
    return found
