"""A task of a person's own: any object with a `problem` and `evaluate(network, rng) -> float`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicortex.errors import DataError
from epicortex.families.family import Problem
from epicortex.tasks.physics import Policy
from epicortex.tasks.task import Pace


def is_own(part: object) -> bool:
    """Whether somebody handed over a task."""
    return isinstance(getattr(part, "problem", None), Problem) and callable(getattr(part, "evaluate", None))


@dataclass(frozen=True, slots=True, eq=False)
class OwnTask:
    """It may also have `solved`, the fitness that ends a run; `answers`, names of the outputs; `settings`."""

    name: str
    part: Any

    @classmethod
    def made(cls, name: str, make: Any) -> OwnTask:
        """The task that a class or function gives; what is none is refused."""
        part = make() if isinstance(make, type) or not is_own(make) else make
        if not is_own(part):
            raise DataError(
                f"task {name}: it needs a problem (an epicortex.Problem) and evaluate(network, rng)"
            )
        return cls(name, part)

    @property
    def problem(self) -> Problem:
        """What networks see and answer."""
        problem: Problem = self.part.problem
        return problem

    @property
    def answers(self) -> tuple[str, ...]:
        """What each output stands for."""
        return tuple(getattr(self.part, "answers", map(str, range(self.problem.outputs))))

    @property
    def solved(self) -> float | None:
        """The fitness at which the run may end."""
        solved: float | None = getattr(self.part, "solved", None)
        return solved

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that suit it."""
        return dict(getattr(self.part, "settings", {}))

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """What `evaluate` says; it is called with the network itself."""
        del pace
        policy.reset()
        return float(self.part.evaluate(policy, rng))

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The same."""
        return self.reward(policy, rng, pace)

    def test(self, policy: Policy, rng: np.random.Generator) -> float | None:
        """What its `test` says, if it has one."""
        if not hasattr(self.part, "test"):
            return None
        policy.reset()
        return float(self.part.test(policy, rng))
