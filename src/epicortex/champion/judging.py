"""A champion's numbers, or sets of labels, beside the right ones, and what they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Facts
from epicortex.evaluation.tallies import LabelSets, Regressed, labelled, regressed

Floats = NDArray[np.float64]
HALF = 0.5
"""A label is given from this probability on."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantities:
    """How a champion does on data whose numbers are known."""

    targets: tuple[str, ...]
    names: list[str]
    """What the samples are called."""
    right: Floats
    """The right numbers [samples, targets], and what the champion says."""
    found: Floats
    figures: Regressed
    unreadable: tuple[str, ...] = ()

    def worst(self) -> list[int]:
        """The samples, those that are furthest off first: in standard deviations, by their worst target."""
        spread = np.maximum(self.right.std(0), 1e-300)
        off = (np.abs(self.found - self.right) / spread).max(1)
        return [int(place) for place in np.lexsort((np.arange(len(off)), -off))]


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """How a champion does on data whose sets of labels are known."""

    labels: tuple[str, ...]
    names: list[str]
    right: NDArray[np.uint8]
    """0 and 1 [samples, labels]."""
    chances: Floats
    """The probability of each label."""
    figures: LabelSets
    unreadable: tuple[str, ...] = ()

    @property
    def found(self) -> NDArray[np.uint8]:
        """What the champion gives: 0 and 1 [samples, labels]."""
        return (self.chances >= HALF).astype(np.uint8)

    def worst(self) -> list[int]:
        """The samples with a wrong label, those whose wrongest label is surest first."""
        off = np.abs(self.chances - self.right).max(1)
        order = np.lexsort((np.arange(len(off)), -off))
        wrong = (self.found != self.right).any(1)
        return [int(place) for place in order if wrong[place]]


def judged(
    facts: Facts, names: list[str], right: NDArray[np.generic], found: Floats, unreadable: Sequence[str] = ()
) -> Quantities | Labelling:
    """What numbers or probabilities [samples, outputs] amount to."""
    if facts.task == "multilabel":
        given = (found >= HALF).astype(np.uint8)
        sets = np.asarray(right, np.uint8)
        return Labelling(facts.classes, names, sets, found, labelled(given, sets), tuple(unreadable))
    assert facts.targets is not None
    values = np.asarray(right, np.float64)
    figures = regressed(found, values, facts.targets.mean)
    return Quantities(facts.classes, names, values, found, figures, tuple(unreadable))


def given_labels(chances: Sequence[float], labels: Sequence[str]) -> list[str]:
    """The labels that a champion gives, the likeliest first.

    >>> given_labels([0.2, 0.7, 0.9], ["a", "b", "c"])
    ['c', 'b']
    """
    order = sorted(range(len(labels)), key=lambda place: -chances[place])
    return [labels[place] for place in order if chances[place] >= HALF]
