"""Who trains the networks: one contract (`Engine`), several ways to keep it.

Engines are found by name: those of this package, and those that other packages install under the entry-point
group `epicortex.engines`. Nothing of an engine is imported unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from epicortex import registry
from epicortex.config import Config
from epicortex.engines.base import Engine
from epicortex.engines.setup import WorkerSetup
from epicortex.errors import ConfigError

__all__ = ["Engine", "WorkerSetup", "check_engine", "create", "enlisted", "names"]

_SHELF: Final = registry.Shelf(
    "engine",
    "training.engine",
    "epicortex.engines",
    {
        "serial": "epicortex.engines.serial:SerialEngine",
        "processes": "epicortex.engines.processes:ProcessEngine",
        "ray": "epicortex.engines.ray:RayEngine",
        "mpi": "epicortex.engines.mpi:MpiEngine",
    },
)
#: What engines need that may not be installed; the extra has the engine's name.
_NEEDS: Final = {"ray": "ray", "mpi": "mpi4py"}


def names() -> tuple[str, ...]:
    """The engines that can be asked for.

    >>> "processes" in names()
    True
    """
    return tuple(dict.fromkeys((*_SHELF.built_in, *registry.installed(_SHELF.group))))


def check_engine(name: str) -> None:
    """Refuse an unknown name with `ConfigError`."""
    if name not in names():
        raise registry.unknown(_SHELF.setting, _SHELF.kind, name, names())


def create(name: str, setup: WorkerSetup | None, config: Config) -> Engine:
    """The engine of this name, its workers starting at once.

    Without a `setup` the workers come up while the data is still being read; `Engine.prepare` hands it in.
    """
    check_engine(name)
    engine = _factory(name)(config)
    if setup is not None:
        try:
            engine.prepare(setup)
        except BaseException:
            engine.close()
            raise
    return engine


def enlisted(name: str) -> bool:
    """Whether this process was a worker, one that the engine does not start itself, and its work is over.

    A program asks this before it does anything else. Where it says False, the program leads.
    """
    check_engine(name)
    enlist: Callable[[], bool] | None = getattr(_factory(name), "enlist", None)
    return enlist is not None and enlist()


def _factory(name: str) -> Callable[[Config], Engine]:
    """An engine is made by a callable that takes the config."""
    try:
        factory: Callable[[Config], Engine] = registry.find(_SHELF, name)
    except (ImportError, RuntimeError) as error:  # the latter where mpi4py finds no MPI library
        needed = _NEEDS.get(name)
        if needed is None:
            raise
        missing = isinstance(error, ImportError) and error.name == needed
        reason = f"{needed} is not installed" if missing else " ".join(str(error).split())
        raise ConfigError(f"training.engine: {reason}; pip install 'epicortex[{name}]'") from error
    return factory
