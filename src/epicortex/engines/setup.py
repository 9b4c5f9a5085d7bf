"""All that a worker needs to train networks: the data set, the settings, and live functions of the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from epicortex.config import TrainingConfig
from epicortex.errors import EngineError

if TYPE_CHECKING:
    from epicortex.data import DataSet
    from epicortex.evaluation import FitnessFunction, OptimiserFactory, Trainer
    from epicortex.families.activations import Activations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkerSetup:
    """What a `Trainer` is built from, in any process. One of `data` and `data_path` is given."""

    training: TrainingConfig
    activations: Activations
    seed: int
    data: DataSet | None = None
    """The data set; where it has a file, workers in other processes map that."""
    data_path: Path | None = None
    """The file of a saved data set."""
    fitness: FitnessFunction | None = None
    """The user's own function that `training.fitness` names."""
    optimiser: OptimiserFactory | None = None
    """The user's own optimiser that `training.optimiser` names."""

    def __post_init__(self) -> None:
        if self.data is None and self.data_path is None:
            raise EngineError("a worker needs a data set: give `data` or `data_path`")

    def at(self, path: Path) -> WorkerSetup:
        """The same with the data set in a file."""
        return replace(self, data=None, data_path=path)

    def packed(self) -> bytes:
        """As bytes for another process, which must be one of ours; what cannot travel is an `EngineError`."""
        import cloudpickle  # type: ignore[import-untyped]

        try:
            # not plain pickle, since a user's function may live in the script itself
            content: bytes = cloudpickle.dumps(self, protocol=5)
        except Exception as error:
            raise EngineError(
                f"the fitness function or optimiser cannot be sent to a worker process ({error}); define it "
                "at the top of a module, or set training.engine to serial"
            ) from error
        return content

    def trainer(self, data: DataSet | None = None) -> Trainer:
        """A trainer for this setup, in this process; over another place of its data set, if one is given."""
        from epicortex.data import DataSet
        from epicortex.evaluation import Trainer

        data = data or self.data
        if data is None:
            assert self.data_path is not None
            data = DataSet.open(self.data_path)
        return Trainer(
            data,
            self.training,
            self.activations,
            seed=self.seed,
            fitness=self.fitness,
            optimiser=self.optimiser,
        )
