"""Which activations there are, by name. Their modules are in `modules`, which needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NAMES: Final = frozenset({"leaky_relu", "relu", "elu", "gelu", "silu", "tanh", "smooth"})


@dataclass(frozen=True, slots=True)
class Activations:
    """Which activation each type of layer has; the output layer has none."""

    conv: str = "leaky_relu"
    full: str = "smooth"
