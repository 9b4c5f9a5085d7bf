"""All that a worker needs to evaluate networks: how, of which family, and on which data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex import native, registry
from epicortex.errors import EngineError
from epicortex.families.family import Family

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.data import DataSet
    from epicortex.evaluation.evaluator import Evaluator, Recipe


def needed_module(config: Config) -> str | None:
    """What workers will need and may import while data is read; None where nothing takes long.

    Torch takes over a second. Where the arithmetic is not settled yet, workers get ready for the
    native one if there is any, and import torch later if it comes to that.

    >>> from epicortex.config import Config
    >>> needed_module(Config(evaluator="episodes"))
    """
    if config.evaluator != "backprop":
        return None
    by_torch = config.training.backend == "torch" or not native.available()
    return "epicortex.evaluation.trainer" if by_torch else "epicortex.evaluation.compiled"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkerSetup:
    """What an evaluator is made from, in any process."""

    recipe: Recipe
    family: Family[Any]
    data: DataSet | None = None
    """The data set, where there is one; workers in other processes map its file, where it has one."""
    data_path: Path | None = None
    """The file of a saved data set."""

    def at(self, path: Path | None) -> WorkerSetup:
        """The same with the data set in a file, where there is one."""
        return replace(self, data=None, data_path=path)

    def packed(self) -> bytes:
        """As bytes for another process, which must be one of ours; what cannot travel is an `EngineError`."""
        import cloudpickle  # type: ignore[import-untyped]

        registry.by_value()
        try:
            # not plain pickle, since a user's function may live in the script itself
            content: bytes = cloudpickle.dumps(self, protocol=5)
        except Exception as error:
            raise EngineError(
                f"a function or part of your own cannot be sent to a worker process ({error}); define it "
                "at the top of a module, or set training.engine to serial"
            ) from error
        return content

    def data_set(self) -> DataSet | None:
        """The data set, opened where it is a file."""
        if self.data is not None or self.data_path is None:
            return self.data
        from epicortex.data import DataSet

        return DataSet.open(self.data_path)

    def evaluator(self, data: DataSet | None = None) -> Evaluator:
        """The evaluator, in this process; over another place of its data set, if one is given."""
        return self.recipe.open(data or self.data_set())
