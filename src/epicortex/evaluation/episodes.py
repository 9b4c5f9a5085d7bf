"""The evaluator `episodes`: a network's fitness is its reward in a task. Nothing is trained.

All networks of a generation meet the same episodes, so that they are compared fairly; the next generation
meets others. Torch is imported only where the family's models are its modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from epicortex import randomness, tasks
from epicortex.data import Scaling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace
from epicortex.evaluation.guarded import Guarded, scored
from epicortex.evaluation.policies import policy_of
from epicortex.evaluation.sight import Sight, seen
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
    sight: Sight
    """What observations are scaled by before networks see them."""
    time_limit: float | None = None

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """The task that the run is about; one of a person's own is handed over as a function."""
        task = functions.get("task") or tasks.given(config.data.source)
        if task is None:
            known = ", ".join(tasks.TASKS)
            raise ConfigError(f"evaluator: episodes needs a task ({known}, or your own), not a data set")
        sight = functions.get("sight") or Sight()
        return cls(family, task, config.evolution.seed, sight, config.training.time_limit)

    def check(self, data: DataSet | None) -> None:
        """A task needs no data."""
        if data is not None:
            raise ConfigError("evaluator: episodes takes a task, not a data set")

    def open(self, data: DataSet | None) -> Guarded:
        """The task in this process."""
        del data
        return Guarded(self._scored, self.task.name, self.time_limit)

    def seeing(self, scaling: Scaling) -> Self:
        """The same where observations are scaled so from now on, as they were for a champion."""
        return replace(self, sight=Sight(scaling))

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """What the task tests a champion on, if anything."""
        del data
        rng = randomness.generator(self.seed, "test episodes")
        return self.task.test(self.sight.policy(self._policy(phenotype), {}), rng)

    def _policy(self, phenotype: Any) -> Policy:
        return policy_of(self.family.build(phenotype), self.task.problem.input_shape)

    def _scored(self, job: Job, pace: Pace) -> Outcome:
        policy = self.sight.watched(self._policy(job.phenotype), job.sums)
        rng = randomness.generator(job.seed, "episodes", generation=job.generation)
        return scored(job, float(self.task.reward(policy, rng, pace)), sums=seen(policy))
