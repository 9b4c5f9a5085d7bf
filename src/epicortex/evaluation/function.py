"""The evaluator of a user's own function: `evaluate(model, rng) -> float`, run inside the workers.

The family builds the model (an `nn.Module`, or a callable); the function says how good it is. Nothing is
trained, unless the function does so itself: weights that the model has afterwards are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from epicortex import randomness
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace, Stopped, finite, reason
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

    def open(self, data: DataSet | None) -> FunctionEvaluator:
        """The function takes nothing but the model and a generator."""
        del data
        return FunctionEvaluator(self)

    def test(self, phenotype: Any, data: DataSet | None) -> None:
        """There is nothing that the function has not seen."""
        del phenotype, data


class FunctionEvaluator:
    """Calls the user's function for every network."""

    def __init__(self, recipe: FunctionRecipe) -> None:
        self._recipe = recipe

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Score one network. A newborn's score before training is its fitness."""
        pace = Pace(heartbeat, should_stop, self._recipe.time_limit)
        family, evaluate = self._recipe.family, self._recipe.evaluate
        began = time.perf_counter()
        try:
            pace()
            model = family.build(job.phenotype)
            rng = randomness.generator(job.seed, "evaluation", generation=job.generation, network=job.network)
            fitness = finite(float(evaluate(model, rng)), named(evaluate))
            pace()
            phenotype = family.learned(job.phenotype, model)
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))
        return Outcome(
            job.network,
            job.generation,
            phenotype,
            fitness,
            fitness if job.newborn else None,
            score_seconds=time.perf_counter() - began,
        )
