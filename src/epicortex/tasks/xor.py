"""Exclusive or: the smallest task that no network without a hidden node can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from epicortex.families.family import Problem
from epicortex.tasks.physics import Policy
from epicortex.tasks.task import Pace

CASES: Final = (((0.0, 0.0), 0), ((0.0, 1.0), 1), ((1.0, 0.0), 1), ((1.0, 1.0), 0))
#: How far on the right side of a half an output has to be.
MARGIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Xor:
    """Each of the four cases counts up to 1: as far as its output is on the right side, up to the margin.

    >>> Xor.of_outputs([0.4, 0.6, 0.9, 0.0]), Xor.of_outputs([0.3, 0.3, 0.9, 0.0])
    (4.0, 3.5)
    """

    name = "xor"
    problem = Problem((2,), 1)
    answers = ("xor",)
    solved = 4.0

    @property
    def settings(self) -> Mapping[str, Any]:
        """Outputs are from 0 to 1, and weights large enough that they can be near either."""
        return {
            "unstructured.output_activation": "sigmoid",
            "unstructured.perturb_deviation": 0.5,
            "evolution.weight_deviation": 4.0,
            "evolution.initial_networks": 50,
            "evolution.max_networks": 50,
        }

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """4 where all cases are solved."""
        del rng, pace
        return self.of_outputs([self._output(policy, case) for case, _ in CASES])

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The same: there is nothing more to try."""
        return self.reward(policy, rng, pace)

    def test(self, policy: Policy, rng: np.random.Generator) -> None:
        """There are no other cases."""
        del policy, rng

    @staticmethod
    def of_outputs(outputs: list[float]) -> float:
        """The reward for the four outputs."""
        right = [out if truth else 1.0 - out for out, (_, truth) in zip(outputs, CASES, strict=True)]
        return sum(max(0.0, min(1.0, part / (0.5 + MARGIN))) for part in right)

    @staticmethod
    def _output(policy: Policy, case: tuple[float, float]) -> float:
        policy.reset()
        return policy.act(case)[0]
