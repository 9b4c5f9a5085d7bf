"""The bridge to gymnasium: any environment with a vector of observations, by its name, as `gym:CartPole-v1`.

Discrete actions are the output with the highest value; continuous ones are outputs from −1 to 1, stretched
over the range that the environment takes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.errors import DataError
from epicortex.families.family import Problem
from epicortex.tasks.physics import Policy
from epicortex.tasks.task import Pace

PREFIX: Final = "gym:"
#: No colon: what stands before one, gymnasium would import.
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,100}")
#: On so many fresh episodes a network is tried that seems to have solved its environment.
FRESH: Final = 100
#: After so many of them it goes on only if it still does; most have been lucky.
_STAGES: Final = (10, 30, FRESH)
#: What discrete actions are chosen by has no limits, or large weights would make all outputs equal. Without
#: hidden nodes most environments can be solved, so that many species would only be in each other's way.
_SETTINGS: Final = {"evolution.initial_species": 2, "evolution.max_species": 3}
_DISCRETE: Final = {**_SETTINGS, "unstructured.output_activation": "linear"}


@cache
def environment(name: str, mode: str | None = None) -> Any:
    """The environment of this name, one in a process; `mode` is how it is rendered."""
    try:
        import gymnasium
    except ImportError:
        raise DataError(
            f"{PREFIX}{name} needs gymnasium, which is not installed: pip install 'epicortex[gym]'"
        ) from None
    if not _NAME.fullmatch(name):
        raise DataError(f"{PREFIX}{name!r:.120} is no name of an environment")
    if mode == "rgb_array":
        # Pictures are drawn in memory: otherwise SDL looks for a screen, and complains where there is none.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        return gymnasium.make(name, render_mode=mode)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        line = " ".join(str(error).split())
        raise DataError(f"{PREFIX}{name} cannot be made: {line:.300}") from None


@dataclass(frozen=True, slots=True)
class Gym:
    """An environment as a task: the mean reward of some episodes.

    A network whose mean reaches the target is tried on up to 100 fresh episodes, for as long as it keeps to
    that; its fitness is then the mean of the fresh ones alone, so that nobody solves a task by luck.
    """

    name: str
    problem: Problem
    answers: tuple[str, ...]
    solved: float | None
    discrete: bool
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    episodes: int = 3
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> Any:
        """The environment, in this process."""
        return environment(self.name.removeprefix(PREFIX))

    def aimed(self, target: float | None, episodes: int) -> Gym:
        """The task with another target, and with so many episodes."""
        return replace(self, solved=target, episodes=episodes)

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The mean reward."""
        reward = self.trial(policy, rng, pace)
        if self.solved is None:
            return reward
        fresh: list[float] = []
        for number in _STAGES:
            if reward < self.solved:
                break
            fresh += [self.episode(policy, rng, pace) for _ in range(number - len(fresh))]
            reward = float(np.mean(fresh))
        return reward

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The mean reward of a few episodes."""
        return float(np.mean([self.episode(policy, rng, pace) for _ in range(self.episodes)]))

    def test(self, policy: Policy, rng: np.random.Generator) -> float | None:
        """The mean reward of 100 episodes that nobody has seen."""
        return float(np.mean([self.episode(policy, rng, _nothing) for _ in range(FRESH)]))

    def episode(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The reward of one episode."""
        world, total, over = self.environment, 0.0, False
        policy.reset()
        observation, _ = world.reset(seed=int(rng.integers(2**31)))
        while not over:
            action = self.action(policy.act(observation.tolist()))
            observation, reward, ended, cut, _ = world.step(action)
            total += float(reward)
            over = bool(ended or cut)
        pace()
        return total

    def action(self, outputs: Sequence[float]) -> Any:
        """What the environment takes, from a network's outputs."""
        if self.discrete:
            return int(np.argmax(outputs))
        low, high = np.array(self.low), np.array(self.high)
        parts = (np.clip(np.asarray(outputs), -1.0, 1.0) + 1.0) / 2.0
        return (low + parts * (high - low)).astype(np.float32)

    def observations(self, rng: np.random.Generator, episodes: int) -> NDArray[np.float64]:
        """What random actions let one see, for the scaling of observations."""
        world, seen = self.environment, []
        for _ in range(episodes):
            observation, _ = world.reset(seed=int(rng.integers(2**31)))
            over = False
            while not over:
                seen.append(np.asarray(observation, np.float64))
                outputs = rng.uniform(-1.0, 1.0, self.problem.outputs)
                observation, _, ended, cut, _ = world.step(self.action(outputs.tolist()))
                over = bool(ended or cut)
        return np.array(seen)


def gym_task(name: str) -> Gym:
    """The task of an environment; one that does not fit networks is refused."""
    world = environment(name.removeprefix(PREFIX))
    from gymnasium.spaces import Box, Discrete

    seen, done = world.observation_space, world.action_space
    if not isinstance(seen, Box) or len(seen.shape) != 1:
        raise DataError(f"{name} shows {seen}; a vector of numbers is needed")
    threshold = None if world.spec is None else world.spec.reward_threshold
    solved = None if threshold is None else float(threshold)
    problem = Problem((int(seen.shape[0]),), 1)
    if isinstance(done, Discrete):
        number = int(done.n)
        names = tuple(f"action {one}" for one in range(number))
        return Gym(name, replace(problem, outputs=number), names, solved, True, settings=_DISCRETE)
    if not isinstance(done, Box) or len(done.shape) != 1 or not np.isfinite([done.low, done.high]).all():
        raise DataError(f"{name} takes {done}; discrete actions or a vector with limits are needed")
    number = int(done.shape[0])
    names = tuple(f"action {one}" for one in range(number))
    limits = tuple(done.low.tolist()), tuple(done.high.tolist())
    return Gym(name, replace(problem, outputs=number), names, solved, False, *limits, settings=_SETTINGS)


def _nothing() -> None:
    pass
