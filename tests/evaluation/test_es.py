"""The evaluator `es`: it climbs, it is repeatable, and it takes any family, on tasks and on data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epicortex.config.resolving import resolve
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.es import Adam, EvolutionStrategy, centred_ranks, gradient
from epicortex.evaluation.labelled import Labelled
from epicortex.evaluation.variants import Rebuilt, Stacked, flattened, shaped
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.residual import ResidualFamily
from epicortex.families.unstructured import UnstructuredFamily
from epicortex.tasks.own import OwnTask
from tests.contracts.world import small_data
from tests.tasks.reach import Sum


def test_the_gradient_points_uphill_whatever_the_scale_of_the_rewards() -> None:
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((200, 3))
    slope = np.array([1.0, -2.0, 0.0])
    for scale in (1e-6, 1.0, 1e9):
        ahead = [float(scale * (one @ slope)) for one in directions]
        found = gradient(ahead, [-value for value in ahead], directions)
        assert found @ slope / np.linalg.norm(found) / np.linalg.norm(slope) > 0.95
    assert centred_ranks(np.array([1.0, 1.0, 1.0])).tolist() == [0, 0, 0]


def test_adam_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    theirs, ours, place = torch.optim.Adam([weight], lr=0.1, maximize=True), Adam(0.1), np.zeros(4)
    for step in range(5):
        slope = np.random.default_rng(step).normal(size=4)
        weight.grad = torch.from_numpy(slope)
        theirs.step()
        place = place + ours.step(slope)
    np.testing.assert_allclose(place, weight.detach().numpy(), rtol=1e-9)


def test_arrays_survive_being_one_vector() -> None:
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.ones(2, np.float32)}
    again = shaped(flattened(arrays), arrays)
    assert list(again) == ["b", "a"]
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays)


def runs(recipe: EvolutionStrategy, phenotype: Any, data: Any = None) -> tuple[float, float, Outcome]:
    """The fitness before and after, the same twice."""
    job = Job(3, 2, 1, phenotype, newborn=True)
    one, two = (recipe.open(data).run(job) for _ in range(2))
    assert one.failed is None
    assert one.fitness is not None
    assert one.fitness_before is not None
    assert (one.fitness, one.fitness_before) == (two.fitness, two.fitness_before)
    assert recipe.family.encode(one.phenotype)[0] == recipe.family.encode(phenotype)[0]
    return one.fitness_before, one.fitness, one


def test_weights_of_an_unstructured_network_learn_a_task() -> None:
    config = resolve("task", {"es.steps": 40, "es.rate": 0.1, "evaluator": "es"})
    family = UnstructuredFamily(Problem((2,), 1))
    recipe = EvolutionStrategy.from_config(config, family, {"task": OwnTask("sum", Sum())})
    before, after, _ = runs(recipe, family.minimal(np.random.default_rng(5)))
    assert after > before / 3  # rewards are below zero, and 0 is perfect


@pytest.mark.parametrize("kind", [LayeredFamily, UnstructuredFamily])
def test_labelled_data_is_learned_without_gradients(kind: Any) -> None:
    data = small_data(300)
    changes = {"es.steps": 25, "es.pairs": 8, "es.rate": 0.05, "evaluator": "es", "training.portion": 1.0}
    family = kind(Problem((1, 8, 8), 3))
    recipe = EvolutionStrategy.from_config(resolve("paper", changes), family, {})
    before, after, _ = runs(recipe, family.minimal(np.random.default_rng(2)), data)
    assert after > max(before, 0.6)


@pytest.mark.parametrize("kind", [LayeredFamily, ResidualFamily])
def test_candidates_that_compute_at_once_are_worth_what_each_is_worth_alone(kind: Any) -> None:
    data, family = small_data(60), kind(Problem((1, 8, 8), 3))
    rng = np.random.default_rng(4)
    phenotype = family.grow(family.minimal(rng), rng)
    labelled = Labelled(data, resolve("paper").training, 1)
    variants = labelled.variants(family, phenotype)
    assert isinstance(variants, Stacked)
    rows = [variants.start + 0.1 * rng.standard_normal(len(variants.start)) for _ in range(3)]
    batch = next(labelled.worths(rng))
    together = variants.worths(batch, iter(rows), lambda: None)
    alone = [batch(family.build(variants.phenotype(row))) for row in rows]
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(set(together)) == 3


def test_unstructured_candidates_are_built_one_by_one() -> None:
    family = UnstructuredFamily(Problem((1, 8, 8), 3))
    labelled = Labelled(small_data(60), resolve("paper").training, 1)
    assert isinstance(labelled.variants(family, family.minimal(np.random.default_rng(1))), Rebuilt)


class Counted:
    """Pushes the cart to where the pole leans; counts its steps."""

    steps = 0

    def reset(self) -> None:
        pass

    def act(self, observation: Any) -> list[float]:
        self.steps += 1
        return [-observation[2], observation[2]]


def test_candidates_are_not_tried_on_fresh_episodes() -> None:
    """That a candidate reaches the target costs nothing: only fitness asks whether the task is solved."""
    gym = pytest.importorskip("epicortex.tasks.gym")
    pytest.importorskip("gymnasium")
    task, policy = gym.gym_task("gym:CartPole-v1").aimed(30.0, 2), Counted()
    reward = task.trial(policy, np.random.default_rng(3), lambda: None)
    assert reward >= 30
    assert policy.steps == 2 * reward


def test_nothing_to_learn_from_is_refused() -> None:
    recipe = EvolutionStrategy.from_config(resolve("task"), UnstructuredFamily(Problem((2,), 1)), {})
    with pytest.raises(ConfigError, match="needs a task or a data set"):
        recipe.check(None)
