"""What a task is: something that gives a network a reward, and says when it is solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from epicortex.families.family import Problem
from epicortex.tasks.physics import Policy

Pace = Callable[[], None]


class Task(Protocol):
    """One task. It is plain data and travels to workers; whatever it opens there stays there."""

    @property
    def name(self) -> str:
        """What people type."""

    @property
    def problem(self) -> Problem:
        """What networks see and answer."""

    @property
    def answers(self) -> tuple[str, ...]:
        """What each output stands for."""

    @property
    def solved(self) -> float | None:
        """The fitness at which it is solved; None where nobody says."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that suit it better than those of the preset `task`."""

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The fitness of a network; the generator is the same for all networks of a generation."""

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The reward without the test whether the task is solved: what candidates are compared by."""

    def test(self, policy: Policy, rng: np.random.Generator) -> float | None:
        """A figure from what fitness was never measured on; None where there is nothing."""
