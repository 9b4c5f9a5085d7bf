"""What is maximised: accuracy, balanced accuracy, R², minus an error, F1, or a function of the user's.

A file can only name a fitness; the function itself is handed over by the running program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from epicortex.errors import ConfigError
from epicortex.text import nearest

if TYPE_CHECKING:
    from torch import Tensor

Values = NDArray[Any]
FitnessFunction: TypeAlias = "Callable[[Tensor, Tensor], float]"
"""A function (logits [samples, classes], labels [samples]) -> fitness; higher is better. For regression it
gets the values and the right ones [samples, targets], for sets of labels logits and 0 or 1 for each label."""


def accuracy(predictions: Values, labels: Values) -> float:
    """The fraction of samples that are classified rightly.

    >>> accuracy(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]))
    0.75
    """
    return int((predictions == labels).sum()) / len(labels)


def balanced_accuracy(predictions: Values, labels: Values) -> float:
    """The mean over the classes of the fraction of each that is classified rightly.

    >>> balanced_accuracy(np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1]))
    0.5
    """
    total = np.bincount(labels)
    right = np.bincount(labels[predictions == labels], minlength=len(total))
    present = total > 0
    return float((right[present] / total[present]).mean())


def confusion_matrix(predictions: Values, labels: Values, classes: int) -> NDArray[np.int64]:
    """How often each class (row) was taken for which (column).

    >>> confusion_matrix(np.array([0, 1, 1]), np.array([0, 0, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    return np.bincount(labels * classes + predictions, minlength=classes**2).reshape(classes, classes)


def r2(predictions: Values, values: Values) -> float:
    """The part of the variance [samples, targets] that is explained, the mean over targets.

    As in scikit-learn, a target that never changes counts 1 where it is met exactly, else 0.

    >>> r2(np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [2.0], [3.0]]))
    0.5
    """
    values = values.astype(np.float64)
    rest = ((predictions - values) ** 2).sum(0)
    whole = ((values - values.mean(0)) ** 2).sum(0)
    unexplained = np.divide(rest, whole, out=np.where(rest > 0, 1.0, 0.0), where=whole > 0)
    explained = 1 - unexplained
    return float(explained.mean())


def mean_absolute_error(predictions: Values, values: Values) -> float:
    """Minus the mean distance from the right value, in the unit of the data.

    >>> mean_absolute_error(np.array([[1.0], [2.0]]), np.array([[1.5], [1.5]]))
    -0.5
    """
    return -float(np.abs(predictions - values.astype(np.float64)).mean())


def f1(predictions: Values, labels: Values) -> float:
    """The mean over the labels of their F1 (macro); labels that no sample has are left out.

    >>> f1(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]))
    0.8333333333333333
    """
    right, given, there = _hits(predictions, labels)
    present = there > 0
    if not present.any():
        return 0.0
    return float((2 * right[present] / (given[present] + there[present])).mean())


def f1_micro(predictions: Values, labels: Values) -> float:
    """The F1 of all labels of all samples together.

    >>> f1_micro(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]))
    0.8
    """
    right, given, there = (float(one.sum()) for one in _hits(predictions, labels))
    return 2 * right / (given + there) if given + there else 0.0


def _hits(predictions: Values, labels: Values) -> tuple[Values, Values, Values]:
    """For each label how often it was given rightly, given at all, and there."""
    return (predictions * labels).sum(0), predictions.sum(0), labels.sum(0)


BUILT_IN: Final[Mapping[str, Callable[[Values, Values], float]]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "r2": r2,
    "mean_absolute_error": mean_absolute_error,
    "f1": f1,
    "f1_micro": f1_micro,
}


def find_fitness(
    name: str, registered: Mapping[str, FitnessFunction] | None = None
) -> FitnessFunction | None:
    """The user's function of this name, or None where the name is a built-in fitness; else `ConfigError`.

    >>> find_fitness("accuracy") is None
    True
    >>> find_fitness("top_two", {"top_two": lambda logits, labels: 0.5}) is None
    False
    """
    registered = registered or {}
    if name in registered:
        return registered[name]
    if name in BUILT_IN:
        return None
    names = sorted({*BUILT_IN, *registered})
    near = nearest(name, names)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(names)}"
    raise ConfigError(
        f"training.fitness: no fitness is called {name!r}; {hint} "
        "(a function of your own is handed over in Python, under its name)"
    )
