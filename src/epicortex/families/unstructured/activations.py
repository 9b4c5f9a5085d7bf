"""The activations of single nodes, by name: of one number, and of an array. Both in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: Beyond this a logistic is 0 or 1 in any case, and exp would overflow.
_FAR: Final = 60.0


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-_FAR, min(_FAR, x))))


def _sine(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else math.nan


def _gauss(x: float) -> float:
    return math.exp(-min(_FAR, x * x))


def _relu(x: float) -> float:
    return x if x > 0.0 else 0.0


def _linear(x: float) -> float:
    return x


#: In the order in which the native arithmetic numbers them.
SCALAR: Final[dict[str, Callable[[float], float]]] = {
    "linear": _linear,
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "relu": _relu,
    "sine": _sine,
    "gauss": _gauss,
}
NAMES: Final = tuple(SCALAR)
VECTOR: Final[dict[str, Callable[[Values], Values]]] = {
    "linear": lambda x: x,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-np.clip(x, -_FAR, _FAR))),
    "relu": lambda x: np.maximum(x, 0.0),
    "sine": np.sin,
    "gauss": lambda x: np.exp(-np.minimum(_FAR, x * x)),
}
