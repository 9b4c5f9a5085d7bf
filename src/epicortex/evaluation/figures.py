"""What right and wrong answers amount to: intervals, baselines, recall, calibration. Numbers only, no torch.

How a network comes to its answers is left to `scoring`, how figures are worded to `champion.words`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.evaluation.tallies import LabelSets, Regressed

Floats = NDArray[np.float64]

#: The normal deviate of a two-sided interval of 95 %.
_DEVIATE: Final = 1.959963984540054
_ONE_SIDED: Final = 0.025
#: Of more coins the normal approximation is as good.
_MANY: Final = 1000
#: Of fewer samples a temperature would say more about them than about the network.
ENOUGH_FOR_TEMPERATURE: Final = 20
#: More than these tell no more of a temperature.
_ENOUGH_ROWS: Final = 5000
_BINS: Final = 15


def wilson(right: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a rate after Wilson: where the true rate likely is, given so many of so many.

    >>> [round(bound, 4) for bound in wilson(90, 100)]
    [0.8256, 0.9448]
    """
    if total == 0:
        return 0.0, 1.0
    rate, square = right / total, _DEVIATE**2 / total
    middle = (rate + square / 2) / (1 + square)
    reach = _DEVIATE * math.sqrt(rate * (1 - rate) / total + square / (4 * total)) / (1 + square)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _sign_test(won: int, total: int) -> float:
    """How likely a fair coin falls on the same side so often, or more often.

    >>> _sign_test(3, 3), round(_sign_test(1060, 2000), 4)
    (0.125, 0.0039)
    """
    if total > _MANY:
        deviate = (won - 0.5 - total / 2) / math.sqrt(total / 4)
        return math.erfc(deviate / math.sqrt(2)) / 2
    return sum(math.comb(total, number) for number in range(won, total + 1)) / (1 << total)


