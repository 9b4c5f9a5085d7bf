"""A task of a person's own, as a plug-in file: to answer the sum of two numbers. It also tells on torch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from epicortex import Problem


class Sum:
    """The nearer the answers are to half of the sum, the better; 0 is perfect."""

    problem = Problem((2,), 1)
    solved = -0.001
    answers = ("half of the sum",)

    def evaluate(self, network: Any, rng: np.random.Generator) -> float:
        pairs = rng.uniform(-0.5, 0.5, (20, 2))
        return -float(np.abs(network(pairs)[:, 0] - pairs.sum(1) / 2).mean())


class Warm:
    """Tell whether a number of about 1,000, give or take 100, is above that: hopeless without scaling."""

    problem = Problem((1,), 1)
    hours = 24

    def evaluate(self, network: Any, rng: np.random.Generator) -> float:
        numbers = rng.normal(1000.0, 100.0, self.hours)
        return float(np.mean([network.act([one])[0] * np.sign(one - 1000.0) for one in numbers]))


class Torchless:
    """1 where nobody has imported torch."""

    problem = Problem((1,), 1)

    def evaluate(self, network: Any, rng: np.random.Generator) -> float:
        del network, rng
        return float("torch" not in sys.modules)


task = {"sum": Sum, "warm": Warm, "torchless": Torchless}
