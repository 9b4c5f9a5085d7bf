"""The evaluator `es`: the weights of any family, learned by an evolution strategy instead of gradients.

In each step weights are moved by mirrored pairs of random directions; who does better than whom, not by how
much, gives the direction of an Adam step. What is learned is inherited, as with backpropagation. It works on
tasks and on labelled data, and asks nothing of a family but its arrays or its modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np

from epicortex import randomness
from epicortex.config import Config, EsConfig, TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Job, Outcome, Sums
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace
from epicortex.evaluation.guarded import Guarded
from epicortex.evaluation.policies import policy_of
from epicortex.evaluation.sight import Sight, seen
from epicortex.evaluation.variants import Rebuilt, Variants, Vector
from epicortex.families.family import Family
from epicortex.measures import MEASURES, USUAL
from epicortex.tasks import Policy, Task

if TYPE_CHECKING:
    from epicortex.evaluation.labelled import Labelled

_BETAS: Final = (0.9, 0.999)


class Objective(Protocol):
    """What candidates are compared by, and what the result is worth."""

    def variants(self, family: Family[Any], phenotype: Any) -> Variants:
        """The candidates of a network."""

    def worths(self, rng: np.random.Generator) -> Iterator[Any]:
        """For each step a function of a model; all candidates of a step meet the same samples or episodes."""

    def fitness(self, model: Any, pace: Callable[[], None]) -> tuple[float, Sums]:
        """The fitness of a model, and what the evaluation adds to the sums of all."""


@dataclass(frozen=True, slots=True, eq=False)
class EvolutionStrategy:
    """An evolution strategy, as workers are told about it."""

    family: Family[Any]
    options: EsConfig
    training: TrainingConfig
    seed: int
    task: Task | None = None
    sight: Sight = field(default_factory=Sight)

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """As the section `es` says, for the task or the data of the run."""
        task, sight = functions.get("task"), functions.get("sight") or Sight()
        return cls(family, config.es, config.training, config.evolution.seed, task, sight)

    def check(self, data: DataSet | None) -> None:
        """There must be something to learn from."""
        from epicortex.evaluation.goals import check

        if data is None and self.task is None:
            raise ConfigError("evaluator: es needs a task or a data set")
        if data is None:
            return
        if self.training.fitness not in MEASURES:
            raise ConfigError(f"evaluator: es on labelled data takes training.fitness {USUAL[data.task]}")
        check(self.training, data.task, own=False)

    def open(self, data: DataSet | None) -> Guarded:
        """The strategy in this process."""
        if self.task is not None:
            return Guarded(partial(self._evaluated, _Episodes), "es", self.training.time_limit)
        labelled = self._labelled(data)
        return Guarded(partial(self._evaluated, lambda *_: labelled), "es", self.training.time_limit)

    def seeing(self, scaling: Scaling) -> Self:
        """The same where observations are scaled so from now on, as they were for a champion."""
        return replace(self, sight=Sight(scaling))

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """As the task, or the test set, says."""
        model = self.family.build(phenotype)
        if self.task is None:
            return None if data is None else self._labelled(data).tested(model)
        policy = policy_of(model, self.task.problem.input_shape)
        return self.task.test(self.sight.policy(policy, {}), randomness.generator(self.seed, "test episodes"))

    def _labelled(self, data: DataSet | None) -> Labelled:
        from epicortex.evaluation.labelled import Labelled

        if data is None:
            raise ConfigError("evaluator: es needs a task or a data set")
        return Labelled(data, self.training, self.seed)

    def _evaluated(
        self, make: Callable[[EvolutionStrategy, Job], Objective], job: Job, pace: Pace
    ) -> Outcome:
        """A few steps, and the fitness after them; a newborn is scored before, too."""
        objective, before, began = make(self, job), None, time.perf_counter()
        if job.newborn:
            before, _ = objective.fitness(self.family.build(job.phenotype), pace)
        phenotype = self._improved(job, objective, pace) if job.train else job.phenotype
        trained = time.perf_counter() - began
        fitness, sums = objective.fitness(self.family.build(phenotype), pace)
        return Outcome(
            job.network, job.generation, phenotype, fitness, before, sums=sums, train_seconds=trained
        )

    def _improved(self, job: Job, objective: Objective, pace: Callable[[], None]) -> Any:
        options = self.options
        variants = objective.variants(self.family, job.phenotype)
        rng = randomness.generator(job.seed, "es", generation=job.generation, network=job.network)
        adam, weights = Adam(options.rate * job.rate), variants.start
        for _, worth in zip(range(options.steps), objective.worths(rng), strict=False):
            directions = rng.standard_normal((options.pairs, len(weights)), np.float32)
            moves = options.deviation * directions
            candidates = chain((weights + move for move in moves), (weights - move for move in moves))
            found = variants.worths(worth, candidates, pace)
            slope = gradient(found[: options.pairs], found[options.pairs :], directions)
            weights = weights + adam.step(slope)
        return variants.phenotype(weights)


class _Episodes:
    """The reward in a task; fitness is measured in the episodes of the evaluator `episodes`."""

    def __init__(self, recipe: EvolutionStrategy, job: Job) -> None:
        assert recipe.task is not None
        self._task, self._sight, self._job = recipe.task, recipe.sight, job

    def variants(self, family: Family[Any], phenotype: Any) -> Variants:
        """They act one after another."""
        return Rebuilt(family, phenotype)

    def worths(self, rng: np.random.Generator) -> Iterator[Any]:
        """The reward of the same episodes for all candidates of a step."""
        while True:
            yield partial(self._tried, int(rng.integers(2**31)))

    def _tried(self, seed: int, model: Any) -> float:
        policy = self._sight.policy(self._policy(model), self._job.sums)
        return self._task.trial(policy, np.random.default_rng(seed), lambda: None)

    def fitness(self, model: Any, pace: Callable[[], None]) -> tuple[float, Sums]:
        """The reward of the generation's episodes."""
        policy = self._sight.watched(self._policy(model), self._job.sums)
        rng = randomness.generator(self._job.seed, "episodes", generation=self._job.generation)
        return float(self._task.reward(policy, rng, pace)), seen(policy)

    def _policy(self, model: Any) -> Policy:
        return policy_of(model, self._task.problem.input_shape)