@dataclass(frozen=True, slots=True)
class Tested:
    """How a network answered labelled samples, class by class, in the order of the classes."""

    support: tuple[int, ...]
    """How many samples each class has."""
    right: tuple[int, ...]
    """How many of them were recognised."""
    answered: tuple[int, ...]
    """How often each class was the answer."""
    fitness: float | None = None
    """The figure that the run maximised, where that is not accuracy."""

    @property
    def samples(self) -> int:
        """How many samples there were."""
        return sum(self.support)

    @property
    def accuracy(self) -> float:
        """The fraction of samples that were recognised."""
        return sum(self.right) / self.samples

    @property
    def interval(self) -> tuple[float, float]:
        """Where the accuracy on all data of this kind likely is (95 %, Wilson)."""
        return wilson(sum(self.right), self.samples)

    @property
    def majority(self) -> int:
        """The class with the most samples."""
        return self.support.index(max(self.support))

    @property
    def baseline(self) -> float:
        """The accuracy of always answering the class with the most samples.

        >>> Tested((90, 10), (90, 0), (100, 0)).baseline
        0.9
        """
        return max(self.support) / self.samples

    @property
    def beats_baseline(self) -> bool:
        """Whether it is surely better than always giving the most frequent answer.

        Both answered the same samples, so only those count that one of them got right (sign test, 2.5 %).

        >>> Tested((90, 10), (90, 0), (100, 0)).beats_baseline
        False
        >>> Tested((90, 10), (90, 9), (91, 9)).beats_baseline
        True
        """
        lost = self.support[self.majority] - self.right[self.majority]
        won = sum(self.right) - self.right[self.majority]
        return _sign_test(won, won + lost) < _ONE_SIDED

    def recall(self) -> tuple[float | None, ...]:
        """The fraction of each class that was recognised; None where it has no samples.

        >>> Tested((90, 10), (90, 0), (100, 0)).recall()
        (1.0, 0.0)
        """
        return tuple(r / n if n else None for r, n in zip(self.right, self.support, strict=True))

    def precision(self) -> tuple[float | None, ...]:
        """How often each class was right when it was the answer; None where it never was.

        >>> Tested((90, 10), (90, 0), (100, 0)).precision()
        (0.9, None)
        """
        return tuple(r / n if n else None for r, n in zip(self.right, self.answered, strict=True))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a champion when its run has ended."""

    test: Tested | None = None
    temperature: float | None = None
    regression: Regressed | None = None
    labels: LabelSets | None = None

    @property
    def figure(self) -> float | None:
        """What is shown of the test set in any case: accuracy, R² or macro F1; None where there is none."""
        if self.test is not None:
            return self.test.accuracy
        if self.regression is not None:
            return self.regression.r2
        return None if self.labels is None else self.labels.f1


def counted(predictions: Any, labels: Any, classes: int, fitness: float | None = None) -> Tested:
    """What predicted classes amount to, beside the right ones.

    >>> counted(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    Tested(support=(2, 1), right=(1, 1), answered=(1, 2), fitness=None)
    """
    predictions, labels = np.asarray(predictions), np.asarray(labels)

    def count(numbers: NDArray[Any]) -> tuple[int, ...]:
        return tuple(np.bincount(numbers, minlength=classes).tolist())

    return Tested(count(labels), count(labels[predictions == labels]), count(predictions), fitness)


def probabilities(logits: Any, temperature: float | None = None) -> Floats:
    """The softmax of logits, divided by a temperature where there is one, in double precision.

    >>> probabilities([[0.0, 0.0]]).tolist()
    [[0.5, 0.5]]
    """
    scaled = np.asarray(logits, np.float64) / (temperature or 1.0)
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    result: Floats = powers / powers.sum(axis=1, keepdims=True)
    return result


def sigmoid(logits: Any) -> Floats:
    """The probability of each label, by itself, in double precision.

    >>> sigmoid([[0.0, -1000.0]]).tolist()
    [[0.5, 0.0]]
    """
    values = np.asarray(logits, np.float64)
    small = np.exp(-np.abs(values))
    result: Floats = np.where(values >= 0, 1.0, small) / (1.0 + small)
    return result


def fit_temperature(logits: Any, labels: Any) -> float | None:
    """What logits have to be divided by, so that probabilities say how often they are right.

    It maximises the likelihood of labels that were not learnt from. Where there are too few, it is None. As
    in Platt's method a label counts as a little less than sure, or it would be 0 where all answers are right.
    """
    every = max(1, len(labels) // _ENOUGH_ROWS)
    logits, labels = np.asarray(logits[::every], np.float64), np.asarray(labels)[::every]
    samples, classes = logits.shape
    if samples < ENOUGH_FOR_TEMPERATURE or classes < 2:
        return None
    spread = 1 / (samples + 2)
    targets = np.full(logits.shape, spread / (classes - 1))
    targets[np.arange(samples), labels] = 1 - spread
    low, high = math.log(0.02), math.log(50.0)
    for _ in range(40):  # the loss has one minimum over the logarithm of the temperature
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if _loss(logits, targets, math.exp(first)) < _loss(logits, targets, math.exp(second)):
            high = second
        else:
            low = first
    return round(math.exp((low + high) / 2), 4)


def _loss(logits: Floats, targets: Floats, temperature: float) -> float:
    scaled = logits / temperature
    top = scaled.max(axis=1, keepdims=True)
    logs = scaled - top - np.log(np.exp(scaled - top).sum(axis=1, keepdims=True))
    return float(-(targets * logs).sum(axis=1).mean())


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers of which a network is about as sure."""

    samples: int
    sure: float
    """How sure it is on average."""
    right: float
    """How often it is right."""


def reliability(chances: Any, labels: Any, bins: int = _BINS) -> list[Bin]:
    """The answers by how sure the network is, in equal steps; steps without an answer are left out."""
    chances, labels = np.asarray(chances, np.float64), np.asarray(labels)
    sure, right = chances.max(axis=1), chances.argmax(axis=1) == labels
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return [
        Bin(int(here.sum()), float(sure[here].mean()), float(right[here].mean()))
        for here in (place == number for number in range(bins))
        if here.any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """How far being sure is from being right, on average over the answers (expected calibration error).

    >>> calibration_error([Bin(10, 0.9, 0.8), Bin(30, 0.6, 0.6)])
    0.025
    """
    total = sum(one.samples for one in bins)
    return round(sum(one.samples * abs(one.sure - one.right) for one in bins) / total, 12)
