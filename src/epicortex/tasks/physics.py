"""Poles on a cart: Wieland's equations of motion, integrated by the Runge-Kutta method of fourth order.

This is the reference, in plain Python. Where the native library is built it runs whole episodes, with the
same bits (csrc/poles.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from epicortex import native
from epicortex.native import poles as compiled

State = list[float]
"""x, its velocity, and of each pole the angle from upright and its velocity; metres, radians, seconds."""


class Policy(Protocol):
    """Whatever answers observations, and may remember them until it is reset."""

    def reset(self) -> None:
        """Forget."""

    def act(self, observation: Sequence[float]) -> Sequence[float]:
        """The outputs for one observation."""


@dataclass(frozen=True, slots=True)
class World:
    """A cart on a track with one pole or two, and what a network sees of it."""

    poles: int = 2
    velocities: bool = True
    """Whether the network sees velocities."""
    largest_angle: float = math.radians(36)
    """A pole that leans further has fallen."""
    track: float = 2.4
    """How far the cart may go to either side."""
    gravity: float = -9.8
    cart_mass: float = 1.0
    masses: tuple[float, ...] = (0.1, 0.01)
    lengths: tuple[float, ...] = (0.5, 0.05)
    """Half of the length of each pole."""
    cart_friction: float = 0.0005
    pole_friction: float = 0.000002
    largest_force: float = 10.0
    least_force: float = 10.0 / 256
    """Weaker forces are raised to this one, so that nobody balances by doing nothing."""
    interval: float = 0.01
    """The seconds of a step of the integration."""
    rounds: int = 2
    """How many of them a force lasts."""
    scales: tuple[float, ...] = (4.8, 2.0, 0.52, 2.0, 0.52, 2.0)
    """What the state is divided by before a network sees it."""

    @property
    def inputs(self) -> int:
        """How many numbers a network sees."""
        return (2 if self.velocities else 1) * (1 + self.poles)

    def observed(self, state: State) -> list[float]:
        """What a network sees of a state."""
        stride = 1 if self.velocities else 2
        return [state[place] / self.scales[place] for place in range(0, 2 + 2 * self.poles, stride)]

    def force(self, output: float) -> float:
        """The force of an output from −1 to 1."""
        force = self.largest_force * max(-1.0, min(1.0, output))
        if abs(force) < self.least_force:
            return -self.least_force if force < 0.0 else self.least_force
        return force

    def fallen(self, state: State) -> bool:
        """Whether the cart has left the track or a pole leans too far."""
        if not abs(state[0]) <= self.track:
            return True
        return any(not abs(state[2 + 2 * pole]) <= self.largest_angle for pole in range(self.poles))


def changes(world: World, force: float, state: State) -> State:
    """How fast each number of the state changes (Wieland 1991)."""
    pull = mass = 0.0
    seen = []
    for pole in range(world.poles):
        angle, speed = state[2 + 2 * pole], state[3 + 2 * pole]
        m, length = world.masses[pole], world.lengths[pole]
        s, c = math.sin(angle), math.cos(angle)
        friction = world.pole_friction * speed / (m * length)
        pull += m * length * speed * speed * s + 0.75 * m * c * (friction + world.gravity * s)
        mass += m * (1.0 - 0.75 * c * c)
        seen.append((s, c, friction))
    way = 1.0 if state[1] > 0.0 else -1.0 if state[1] < 0.0 else 0.0
    push = (force - world.cart_friction * way + pull) / (world.cart_mass + mass)
    change = [state[1], push]
    for pole, (s, c, friction) in enumerate(seen):
        bend = -0.75 / world.lengths[pole] * (push * c + world.gravity * s + friction)
        change += [state[3 + 2 * pole], bend]
    return change


def runge_kutta(world: World, force: float, state: State) -> State:
    """The state an interval later."""
    half, sixth = world.interval * 0.5, world.interval / 6.0
    one = changes(world, force, state)
    two = changes(world, force, [x + half * d for x, d in zip(state, one, strict=True)])
    three = changes(world, force, [x + half * d for x, d in zip(state, two, strict=True)])
    four = changes(world, force, [x + world.interval * d for x, d in zip(state, three, strict=True)])
    return [
        x + sixth * (a + 2.0 * (b + c) + d)
        for x, a, b, c, d in zip(state, one, two, three, four, strict=True)
    ]


def moved(world: World, state: State, output: float) -> State:
    """The state after a network's output had its time."""
    force = world.force(output)
    for _ in range(world.rounds):
        state = runge_kutta(world, force, state)
    return state


def balance(
    policy: Policy,
    world: World,
    start: Sequence[float],
    most: int,
    *,
    remembered: int = 0,
    pace: Callable[[], None] | None = None,
) -> tuple[int, list[float]]:
    """The steps until a pole falls, at most `most`, and |x|, |x'|, |angle| and |angle'|, summed, of the last.

    `pace` is called now and then.

    >>> class Push:
    ...     def reset(self): pass
    ...     def act(self, observation): return [1.0]
    >>> balance(Push(), World(), [0.0] * 6, 1000)[0]
    4
    """
    policy.reset()
    wiring: Callable[[], Any] | None = getattr(policy, "wiring", None)
    if wiring is not None and native.available():
        return compiled.balance(wiring(), world, start, most, remembered)
    unrest: list[float] = []
    state = list(start)
    for step in range(most):
        state = moved(world, state, policy.act(world.observed(state))[0])
        if world.fallen(state):
            return step, unrest[-remembered:] if remembered else []
        if remembered:
            unrest.append(abs(state[0]) + abs(state[1]) + abs(state[2]) + abs(state[3]))
        if pace is not None and step % 1000 == 0:
            pace()
    return most, unrest[-remembered:] if remembered else []
