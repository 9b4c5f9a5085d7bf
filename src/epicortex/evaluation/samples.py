"""The samples a network learns from and is scored on: tensors over the shared file, and the draws from them.

Raw values stay uint8 in the mapped file; a batch is gathered, made float and scaled in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, split_validation, tensor
from epicortex.errors import ConfigError
from epicortex.evaluation.augmentation import Augmenter
from epicortex.evaluation.goals import Goal

#: No image is moved further than this part of its size, whatever its factor.
MOST_SHIFT: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Some samples of a data set; those in `index`, or all."""

    x: Tensor
    y: Tensor
    scale: Tensor
    shift: Tensor
    index: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y) if self.index is None else len(self.index)

    @property
    def labels(self) -> Tensor:
        """The labels in order."""
        return self.y if self.index is None else self.y.index_select(0, self.index)

    def batch(
        self,
        chosen: NDArray[np.int64],
        *,
        moves: NDArray[np.int64] | None = None,
        flips: NDArray[np.bool_] | None = None,
        augment: Augmenter | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Scaled inputs and labels of the samples chosen by their place, changed, moved and mirrored."""
        places = torch.from_numpy(chosen).to(self.x.device)
        rows = places if self.index is None else self.index.index_select(0, places)
        raw = self.x.index_select(0, rows)
        if augment is not None:
            raw = torch.from_numpy(augment(raw.cpu().numpy())).to(self.x.device)
        if moves is not None:
            raw = moved(raw, moves)
        if flips is not None:
            raw = mirrored(raw, flips)
        return self._scaled(raw), self.y.index_select(0, rows)

    def chunks(self, size: int, most: int | None = None) -> Iterator[Tensor]:
        """All scaled inputs, or `most` of them (`spread`), in order, in pieces of at most `size`."""
        index = self.index
        if most is not None and most < len(self):
            places = torch.from_numpy(spread(len(self), most)).to(self.x.device)
            index = places if index is None else index.index_select(0, places)
        count = len(self) if index is None else len(index)
        for start in range(0, count, size):
            end = min(start + size, count)
            if index is None:
                yield self._scaled(self.x[start:end])
            else:
                yield self._scaled(self.x.index_select(0, index[start:end]))

    def _scaled(self, raw: Tensor) -> Tensor:
        # a copy even where the values are float already: the file is never written to
        return raw.to(torch.float32, copy=True).mul_(self.scale).add_(self.shift)


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


def moved(images: Tensor, moves: NDArray[np.int64]) -> Tensor:
    """Images [samples, channels, *spatial], each moved by so many places in each dimension.

    What leaves on one side is gone; on the other the edge is repeated, so that the background stays as it is.

    >>> line = torch.arange(4).reshape(1, 1, 4)
    >>> [moved(line, np.array([[places]])).flatten().tolist() for places in (-1, 0, 1)]
    [[0, 0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 3]]
    """
    count, channels, *spatial = images.shape
    far = torch.from_numpy(moves).to(images.device)
    source = torch.zeros(count, *(1 for _ in spatial), dtype=torch.int64, device=images.device)
    for dimension, size in enumerate(spatial):
        steps = far[:, dimension]
        place = (torch.arange(size, device=images.device) + steps[:, None]).clamp_(0, size - 1)
        rows = place.reshape(count, *(size if d == dimension else 1 for d in range(len(spatial))))
        source = source * size + rows
    flat = source.reshape(count, 1, -1).expand(-1, channels, -1)
    return images.flatten(2).gather(2, flat).reshape(images.shape)


def draw_flips(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which images are mirrored: each with probability ½."""
    return rng.random(count) < 0.5


def mirrored(images: Tensor, flips: NDArray[np.bool_]) -> Tensor:
    """Images [samples, channels, height, width], the chosen ones mirrored left to right.

    >>> line = torch.arange(3).reshape(1, 1, 1, 3)
    >>> [mirrored(line, np.array([flip])).flatten().tolist() for flip in (False, True)]
    [[0, 1, 2], [2, 1, 0]]
    """
    chosen = torch.from_numpy(flips).to(images.device)
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def fitness_samples(
    data: DataSet, training: TrainingConfig, seed: int, device: torch.device
) -> tuple[Samples, Samples]:
    """The samples to train on and those to measure fitness on."""
    if training.fitness_on == "test":
        if len(data.y_test) == 0:
            raise ConfigError(
                f"training.fitness_on is 'test', but {data.name} has no test samples; give "
                "--training.fitness-on validation, or a --data.test-fraction above 0"
            )
        return split(data, "train", device), split(data, "test", device)
    if data.x_val is not None:
        return split(data, "train", device), split(data, "validation", device)
    train, validation = split_validation(
        data.strata(), training.validation_part(len(data.y_train)), randomness.generator(seed, "validation")
    )
    if len(validation) == 0:
        raise ConfigError(
            f"training.validation_fraction {training.validation_fraction} leaves no sample of {data.name} "
            "for validation; raise it, or set training.fitness_on to 'test'"
        )
    samples = split(data, "train", device)
    parts = [torch.from_numpy(index.astype(np.int64)).to(device) for index in (train, validation)]
    learnt, measured = (
        Samples(samples.x, samples.y, samples.scale, samples.shift, index=index) for index in parts
    )
    return learnt, measured


def split(data: DataSet, name: str, device: torch.device) -> Samples:
    """One part of a data set as it is stored: train, test or validation."""
    arrays = {
        "train": (data.x_train, data.y_train),
        "test": (data.x_test, data.y_test),
        "validation": (data.x_val, data.y_val),
    }
    x, y = arrays[name]
    if x is None or y is None:
        raise ConfigError(f"{data.name} has no {name} part of its own")
    scale, shift = (torch.from_numpy(array).to(device) for array in data.scaling.factors(x.ndim))
    return Samples(tensor(x).to(device), tensor(Goal.of(data).taught(y)).to(device), scale, shift)


def class_weights(labels: Tensor, classes: int) -> Tensor:
    """The inverse of each class's frequency, 1 on average over the samples; 0 where a class has none.

    >>> class_weights(torch.tensor([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    counts = torch.bincount(labels, minlength=classes).to(torch.float32)
    return torch.where(counts > 0, len(labels) / (int((counts > 0).sum()) * counts.clamp(min=1)), 0.0)


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
