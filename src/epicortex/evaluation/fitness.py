"""What is maximised: accuracy, balanced accuracy, or a function of the user's.

A file can only name a fitness; the function itself is handed over by the running program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import torch
from torch import Tensor

from epicortex.errors import ConfigError
from epicortex.text import nearest

FitnessFunction: TypeAlias = Callable[[Tensor, Tensor], float]
"""A function (logits [samples, classes], labels [samples]) -> fitness; higher is better."""


def accuracy(predictions: Tensor, labels: Tensor) -> float:
    """The fraction of samples that are classified rightly.

    >>> accuracy(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 0, 1, 1]))
    0.75
    """
    return int((predictions == labels).sum()) / len(labels)


def balanced_accuracy(predictions: Tensor, labels: Tensor) -> float:
    """The mean over the classes of the fraction of each that is classified rightly.

    >>> balanced_accuracy(torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 0, 1]))
    0.5
    """
    total = torch.bincount(labels)
    right = torch.bincount(labels[predictions == labels], minlength=len(total))
    present = total > 0
    return float((right[present].double() / total[present].double()).mean())


def confusion_matrix(predictions: Tensor, labels: Tensor, classes: int) -> Tensor:
    """How often each class (row) was taken for which (column).

    >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2).tolist()
    [[1, 1], [0, 1]]
    """
    return torch.bincount(labels * classes + predictions, minlength=classes**2).reshape(classes, classes)


BUILT_IN: Final[Mapping[str, Callable[[Tensor, Tensor], float]]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
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
