"""The settings that mutation and crossover follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from epicortex.config import Config


@dataclass(frozen=True, slots=True)
class Rules:
    """How new weights, shapes and layers are drawn; the values here are the paper's."""

    weight_deviation: float = 0.1
    kernel_temperature: float = 1.0
    stride_temperature: float = 1.0
    kernel_start: Literal["area", "perimeter"] = "area"
    targets: Literal["even", "size"] = "even"
    similarity: Literal["nodes", "strides"] = "nodes"
    layer_choice: Literal["parameters", "type"] = "parameters"
    kernel_weight: Literal["kernels", "nodes"] = "kernels"
    mutation_choice: Literal["weights", "fitness_first", "fitness", "even"] = "weights"

    credit: tuple[tuple[str, float], ...] | None = None
    """What each type and direction is credited with, where types are drawn by that."""

    @classmethod
    def from_config(cls, config: Config) -> Rules:
        """The rules that a run's settings ask for."""
        evolution, layered = config.evolution, config.layered
        return cls(
            weight_deviation=evolution.weight_deviation,
            kernel_temperature=evolution.kernel_temperature,
            stride_temperature=evolution.stride_temperature,
            kernel_start=layered.kernel_start,
            targets=layered.targets,
            similarity=layered.similarity,
            layer_choice=layered.layer_choice,
            kernel_weight=layered.kernel_weight,
            mutation_choice=layered.mutation_choice,
        )
