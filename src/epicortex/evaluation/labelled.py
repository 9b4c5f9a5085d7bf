"""Labelled data for models that are no modules, or that learn without gradients: losses and accuracies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.fitness import BUILT_IN, accuracy
from epicortex.evaluation.samples import Samples, draw_batches, fitness_samples, split

_CHUNK: Final = 512


class Labelled:
    """A data set as something to learn from: lower loss on batches is better, fitness is an accuracy."""

    def __init__(self, data: DataSet, training: TrainingConfig, seed: int) -> None:
        self._training = training
        self._data = data
        self._device = torch.device("cpu")
        self._learnt, self._measured = fitness_samples(data, training, seed, self._device)

    def values(self, rng: np.random.Generator) -> Iterator[Callable[[Any], float]]:
        """Minus the loss on one batch after another."""
        while True:
            for chosen in draw_batches(len(self._learnt), self._training, rng):
                yield partial(self._worth, *self._learnt.batch(chosen))

    def fitness(self, model: Any, pace: Callable[[], None]) -> float:
        """The accuracy on the samples that fitness is measured on."""
        predictions = self._predicted(model, self._measured, pace)
        return float(BUILT_IN[self._training.fitness](predictions, self._measured.labels))

    def tested(self, model: Any) -> float | None:
        """The accuracy on the test set, where there is one that fitness was not measured on."""
        if self._training.fitness_on == "test" or not len(self._data.y_test):
            return None
        samples = split(self._data, "test", self._device)
        return float(accuracy(self._predicted(model, samples, lambda: None), samples.labels))

    def _worth(self, x: Tensor, labels: Tensor, model: Any) -> float:
        with fixed_arithmetic(self._device):
            return -float(functional.cross_entropy(_logits(model, x), labels))

    def _predicted(self, model: Any, samples: Samples, pace: Callable[[], None]) -> Tensor:
        found = []
        with fixed_arithmetic(self._device):
            for x in samples.chunks(_CHUNK):
                pace()
                found.append(_logits(model, x).argmax(1))
        return torch.cat(found)


def _logits(model: Any, x: Tensor) -> Tensor:
    if not isinstance(model, nn.Module):
        return torch.as_tensor(np.asarray(model(x.numpy())), dtype=torch.float32)
    model.eval()
    with torch.inference_mode():
        outputs: Tensor = model(x)
        return outputs
