"""The bridge to gymnasium: what networks see, do and are rewarded for, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epicortex import tasks
from epicortex.config.resolving import resolve
from epicortex.errors import DataError
from epicortex.run import assembly
from epicortex.tasks.gym import FRESH, Gym, gym_task

pytest.importorskip("gymnasium")


class Steady:
    """Pushes the cart to where the pole leans, which balances it for a while; or for long."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.asked = 0

    def reset(self) -> None:
        pass

    def act(self, observation: Any) -> list[float]:
        self.asked += 1
        lean = observation[2] + self.speed * observation[3]
        return [-lean, lean]


def nothing() -> None:
    pass


def test_cartpole_is_a_task() -> None:
    task = gym_task("gym:CartPole-v1")
    assert (task.problem.input_shape, task.problem.outputs, task.solved) == ((4,), 2, 475.0)
    assert task.action([0.1, 0.3]) == 1
    tested = task.test(Steady(1.0), np.random.default_rng(1))
    assert tested is not None
    assert tested >= 475
    poor = [task.reward(Steady(0.0), np.random.default_rng(seed), nothing) for seed in (1, 1, 2)]
    assert poor[0] == poor[1] != poor[2]
    assert max(poor) < 100


def test_a_network_that_reaches_the_target_is_tried_on_fresh_episodes() -> None:
    task = gym_task("gym:CartPole-v1").aimed(30.0, 2)
    policy, rng, again = Steady(0.0), np.random.default_rng(3), np.random.default_rng(3)
    mean = task.reward(policy, rng, nothing)
    first = 2 * task.trial(Steady(0.0), again, nothing)
    assert policy.asked == pytest.approx(first + FRESH * mean)
    assert mean == pytest.approx(np.mean([task.episode(Steady(0.0), again, nothing) for _ in range(FRESH)]))
    hard = task.aimed(400.0, 2)
    assert hard.reward(Steady(0.0), np.random.default_rng(3), nothing) < 400


def test_a_network_that_was_only_lucky_is_not_tried_for_long() -> None:
    """The target is a reward that it reaches now and then, and not in the mean."""
    task, rng, tried = gym_task("gym:CartPole-v1").aimed(50.0, 1), np.random.default_rng(5), []
    for _ in range(30):
        policy = Steady(0.0)
        assert task.reward(policy, rng, nothing) < 50
        tried.append(policy.asked)
    assert max(tried) > 10 * min(tried)
    assert max(tried) < 50 * FRESH / 2


def test_continuous_actions_are_stretched_over_their_range() -> None:
    task = gym_task("gym:Pendulum-v1")
    assert not task.discrete
    assert [float(task.action([out])[0]) for out in (-1.0, 0.0, 0.5, 7.0)] == [-2.0, 0.0, 1.0, 2.0]


def test_observations_are_scaled_by_what_random_actions_show_and_that_is_repeatable() -> None:
    config = resolve("task", {"episodes.normalise": 5, "evolution.seed": 4})
    one, two = (assembly.subject("gym:CartPole-v1", config).sight.scaling for _ in range(2))
    assert one == two
    assert len(one.mean) == 4
    task = tasks.find("gym:CartPole-v1")
    assert isinstance(task, Gym)
    assert all(0 < deviation < 2 for deviation in one.std)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gym:os:system-v0", "no name of an environment"),
        ("gym:NoSuchThing-v9", "cannot be made"),
        ("gym:FrozenLake-v1", "a vector of numbers is needed"),
    ],
)
def test_what_is_no_such_environment_is_refused(name: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        tasks.find(name)
