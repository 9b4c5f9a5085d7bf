"""What can be wrong with the training settings, said in one line before a run begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.errors import ConfigError
from epicortex.evaluation.compiled import is_sound
from epicortex.evaluation.fitness import FitnessFunction, find_fitness
from epicortex.evaluation.samples import fitness_rows

if TYPE_CHECKING:
    import torch

    from epicortex.evaluation.optimisers import OptimiserFactory


def check_training(
    training: TrainingConfig,
    *,
    data: DataSet | None = None,
    fitness: Mapping[str, FitnessFunction] | None = None,
    optimiser: OptimiserFactory | None = None,
) -> None:
    """Refuse, with `ConfigError`, an optimiser, fitness, device or split that could train no network.

    >>> check_training(TrainingConfig(optimiser="Adam", optimiser_arguments={"lr": 0.001}))
    """
    find_fitness(training.fitness, fitness)
    if optimiser is not None or training.backend != "native" or not is_sound(training):
        _check_by_torch(training, optimiser)
    if data is not None:
        fitness_rows(data, training, 0)


def _check_by_torch(training: TrainingConfig, optimiser: OptimiserFactory | None) -> None:
    """It takes a second to import, which native runs save."""
    from epicortex.evaluation.optimisers import check_optimiser, find_optimiser

    factory = optimiser or find_optimiser(training.optimiser)
    check_optimiser(factory, training.optimiser, training.optimiser_arguments)
    find_device(training.device)


def find_device(name: str) -> torch.device:
    """The device of this name; one that this machine does not have is a `ConfigError`."""
    import torch

    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise ConfigError(
                f"training.device: {name} is not there (torch sees {count} CUDA devices); use cpu"
            )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("training.device: torch finds no MPS device on this machine; use cpu")
    return device
