"""The evaluator `episodes`: a network's fitness is its reward in a task. Nothing is trained.

All networks of a generation meet the same episodes, so that they are compared fairly; the next generation
meets others. Torch is imported only where the family's models are its modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from epicortex import randomness, tasks
from epicortex.data import Scaling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace, Stopped, finite, reason
from epicortex.evaluation.policies import policy_of, scaled
from epicortex.families.family import Family
from epicortex.tasks import Policy, Task

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.data import DataSet


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """A task, as workers are told about it."""

    family: Family[Any]
    task: Task
    seed: int
    scaling: Scaling
    """What observations are scaled by before networks see them."""
    time_limit: float | None = None

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """The task that the run is about; one of a person's own is handed over as a function."""
        task = functions.get("task") or tasks.given(config.data.source)
        if task is None:
            known = ", ".join(tasks.TASKS)
            raise ConfigError(f"evaluator: episodes needs a task ({known}, or your own), not a data set")
        scaling = functions.get("scaling") or Scaling(1.0, (0.0,), (1.0,))
        return cls(family, task, config.evolution.seed, scaling, config.training.time_limit)

    def check(self, data: DataSet | None) -> None:
        """A task needs no data."""
        if data is not None:
            raise ConfigError("evaluator: episodes takes a task, not a data set")

    def open(self, data: DataSet | None) -> EpisodesEvaluator:
        """The task in this process."""
        del data
        return EpisodesEvaluator(self)

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """What the task tests a champion on, if anything."""
        del data
        return self.task.test(self.policy(phenotype), randomness.generator(self.seed, "test episodes"))

    def policy(self, phenotype: Any) -> Policy:
        """A network that acts."""
        policy = policy_of(self.family.build(phenotype), self.task.problem.input_shape)
        return scaled(policy, self.scaling)


class EpisodesEvaluator:
    """Lets networks act."""

    def __init__(self, recipe: Episodes) -> None:
        self._recipe = recipe

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """The reward of one network."""
        recipe = self._recipe
        pace = Pace(heartbeat, should_stop, recipe.time_limit)
        began = time.perf_counter()
        try:
            pace()
            policy = recipe.policy(job.phenotype)
            rng = randomness.generator(job.seed, "episodes", generation=job.generation)
            fitness = finite(float(recipe.task.reward(policy, rng, pace)), recipe.task.name)
            pace()
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))
        return Outcome(
            job.network,
            job.generation,
            job.phenotype,
            fitness,
            fitness if job.newborn else None,
            score_seconds=time.perf_counter() - began,
        )
