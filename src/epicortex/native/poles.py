"""Whole episodes of poles on a cart in compiled code, the same bits as `tasks.physics` gives in Python."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, byref, c_double, c_int32, c_void_p
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicortex.native.library import NativeError, library

if TYPE_CHECKING:
    from epicortex.families.unstructured.network import Wiring
    from epicortex.tasks.physics import World


class _Wiring(Structure):
    """EpxWiring of csrc/interface.h."""

    _fields_ = (
        *((name, c_int32) for name in ("inputs", "outputs", "nodes", "steps", "computed", "reserved")),
        *((name, c_void_p) for name in ("targets", "activations", "offsets", "sources", "weights")),
    )


_FIGURES = (
    "gravity",
    "cart_mass",
    "cart_friction",
    "pole_friction",
    "interval",
    "track",
    "largest_angle",
    "largest_force",
    "least_force",
)


class _Poles(Structure):
    """EpxPoles of csrc/interface.h."""

    _fields_ = (
        *((name, c_int32) for name in ("poles", "velocities", "rounds", "reserved")),
        *((name, c_double) for name in _FIGURES),
        ("masses", c_double * 2),
        ("lengths", c_double * 2),
        ("scales", c_double * 6),
    )


def balance(
    wiring: Wiring, world: World, start: Sequence[float], most: int, remembered: int
) -> tuple[int, list[float]]:
    """The steps until a pole falls, and the unrest of the last steps, the oldest first."""
    state = np.zeros(6)
    state[: len(start)] = start
    unrest = np.zeros(max(1, remembered))
    steps = library().epx_balance(
        byref(_wiring(wiring)),
        byref(_world(world)),
        state.ctypes.data,
        most,
        unrest.ctypes.data if remembered else None,
        remembered,
    )
    if steps < 0:
        raise NativeError("the network does not fit the poles")
    return steps, _in_order(unrest, steps, remembered)


def _in_order(ring: NDArray[np.float64], steps: int, remembered: int) -> list[float]:
    if not remembered:
        return []
    kept = ring[:steps] if steps <= remembered else np.roll(ring, -(steps % remembered))
    return [float(value) for value in kept]


def _wiring(wiring: Wiring) -> _Wiring:
    arrays = (wiring.targets, wiring.activations, wiring.offsets, wiring.sources, wiring.weights)
    numbers = (wiring.inputs, wiring.outputs, wiring.nodes, wiring.steps, len(wiring.targets), 0)
    return _Wiring(*numbers, *(array.ctypes.data for array in arrays))


def _world(world: World) -> _Poles:
    pad = [1.0] * 6
    return _Poles(
        world.poles,
        int(world.velocities),
        world.rounds,
        0,
        *(getattr(world, name) for name in _FIGURES),
        (c_double * 2)(*(*world.masses, *pad)[:2]),
        (c_double * 2)(*(*world.lengths, *pad)[:2]),
        (c_double * 6)(*(*world.scales, *pad)[:6]),
    )
