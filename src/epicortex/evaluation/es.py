"""The evaluator `es`: the weights of any family, learned by an evolution strategy instead of gradients.

In each step weights are moved by mirrored pairs of random directions; who does better than whom, not by how
much, gives the direction of an Adam step. What is learned is inherited, as with backpropagation. It works on
tasks and on labelled data, and asks nothing of a family but its arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from epicortex import randomness
from epicortex.config import Config, EsConfig, TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Pace, Stopped, finite, reason
from epicortex.evaluation.policies import policy_of, scaled
from epicortex.families.family import Arrays, Family
from epicortex.measures import MEASURES, USUAL
from epicortex.tasks import Task

if TYPE_CHECKING:
    from epicortex.evaluation.labelled import Labelled

Vector = NDArray[np.float64]
_BETAS: Final = (0.9, 0.999)


class Objective(Protocol):
    """What candidates are compared by, and what the result is worth."""

    def values(self, rng: np.random.Generator) -> Iterator[Callable[[Any], float]]:
        """For each step a function of a model; all candidates of a step meet the same samples or episodes."""

    def fitness(self, model: Any, pace: Callable[[], None]) -> float:
        """The fitness of a model."""


@dataclass(frozen=True, slots=True, eq=False)
class EvolutionStrategy:
    """An evolution strategy, as workers are told about it."""

    family: Family[Any]
    options: EsConfig
    training: TrainingConfig
    seed: int
    task: Task | None = None
    scaling: Scaling | None = None

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """As the section `es` says, for the task or the data of the run."""
        task, scaling = functions.get("task"), functions.get("scaling")
        return cls(family, config.es, config.training, config.evolution.seed, task, scaling)

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

    def open(self, data: DataSet | None) -> EsEvaluator:
        """The strategy in this process."""
        if self.task is not None:
            return EsEvaluator(self, lambda job: _Episodes(self, job))
        labelled = self._labelled(data)
        return EsEvaluator(self, lambda job: labelled)

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """As the task, or the test set, says."""
        if self.task is None:
            return None if data is None else self._labelled(data).tested(self.family.build(phenotype))
        policy = policy_of(self.family.build(phenotype), self.task.problem.input_shape)
        rng = randomness.generator(self.seed, "test episodes")
        return self.task.test(scaled(policy, self.scaling) if self.scaling else policy, rng)

    def _labelled(self, data: DataSet | None) -> Labelled:
        from epicortex.evaluation.labelled import Labelled

        if data is None:
            raise ConfigError("evaluator: es needs a task or a data set")
        return Labelled(data, self.training, self.seed)


class _Episodes:
    """The reward in a task; the episodes are those of the evaluator `episodes`."""

    def __init__(self, recipe: EvolutionStrategy, job: Job) -> None:
        self._recipe, self._job = recipe, job

    def values(self, rng: np.random.Generator) -> Iterator[Callable[[Any], float]]:
        """The reward of the same episodes for all candidates of a step."""
        while True:
            yield partial(self._seeded, int(rng.integers(2**31)))

    def _seeded(self, seed: int, model: Any) -> float:
        return self._reward(model, np.random.default_rng(seed), _nothing)

    def fitness(self, model: Any, pace: Callable[[], None]) -> float:
        """The reward of the generation's episodes."""
        job = self._job
        return self._reward(
            model, randomness.generator(job.seed, "episodes", generation=job.generation), pace
        )

    def _reward(self, model: Any, rng: np.random.Generator, pace: Callable[[], None]) -> float:
        task, scaling = self._recipe.task, self._recipe.scaling
        assert task is not None
        policy = policy_of(model, task.problem.input_shape)
        return float(task.reward(scaled(policy, scaling) if scaling else policy, rng, pace))


class EsEvaluator:
    """Improves and scores networks."""

    def __init__(self, recipe: EvolutionStrategy, objective: Callable[[Job], Objective]) -> None:
        self._recipe, self._objective = recipe, objective

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """A few steps, and the fitness after them; a newborn is scored before, too."""
        family, pace = self._recipe.family, Pace(heartbeat, should_stop, self._recipe.training.time_limit)
        began = time.perf_counter()
        try:
            objective, before = self._objective(job), None
            if job.newborn:
                before = finite(objective.fitness(family.build(job.phenotype), pace), "es")
            phenotype = self._improved(job, objective, pace) if job.train else job.phenotype
            trained = time.perf_counter()
            fitness = finite(objective.fitness(family.build(phenotype), pace), "es")
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))
        return Outcome(
            job.network,
            job.generation,
            phenotype,
            fitness,
            before,
            train_seconds=trained - began,
            score_seconds=time.perf_counter() - trained,
        )

    def _improved(self, job: Job, objective: Objective, pace: Callable[[], None]) -> Any:
        family, options = self._recipe.family, self._recipe.options
        description, arrays = family.encode(job.phenotype)
        rng = randomness.generator(job.seed, "es", generation=job.generation, network=job.network)
        adam = Adam(options.rate * job.rate)
        weights = flattened(arrays)

        def model(values: Vector) -> Any:
            pace()
            return family.build(family.decode(description, shaped(values, arrays)))

        for _, value in zip(range(options.steps), objective.values(rng), strict=False):
            directions = rng.standard_normal((options.pairs, len(weights)))
            moves = options.deviation * directions
            ahead = [value(model(weights + move)) for move in moves]
            back = [value(model(weights - move)) for move in moves]
            weights = weights + adam.step(gradient(ahead, back, directions))
        return family.decode(description, shaped(weights, arrays))


def gradient(ahead: list[float], back: list[float], directions: Vector) -> Vector:
    """The direction in which fitness rises, from the ranks of all candidates: centred, from −½ to ½.

    >>> gradient([3.0], [1.0], np.array([[0.0, 2.0]]))
    array([0., 2.])
    """
    worth = centred_ranks(np.array([*ahead, *back]))
    pulls = worth[: len(ahead)] - worth[len(ahead) :]
    return np.asarray(pulls @ directions / len(ahead))


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


def flattened(arrays: Arrays) -> Vector:
    """All arrays as one vector, in the order of their names."""
    return np.concatenate([arrays[name].ravel() for name in sorted(arrays)]).astype(np.float64)


def shaped(values: Vector, like: Arrays) -> Arrays:
    """Back from `flattened`."""
    found, place = {}, 0
    for name in sorted(like):
        array = like[name]
        found[name] = values[place : place + array.size].reshape(array.shape).astype(np.float32)
        place += array.size
    return {name: found[name] for name in like}


def _nothing() -> None:
    pass
