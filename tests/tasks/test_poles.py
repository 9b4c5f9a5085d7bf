"""The poles: their physics against the law of energy, compiled code against Python, and the conditions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from epicortex import native
from epicortex.families.family import Problem
from epicortex.families.unstructured import Network, Phenotype, UnstructuredFamily, UnstructuredOptions
from epicortex.families.unstructured.activations import NAMES
from epicortex.native import poles as compiled
from epicortex.tasks import TASKS, poles
from epicortex.tasks.physics import State, World, balance, moved


def energy(world: World, state: State) -> float:
    """The energy of a cart and its poles, from mechanics, not from the equations of motion."""
    total = 0.5 * world.cart_mass * state[1] ** 2
    for pole in range(world.poles):
        angle, turn = state[2 + 2 * pole], state[3 + 2 * pole]
        mass, half = world.masses[pole], world.lengths[pole]
        along, up = state[1] + half * math.cos(angle) * turn, -half * math.sin(angle) * turn
        total += 0.5 * mass * (along**2 + up**2) + 0.5 * (mass * half**2 / 3) * turn**2
        total += mass * 9.8 * half * math.cos(angle)
    return total


@pytest.mark.parametrize("number", [1, 2])
def test_without_friction_and_force_no_energy_is_lost(number: int) -> None:
    world = World(poles=number, cart_friction=0.0, pole_friction=0.0, least_force=0.0)
    state = [0.1, 0.5, 0.3, -0.2, 0.05, 0.4][: 2 + 2 * number]
    before = energy(world, state)
    for _ in range(25):
        state = moved(world, state, 0.0)
    assert abs(state[2]) > 0.4  # it has fallen a good deal
    assert energy(world, state) == pytest.approx(before, rel=1e-5)


class Python:
    """A network that has no wiring to hand over."""

    def __init__(self, network: Network) -> None:
        self.reset, self.act = network.reset, network.act


@pytest.mark.skipif(not native.available(), reason="the native library is not built")
@pytest.mark.parametrize("name", ["pole", "double-pole", "double-pole-no-velocities"])
def test_compiled_episodes_have_the_bits_of_python(name: str) -> None:
    task = TASKS[name]
    assert isinstance(task, poles.Poles)
    options = UnstructuredOptions(recurrent=True, steps=2, activations=NAMES, node_start="split")
    family, rng = UnstructuredFamily(task.problem, options), np.random.default_rng(4)
    lengths = []
    for _ in range(40):
        phenotype = family.minimal(rng)
        for _ in range(6):
            phenotype = family.grow(phenotype, rng)
        network = family.build(phenotype)
        whole = balance(network, task.world, task.start, 400, remembered=100)
        assert whole == balance(Python(network), task.world, task.start, 400, remembered=100)
        lengths.append(whole[0])
    assert len(set(lengths)) > 5


@pytest.mark.skipif(not native.available(), reason="the native library is not built")
def test_a_network_that_does_not_fit_is_refused_by_compiled_code() -> None:
    network = UnstructuredFamily(Problem((5,), 1)).minimal(np.random.default_rng(1))
    with pytest.raises(native.NativeError, match="does not fit"):
        compiled.balance(Network(network).wiring(), World(), [0.0] * 6, 10, 0)


def lever(gains: list[float]) -> Network:
    """A linear controller with these gains on what it sees."""
    family = UnstructuredFamily(Problem((len(gains),), 1), UnstructuredOptions(bias=False))
    phenotype = family.minimal(np.random.default_rng(1))
    return Network(Phenotype(phenotype.genome, np.array(gains, np.float32)))


def test_a_hand_made_controller_balances_one_pole_and_doing_nothing_does_not() -> None:
    world = replace(poles.POLE.world)
    steady = lever([1.0, 1.0, 6.0, 2.0])
    assert balance(steady, world, poles.POLE.start, 2000)[0] == 2000
    assert balance(lever([0.0] * 4), world, poles.POLE.start, 2000)[0] < 60


def test_the_conditions_of_the_literature() -> None:
    double, hidden = poles.DOUBLE, poles.HIDDEN
    assert double.start == [0, 0, math.radians(4.5), 0, 0, 0]
    assert (double.problem.input_shape, hidden.problem.input_shape) == ((6,), (3,))
    assert double.solved == 100_000
    fitness, steps = poles.gruau(lever([0.0, 0.0, 0.0]), hidden)
    assert steps < 100
    assert fitness == pytest.approx(0.1 * steps / 1000)


def test_weak_forces_are_raised_and_strong_ones_cut() -> None:
    world = World()
    assert [world.force(out) for out in (0.0, 0.001, -0.001, 0.5, 3.0, -3.0)] == [
        *(10 / 256, 10 / 256, -10 / 256, 5.0, 10.0, -10.0)
    ]
