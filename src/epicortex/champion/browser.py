"""A champion as plain JSON values, for a page that runs it itself: pages/assets/try.js knows how."""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np

from epicortex.champion.file import Champion
from epicortex.champion.steps import Step, steps, temperature
from epicortex.errors import ConfigError
from epicortex.families.family import Array

#: A page with more numbers than this would be slow to open.
MOST_PARAMETERS: Final = 1_000_000


def payload(champion: Champion) -> dict[str, Any]:
    """All that a page needs to answer as this champion does; one that is too large is refused."""
    if champion.outline.parameters > MOST_PARAMETERS:
        raise ConfigError(f"a page holds at most {MOST_PARAMETERS:,} parameters")
    scale, shift = (factors.reshape(-1) for factors in champion.scaling.factors(2))
    return {
        "shape": list(champion.outline.input_shape),
        "classes": list(champion.classes),
        "white": champion.scaling.divisor,
        "dark": bool(np.mean(champion.scaling.mean) < 1 / 2),
        "temperature": temperature(champion),
        "task": champion.facts.task,
        "scale": _packed(scale),
        "shift": _packed(shift),
        "steps": [_step(step) for step in steps(champion)],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "source": step.source,
        "below": list(step.below),
        "output": list(step.output),
        "weight": _packed(step.weight),
        "bias": _packed(step.bias),
        "kernels": [list(kernel) for kernel in step.kernels],
        "stride": list(step.stride),
        "factor": step.factor,
        "add": step.add,
        "activation": step.activation,
    }


def _packed(numbers: Array) -> str:
    """Float32, the lowest byte first, in letters.

    >>> _packed(np.array([1.0], np.float32))
    'AACAPw=='
    """
    return base64.b64encode(np.asarray(numbers, "<f4").tobytes()).decode()
