"""What networks can be evolved for, and the built-in figures of merit: for which of these, and how they read.

The arithmetic is in `evaluation`; a fitness of a person's own is known by its name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from epicortex.text import clean, percent, plain

TaskKind: TypeAlias = Literal["classes", "regression", "multilabel"]
"""What is predicted of a sample: one class of several, one or more numbers, or any set of labels."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A built-in fitness."""

    task: TaskKind
    words: str
    percent: bool = False
    error: bool = False
    """Whether fitness is minus the figure, since less is better."""


MEASURES: Final[Mapping[str, Measure]] = {
    "accuracy": Measure("classes", "accuracy", percent=True),
    "balanced_accuracy": Measure("classes", "balanced accuracy", percent=True),
    "r2": Measure("regression", "R²"),
    "mean_absolute_error": Measure("regression", "mean absolute error", error=True),
    "f1": Measure("multilabel", "macro F1"),
    "f1_micro": Measure("multilabel", "micro F1"),
}
USUAL: Final[Mapping[TaskKind, str]] = {"classes": "accuracy", "regression": "r2", "multilabel": "f1"}
"""What is maximised unless something else is asked for, and shown of the test set in any case."""


def is_percent(name: str) -> bool:
    """Whether a fitness is a fraction that people read as percent.

    >>> is_percent("accuracy"), is_percent("r2"), is_percent("my_own")
    (True, False, False)
    """
    return name in MEASURES and MEASURES[name].percent


def is_error(name: str) -> bool:
    """Whether a fitness is minus an error."""
    return name in MEASURES and MEASURES[name].error


def named(name: str) -> str:
    """What a fitness is called.

    >>> named("balanced_accuracy"), named("r2"), named("per_millisecond")
    ('balanced accuracy', 'R²', 'per millisecond')
    """
    return MEASURES[name].words if name in MEASURES else clean(name).replace("_", " ")


def figure(name: str, fitness: float | None) -> str:
    """A fitness in words: errors as what they are, not as minus themselves.

    >>> figure("accuracy", 0.5), figure("r2", 0.5), figure("mean_absolute_error", -41.25)
    ('50.00 %', '0.5', '41.25')
    """
    if fitness is None or is_percent(name):
        return percent(fitness)
    return plain(-fitness if is_error(name) else fitness)


def suited(fitness: str, task: TaskKind) -> str:
    """The fitness of a run: accuracy, the default, stands for what is usual for the task.

    >>> suited("accuracy", "regression"), suited("mean_absolute_error", "regression")
    ('r2', 'mean_absolute_error')
    """
    return USUAL[task] if fitness == USUAL["classes"] else fitness
