"""The samples a network learns from and is scored on: rows of the shared file, and the draws from them.

Raw values stay as they are in the mapped file. How torch gathers and scales a batch is in `tensors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, split_validation
from epicortex.errors import ConfigError
from epicortex.evaluation.goals import Goal

#: No image is moved further than this part of its size, whatever its factor.
MOST_SHIFT: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some samples of a data set, raw: those in `index`, or all."""

    x: NDArray[Any]
    y: NDArray[Any]
    """Labels as networks learn them."""
    index: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y) if self.index is None else len(self.index)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels in order."""
        return self.y if self.index is None else self.y[self.index]


def part_of(data: DataSet, name: str) -> Rows:
    """One part of a data set as it is stored: train, test or validation."""
    arrays = {
        "train": (data.x_train, data.y_train),
        "test": (data.x_test, data.y_test),
        "validation": (data.x_val, data.y_val),
    }
    x, y = arrays[name]
    if x is None or y is None:
        raise ConfigError(f"{data.name} has no {name} part of its own")
    return Rows(x, Goal.of(data).taught(y))


def fitness_rows(data: DataSet, training: TrainingConfig, seed: int) -> tuple[Rows, Rows]:
    """The samples to train on and those to measure fitness on."""
    if training.fitness_on == "test":
        if len(data.y_test) == 0:
            raise ConfigError(
                f"training.fitness_on is 'test', but {data.name} has no test samples; give "
                "--training.fitness-on validation, or a --data.test-fraction above 0"
            )
        return part_of(data, "train"), part_of(data, "test")
    if data.x_val is not None:
        return part_of(data, "train"), part_of(data, "validation")
    train, validation = split_validation(
        data.strata(), training.validation_part(len(data.y_train)), randomness.generator(seed, "validation")
    )
    if len(validation) == 0:
        raise ConfigError(
            f"training.validation_fraction {training.validation_fraction} leaves no sample of {data.name} "
            "for validation; raise it, or set training.fitness_on to 'test'"
        )
    whole = part_of(data, "train")
    learnt, measured = (replace(whole, index=index.astype(np.int64)) for index in (train, validation))
    return learnt, measured


def class_weights(labels: NDArray[np.int64], classes: int) -> NDArray[np.float32]:
    """The inverse of each class's frequency, 1 on average over the samples; 0 where a class has none.

    >>> class_weights(np.array([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    counts = np.bincount(labels, minlength=classes).astype(np.float32)
    present = counts > 0
    # the inverse first, and then times: torch did so, and runs of before keep their bits
    inverses = np.float32(1) / (np.float32(present.sum()) * np.maximum(counts, np.float32(1)))
    weights = inverses * np.float32(len(labels))
    return np.where(present, weights, np.float32(0))


def spread(samples: int, most: int | None) -> NDArray[np.int64]:
    """The places of so many samples, evenly spaced: data is often sorted by class.

    >>> spread(10, 4).tolist(), spread(3, None).tolist(), spread(2, 5).tolist()
    ([0, 2, 5, 7], [0, 1, 2], [0, 1])
    """
    count = samples if most is None else min(most, samples)
    return np.arange(count, dtype=np.int64) * samples // max(1, count)


def draw_moves(
    count: int, spatial: Sequence[int], shift: float, rng: np.random.Generator, *, part: float = 0.5
) -> NDArray[np.int64]:
    """How far each image moves in each dimension [images, dimensions]: only this part of them at all."""
    chosen = rng.random(count) < part
    most = [round(shift * size) for size in spatial]
    return np.stack([rng.integers(-far, far + 1, count) * chosen for far in most], axis=1)


def draw_flips(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which images are mirrored: each with probability ½."""
    return rng.random(count) < 0.5


def draw_batches(
    samples: int, training: TrainingConfig, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """A generation's batches for one network: a portion without replacement, the last short batch kept.

    With `min_steps` a small portion is enlarged, up to the whole set, and then repeated in a new order.

    >>> rng = np.random.default_rng(1)
    >>> [len(batch) for batch in draw_batches(3000, TrainingConfig(), rng)]
    [128, 128, 44]
    >>> [len(batch) for batch in draw_batches(3000, TrainingConfig(min_steps=4), rng)]
    [128, 128, 128, 128]
    >>> [len(batch) for batch in draw_batches(200, TrainingConfig(min_steps=3), rng)]
    [128, 72, 128]
    """
    size = training.batch_size
    portion = max(1, round(training.portion * samples))
    if -(-portion // size) < training.min_steps:
        portion = min(samples, training.min_steps * size)
    steps = max(-(-portion // size), training.min_steps)
    while steps > 0:
        chosen = rng.choice(samples, size=portion, replace=False)
        for start in range(0, min(portion, steps * size), size):
            yield chosen[start : start + size]
            steps -= 1


def stream(
    samples: int, size: int, start: int, steps: int, seed: int, number: int
) -> Iterator[NDArray[np.int64]]:
    """Batches of an endless stream, from the `start`-th on: all samples in one order after another.

    What does not fill a batch is left out of its order.

    >>> [batch.tolist() for batch in stream(5, 2, 0, 3, seed=1, number=0)]
    [[3, 2], [1, 0], [0, 1]]
    >>> [batch.tolist() for batch in stream(5, 2, 1, 2, seed=1, number=0)]
    [[1, 0], [0, 1]]
    """
    size = min(size, samples)
    rounds = samples // size
    order, known = np.empty(0, np.int64), -1
    for batch in range(start, start + steps):
        turn, place = divmod(batch, rounds)
        if turn != known:
            rng = randomness.generator(seed, "stream", generation=turn, network=number)
            order, known = rng.permutation(samples), turn
        yield order[place * size : (place + 1) * size]