def gradient(ahead: list[float], back: list[float], directions: Any) -> Vector:
    """The direction in which fitness rises, from the ranks of all candidates: centred, from −½ to ½.

    >>> gradient([3.0], [1.0], np.array([[0.0, 2.0]]))
    array([0., 2.])
    """
    worth = centred_ranks(np.array([*ahead, *back]))
    pulls = worth[: len(ahead)] - worth[len(ahead) :]
    return np.asarray(pulls @ directions / len(ahead), np.float64)


def centred_ranks(values: Vector) -> Vector:
    """Ranks from −½ to ½; equal values share theirs.

    >>> centred_ranks(np.array([5.0, 100.0, 1.0])), centred_ranks(np.array([2.0, 2.0]))
    (array([ 0. ,  0.5, -0.5]), array([0., 0.]))
    """
    below = (values[:, None] > values).sum(1)
    equal = (values[:, None] == values).sum(1) - 1
    ranks: Vector = (below + equal / 2) / max(1, len(values) - 1) - 0.5
    return ranks


class Adam:
    """Adam, uphill."""

    def __init__(self, rate: float) -> None:
        self._rate, self._steps = rate, 0
        self._mean: Vector | float = 0.0
        self._square: Vector | float = 0.0

    def step(self, gradient: Vector) -> Vector:
        """How far the weights move."""
        first, second = _BETAS
        self._steps += 1
        self._mean = first * self._mean + (1 - first) * gradient
        self._square = second * self._square + (1 - second) * gradient**2
        mean = self._mean / (1 - first**self._steps)
        square = self._square / (1 - second**self._steps)
        return np.asarray(self._rate * mean / (np.sqrt(square) + 1e-8))
