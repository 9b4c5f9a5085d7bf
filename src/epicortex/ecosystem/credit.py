"""Selection with credit: mutation types are drawn by how fit those are who bear them, not by eqs 3 to 6.

By the paper's weights over 95 % of all mutations resize a kernel, so networks hardly grow. Here a type that
does its bearers good is drawn more often, and where adding nodes does them good, more are added at a time.
What a type is, and what drawing by credit means for it, is the family's business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from epicortex.config import Config
from epicortex.ecosystem import census
from epicortex.ecosystem.calibration import relative
from epicortex.ecosystem.selection import PaperSelection
from epicortex.ecosystem.state import EcosystemState
from epicortex.ecosystem.strategies import Register, Selected
from epicortex.errors import ConfigError
from epicortex.families.family import Family


@runtime_checkable
class Credited(Protocol):
    """A family whose mutations can be drawn by credit."""

    def credited(self, credit: Mapping[str, float]) -> Family[Any]:
        """The family, with the credit that each type and direction has (such as `node grow`), from 0 to 1."""


class CreditSelection(PaperSelection):
    """The paper's rule, but for the types of mutations."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._rate = config.evolution.average_rate

    def calibrate(self, state: EcosystemState, *, family: Family[Any]) -> EcosystemState:
        """As in the paper; then types are credited with the fitness of those that bear them."""
        calibrated = super().calibrate(state, family=family)
        return replace(calibrated, credit=followed(state.credit, rewards(calibrated), rate=self._rate))

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """As in the paper, with mutations by credit."""
        if not isinstance(family, Credited):
            raise ConfigError(
                f"evolution.selection = credit: the mutations of the family {family.name!r} cannot be drawn "
                "by credit; take the family layered, or another selection"
            )
        own = family.credited(state.credit)
        return super().select(state, generation=generation, family=own, register=register)


def rewards(state: EcosystemState) -> dict[str, float]:
    """What each type and direction earned: the mean standing, in the ecosystem, of those it changed.

    They have been trained once since. Those that failed stand at 0; what was not applied earns nothing.
    """
    fit = census.evaluated(state.networks)
    standing = dict(zip((one.id for one in fit), relative([census.fitness(one) for one in fit]), strict=True))
    earned: dict[str, list[float]] = {}
    for network in state.networks:
        for event in network.events:
            if event.outcome == "applied":
                name = f"{event.type} {event.direction}"
                earned.setdefault(name, []).append(standing.get(network.id, 0.0))
    return {name: math.fsum(values) / len(values) for name, values in sorted(earned.items())}


def followed(credit: Mapping[str, float], earned: Mapping[str, float], *, rate: float) -> dict[str, float]:
    """The credit after one more generation: a moving average, of what stands at the average at first.

    >>> followed({"node grow": 0.5, "kernel grow": 0.25}, {"node grow": 1.0}, rate=0.5)
    {'node grow': 0.75, 'kernel grow': 0.25}
    >>> followed({}, {"layer grow": 0.1}, rate=0.5)
    {'layer grow': 0.3}
    """
    moved = {
        name: credit.get(name, 0.5) + rate * (value - credit.get(name, 0.5)) for name, value in earned.items()
    }
    return {**credit, **moved}
