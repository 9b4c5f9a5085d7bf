"""Generations made up by hand, for whatever reads a run's history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.state import Tally

_TALLY = Tally(1, 8, 2, 0.75, 0.5, None, 3, 4, 1, 0, 1, 0, 2, 0, 5, 650, 700.5, ("crowded",))


def generation(number: int = 1, **changes: Any) -> Generation:
    """A generation with plausible figures, but for those given."""
    plain = Generation.timed(_TALLY, train_seconds=1.5, seconds=1.75)
    return replace(plain, generation=number, **changes)
