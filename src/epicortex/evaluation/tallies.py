"""What predicted numbers and sets of labels amount to: errors, R², F1, intervals, baselines. No torch.

Intervals are those of a bootstrap over samples: 95 % of 1,000 draws (of 200, where there are many samples),
with a fixed seed, so that the same answers have the same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DRAWS: Final = 1000
_FEW_DRAWS: Final = 200
#: From how many samples on the fewer draws will do.
_MANY: Final = 5000
_AT_ONCE: Final = 50
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Regressed:
    """How predicted numbers compare with the right ones; lists are in the order of the targets."""

    samples: int
    r2: float
    """The part of the variance that is explained, the mean over targets."""
    r2_interval: tuple[float, ...]
    """Where it likely is on more data of this kind (95 %, bootstrap)."""
    errors: tuple[float, ...]
    """The mean absolute error of each target, in its unit."""
    error_intervals: tuple[float, ...]
    """The two ends for each target, one after the other."""
    roots: tuple[float, ...]
    """The root of the mean squared error of each target."""
    explained: tuple[float, ...]
    """R² of each target."""
    baselines: tuple[float, ...]
    """The mean absolute error of always answering the mean of the training part."""
    fitness: float | None = None
    """The figure that the run maximised, where that is not R²."""

    @property
    def beats_baseline(self) -> bool:
        """Whether it is surely better than always answering the mean: the interval of R² is above 0."""
        return self.r2_interval[0] > 0

    def interval(self, target: int = 0) -> tuple[float, float]:
        """The interval of the mean absolute error of a target."""
        return self.error_intervals[2 * target], self.error_intervals[2 * target + 1]


@dataclass(frozen=True, slots=True)
class LabelSets:
    """How predicted sets of labels compare with the right ones; lists are in the order of the labels."""

    samples: int
    support: tuple[int, ...]
    """How many samples have each label."""
    right: tuple[int, ...]
    """To how many of them it was given."""
    answered: tuple[int, ...]
    """To how many samples it was given."""
    exact: int
    """How many samples got exactly their labels."""
    common: int
    """How many samples have the most frequent set of labels."""
    f1_interval: tuple[float, ...]
    """Where macro F1 likely is on more data of this kind (95 %, bootstrap)."""
    fitness: float | None = None
    """The figure that the run maximised, where that is not macro F1."""

    @property
    def f1(self) -> float:
        """The mean F1 of the labels that occur (macro)."""
        known = [one for one in self.f1s() if one is not None]
        return sum(known) / len(known) if known else 0.0

    @property
    def f1_micro(self) -> float:
        """The F1 of all labels of all samples together."""
        total = sum(self.support) + sum(self.answered)
        return 2 * sum(self.right) / total if total else 0.0

    @property
    def baseline(self) -> float:
        """The macro F1 of giving every label to every sample, the best of all answers that never change.

        >>> round(LabelSets(10, (5, 1), (5, 0), (5, 0), 5, 5, (0.0, 1.0)).baseline, 4)
        0.4242
        """
        known = [2 * one / (one + self.samples) for one in self.support if one]
        return sum(known) / len(known) if known else 0.0

    @property
    def beats_baseline(self) -> bool:
        """Whether all of the interval of macro F1 is above the baseline."""
        return self.f1_interval[0] > self.baseline

    def f1s(self) -> tuple[float | None, ...]:
        """F1 of each label; None where no sample has it."""
        rows = zip(self.right, self.support, self.answered, strict=True)
        return tuple(2 * right / (there + given) if there else None for right, there, given in rows)

    def recall(self) -> tuple[float | None, ...]:
        """The part of the samples with each label that got it; None where none has it."""
        return tuple(r / n if n else None for r, n in zip(self.right, self.support, strict=True))

    def precision(self) -> tuple[float | None, ...]:
        """How often each label was right where it was given; None where it never was."""
        return tuple(r / n if n else None for r, n in zip(self.right, self.answered, strict=True))

    def accuracies(self) -> tuple[float, ...]:
        """How often each label was rightly given or rightly not."""
        rows = zip(self.right, self.support, self.answered, strict=True)
        return tuple(
            (self.samples - there - given + 2 * right) / self.samples for right, there, given in rows
        )

    def majorities(self) -> tuple[float, ...]:
        """How often always giving each label, or never, would be right: the better of the two."""
        return tuple(max(one, self.samples - one) / self.samples for one in self.support)


def regressed(predictions: Any, values: Any, mean: Any, fitness: float | None = None) -> Regressed:
    """What predicted numbers [samples, targets] amount to; `mean` is that of the training part.

    >>> regressed([[1.0], [2.0], [4.0]], [[1.0], [2.0], [3.0]], [2.0]).errors
    (0.3333333333333333,)
    """
    found, right = np.asarray(predictions, np.float64), np.asarray(values, np.float64)
    wrong = np.abs(found - right)

    def r2(weights: Floats) -> Floats:
        total = weights.sum(1, keepdims=True)
        middle = weights @ right / total
        whole = np.maximum(weights @ right**2 / total - middle**2, 0)
        rest = weights @ wrong**2 / total
        changes = whole > 1e-12 * np.maximum(1e-300, middle**2)
        parts = np.where(changes, 1 - rest / np.where(changes, whole, 1), rest == 0)
        each: Floats = parts.mean(1)
        return each

    draws = bootstrap(
        len(right), lambda weights: np.column_stack([r2(weights), weights @ wrong / len(right)])
    )
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    spread = ((right - right.mean(0)) ** 2).sum(0)
    explained = np.where(
        spread > 0, 1 - (wrong**2).sum(0) / np.where(spread > 0, spread, 1), (wrong == 0).all(0)
    )
    return Regressed(
        samples=len(right),
        r2=float(explained.mean()),
        r2_interval=(float(low[0]), float(high[0])),
        errors=tuple(wrong.mean(0).tolist()),
        error_intervals=tuple(np.column_stack([low[1:], high[1:]]).ravel().tolist()),
        roots=tuple(np.sqrt((wrong**2).mean(0)).tolist()),
        explained=tuple(explained.astype(np.float64).tolist()),
        baselines=tuple(np.abs(right - np.asarray(mean, np.float64)).mean(0).tolist()),
        fitness=fitness,
    )


def labelled(predictions: Any, labels: Any, fitness: float | None = None) -> LabelSets:
    """What predicted sets of labels [samples, labels] of 0 and 1 amount to.

    >>> labelled([[1, 0], [1, 1]], [[1, 0], [0, 1]]).f1
    0.8333333333333333
    """
    given, there = np.asarray(predictions, np.float64), np.asarray(labels, np.float64)
    both, count = given * there, there.shape[1]

    def f1(weights: Floats) -> Floats:
        right, answered, support = (weights @ one for one in (both, given, there))
        present = support > 0
        scores = np.where(present, 2 * right / np.where(present, answered + support, 1), 0.0)
        each: Floats = scores.sum(1) / np.maximum(1, present.sum(1))
        return each[:, None]

    low, high = np.quantile(bootstrap(len(there), f1)[:, 0], (0.025, 0.975))
    _, often = np.unique(there, axis=0, return_counts=True)
    sums = [tuple(one.sum(0).astype(int).tolist()) for one in (there, both, given)]
    assert all(len(one) == count for one in sums)
    return LabelSets(
        samples=len(there),
        support=sums[0],
        right=sums[1],
        answered=sums[2],
        exact=int((given == there).all(1).sum()),
        common=int(often.max()),
        f1_interval=(float(low), float(high)),
        fitness=fitness,
    )


def bootstrap(samples: int, figures: Callable[[Floats], Floats]) -> Floats:
    """Figures [draws, figures] of samples drawn with replacement.

    `figures` takes how often each sample was drawn [draws, samples].

    >>> bootstrap(100, lambda weights: weights.sum(1, keepdims=True))[:2].ravel().tolist()
    [100.0, 100.0]
    """
    rng = np.random.default_rng(_SEED)
    draws = _DRAWS if samples < _MANY else _FEW_DRAWS

    def some() -> Iterator[Floats]:
        for start in range(0, draws, _AT_ONCE):
            number = min(_AT_ONCE, draws - start)
            chosen = rng.integers(0, samples, (number, samples)) + np.arange(number)[:, None] * samples
            counts = np.bincount(chosen.ravel(), minlength=number * samples).reshape(number, samples)
            yield figures(counts.astype(np.float64))

    return np.concatenate(list(some()))
