"""Samples as torch takes them: tensors over the shared file.

A batch is gathered, made float and scaled in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling, tensor
from epicortex.evaluation.augmentation import Augmenter
from epicortex.evaluation.samples import Rows, fitness_rows, part_of, spread


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Some samples of a data set on a device; those in `index`, or all."""

    x: Tensor
    y: Tensor
    scale: Tensor
    shift: Tensor
    index: Tensor | None = None

    @classmethod
    def of(cls, rows: Rows, scaling: Scaling, device: torch.device) -> Samples:
        """Rows of a data set with this scaling."""
        scale, shift = (torch.from_numpy(array).to(device) for array in scaling.factors(rows.x.ndim))
        index = None if rows.index is None else torch.from_numpy(rows.index).to(device)
        return cls(tensor(rows.x).to(device), tensor(rows.y).to(device), scale, shift, index)

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
        raw = _changed(self.x.index_select(0, rows), augment)
        if moves is not None:
            raw = moved(raw, moves)
        if flips is not None:
            raw = mirrored(raw, flips)
        return self._scaled(raw), self.y.index_select(0, rows)

    def chunks(
        self, size: int, most: int | None = None, augment: Augmenter | None = None
    ) -> Iterator[Tensor]:
        """All scaled inputs, or `most` of them (`spread`), changed, in order, in pieces of at most `size`."""
        index = self.index
        if most is not None and most < len(self):
            places = torch.from_numpy(spread(len(self), most)).to(self.x.device)
            index = places if index is None else index.index_select(0, places)
        count = len(self) if index is None else len(index)
        for start in range(0, count, size):
            end = min(start + size, count)
            raw = self.x[start:end] if index is None else self.x.index_select(0, index[start:end])
            yield self._scaled(_changed(raw, augment))

    def _scaled(self, raw: Tensor) -> Tensor:
        # a copy even where the values are float already: the file is never written to
        return raw.to(torch.float32, copy=True).mul_(self.scale).add_(self.shift)


def _changed(raw: Tensor, augment: Augmenter | None) -> Tensor:
    return raw if augment is None else torch.from_numpy(augment(raw.cpu().numpy())).to(raw.device)


def fitness_samples(
    data: DataSet, training: TrainingConfig, seed: int, device: torch.device
) -> tuple[Samples, Samples]:
    """The samples to train on and those to measure fitness on."""
    rows = fitness_rows(data, training, seed)
    learnt = Samples.of(rows[0], data.scaling, device)
    if rows[1].x is not rows[0].x or rows[1].index is None:
        return learnt, Samples.of(rows[1], data.scaling, device)
    return learnt, replace(learnt, index=torch.from_numpy(rows[1].index).to(device))


def split(data: DataSet, name: str, device: torch.device) -> Samples:
    """One part of a data set as it is stored: train, test or validation."""
    return Samples.of(part_of(data, name), data.scaling, device)


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


def mirrored(images: Tensor, flips: NDArray[np.bool_]) -> Tensor:
    """Images [samples, channels, height, width], the chosen ones mirrored left to right.

    >>> line = torch.arange(3).reshape(1, 1, 1, 3)
    >>> [mirrored(line, np.array([flip])).flatten().tolist() for flip in (False, True)]
    [[0, 1, 2], [2, 1, 0]]
    """
    chosen = torch.from_numpy(flips).to(images.device)
    return torch.where(chosen[:, None, None, None], images.flip(3), images)
