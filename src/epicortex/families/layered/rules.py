"""The settings that mutation and crossover follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from epicortex.config import EvolutionConfig

Direction: TypeAlias = Literal["grow", "shrink"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How new weights, shapes and layers are drawn; the values here are the paper's."""

    weight_deviation: float = 0.1
    kernel_temperature: float = 1.0
    stride_temperature: float = 1.0
    kernel_start: Literal["area", "perimeter"] = "area"
    layer_choice: Literal["parameters", "type"] = "parameters"
    kernel_weight: Literal["kernels", "nodes"] = "kernels"
    mutation_choice: Literal["weights", "fitness", "even"] = "weights"

    @classmethod
    def from_config(cls, config: EvolutionConfig) -> Rules:
        """The rules that a run's settings ask for."""
        return cls(
            weight_deviation=config.weight_deviation,
            kernel_temperature=config.kernel_temperature,
            stride_temperature=config.stride_temperature,
            kernel_start=config.kernel_start,
            layer_choice=config.layer_choice,
            kernel_weight=config.kernel_weight,
            mutation_choice=config.mutation_choice,
        )
