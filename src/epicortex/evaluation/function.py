"""The evaluator of a user's own function: `evaluate(model, rng) -> float`, run inside the workers.

The family builds the model (an `nn.Module`, or a callable); the function says how good it is. Nothing is
trained, unless the function does so itself: weights that the model has afterwards are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from epicortex import randomness
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace
from epicortex.evaluation.guarded import Guarded, scored
from epicortex.families.family import Family
from epicortex.registry import named

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.data import DataSet

EvaluateFunction: TypeAlias = Callable[[Any, np.random.Generator], float]
"""A function (model, generator) -> fitness; higher is better."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRecipe:
    """A user's own function as an evaluator."""

    family: Family[Any]
    evaluate: EvaluateFunction
    time_limit: float | None = None

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """The function that `evaluator` names."""
        return cls(family, functions[config.evaluator], config.training.time_limit)

    def check(self, data: DataSet | None) -> None:
        """A function can be called."""
        del data
        if not callable(self.evaluate):
            raise ConfigError(f"evaluator: {named(self.evaluate)} is not a function")

    def open(self, data: DataSet | None) -> Guarded:
        """The function takes nothing but the model and a generator."""
        del data
        return Guarded(self._scored, named(self.evaluate), self.time_limit)

    def test(self, phenotype: Any, data: DataSet | None) -> None:
        """There is nothing that the function has not seen."""
        del phenotype, data

    def _scored(self, job: Job, pace: Pace) -> Outcome:
        del pace
        model = self.family.build(job.phenotype)
        rng = randomness.generator(job.seed, "evaluation", generation=job.generation, network=job.network)
        fitness = float(self.evaluate(model, rng))
        return scored(job, fitness, self.family.learned(job.phenotype, model))
