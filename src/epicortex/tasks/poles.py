"""The pole-balancing tasks, with the start and success conditions of the literature."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

import numpy as np

from epicortex.families.family import Problem
from epicortex.tasks.physics import Policy, World, balance
from epicortex.tasks.task import Pace

#: A network that balances for so long, half an hour in its world, has solved the task.
LONG: Final = 100_000
#: Where the long pole, or the only one, leans at the start; all else is 0.
LEAN: Final = math.radians(4.5)
#: Gruau's fitness: how long an episode is, and over how many of its last steps unrest counts.
SHORT: Final = 1_000
CALM: Final = 100
#: Gruau's test: starts at these parts of the range of each of the four numbers.
PARTS: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
RANGES: Final = (2.16, 1.35, math.radians(3.6), math.radians(8.6))
ENOUGH: Final = 200


@dataclass(frozen=True, slots=True)
class Poles:
    """Balance for as long as possible; the reward is the number of steps, of 0.02 seconds each."""

    name: str
    world: World
    answers: tuple[str, ...] = ("force",)
    solved: float = float(LONG)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        """What the network sees of the world; it answers with a force."""
        return Problem((self.world.inputs,), 1)

    @property
    def start(self) -> list[float]:
        """The state that episodes begin with."""
        return [0.0, 0.0, LEAN, *[0.0] * (2 * self.world.poles - 1)]

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The steps until something falls."""
        del rng
        return float(balance(policy, self.world, self.start, LONG, pace=pace)[0])

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The same."""
        return self.reward(policy, rng, pace)

    def test(self, policy: Policy, rng: np.random.Generator) -> float | None:
        """How many of the 625 other starts the network can do for 1,000 steps; of two poles only."""
        del rng
        return None if self.world.poles < 2 else float(starts_balanced(policy, self.world))


@dataclass(frozen=True, slots=True)
class Gruau(Poles):
    """Without velocities a cart that shakes sees them in its own memory: Gruau's fitness asks for calm.

    0.1 · steps/1,000 + 0.9 · 0.75 over the unrest of the last 100 steps (0 before step 100). A network that
    does 1,000 steps is tried on: for 100,000 steps, and then from 625 other starts, of which it has to
    balance 200. So many of the starts, 200 to 625, are added to the fitness of one that does.
    """

    solved: float = float(ENOUGH)

    def reward(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """The fitness, and whether the task is solved in the same figure."""
        del rng
        fitness, steps = gruau(policy, self)
        if steps < SHORT:
            return fitness
        pace()
        if balance(policy, self.world, self.start, LONG, pace=pace)[0] < LONG:
            return fitness
        pace()
        balanced = starts_balanced(policy, self.world, pace)
        return fitness + (balanced if balanced >= ENOUGH else 0)

    def trial(self, policy: Policy, rng: np.random.Generator, pace: Pace) -> float:
        """Gruau's fitness alone."""
        del rng, pace
        return gruau(policy, self)[0]


def gruau(policy: Policy, task: Poles) -> tuple[float, int]:
    """Gruau's fitness, and the steps of its episode."""
    steps, unrest = balance(policy, task.world, task.start, SHORT, remembered=CALM)
    calm = 0.0 if steps < CALM else 0.75 / max(1e-9, math.fsum(unrest))
    return 0.1 * steps / SHORT + 0.9 * calm, steps


def starts_balanced(policy: Policy, world: World, pace: Pace | None = None) -> int:
    """From how many of Gruau's 625 starts a network balances for 1,000 steps."""
    done = 0
    for parts in product(PARTS, repeat=4):
        start = [(2 * part - 1) * most for part, most in zip(parts, RANGES, strict=True)]
        steps, _ = balance(policy, world, [*start, 0.0, 0.0], SHORT, pace=pace)
        done += steps >= SHORT
    return done


POLE: Final = Poles("pole", World(poles=1, largest_angle=math.radians(12)))
DOUBLE: Final = Poles(
    "double-pole",
    World(),
    settings={"evolution.initial_networks": 50, "evolution.max_networks": 50, "selection.patience": 10},
)
#: Speeds are differences of what is seen, so weights have to be large.
HIDDEN: Final = Gruau(
    "double-pole-no-velocities",
    World(velocities=False),
    settings={
        "unstructured.recurrent": True,
        "evolution.weight_deviation": 4.0,
        "unstructured.perturb_deviation": 0.5,
        "selection.patience": 10,
    },
)
