"""Labelled data for models that are no modules, or that learn without gradients: losses and fitness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Sums
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.fitness import Values
from epicortex.evaluation.goals import Goal
from epicortex.evaluation.losses import batch_loss
from epicortex.evaluation.samples import draw_batches
from epicortex.evaluation.tensors import Samples, fitness_samples, split
from epicortex.evaluation.variants import Rebuilt, Stacked, Variants
from epicortex.families.family import Family
from epicortex.measures import USUAL

_CHUNK: Final = 512


class Labelled:
    """A data set as something to learn from: lower loss on batches is better."""

    def __init__(self, data: DataSet, training: TrainingConfig, seed: int) -> None:
        self._training = training
        self._data = data
        self._goal = Goal.of(data)
        self._device = torch.device("cpu")
        self._learnt, self._measured = fitness_samples(data, training, seed, self._device)

    def variants(self, family: Family[Any], phenotype: Any) -> Variants:
        """Modules compute all candidates at once, where their family lets them."""
        module = isinstance(family.build(phenotype), nn.Module)
        return Stacked(family, phenotype) if module else Rebuilt(family, phenotype)

    def worths(self, rng: np.random.Generator) -> Iterator[Batch]:
        """Minus the loss on one batch after another."""
        while True:
            for chosen in draw_batches(len(self._learnt), self._training, rng):
                yield Batch(self._goal, *self._learnt.batch(chosen))

    def fitness(self, model: Any, pace: Callable[[], None]) -> tuple[float, Sums]:
        """The worth of the answers on the samples that fitness is measured on; nothing is added up."""
        outputs = self._outputs(model, self._measured, pace)
        return self._goal.fitness(self._training.fitness, outputs, self._measured.labels.numpy()), {}

    def tested(self, model: Any) -> float | None:
        """The usual figure on the test set, where there is one that fitness was not measured on."""
        if self._training.fitness_on == "test" or not len(self._data.y_test):
            return None
        samples = split(self._data, "test", self._device)
        outputs = self._outputs(model, samples, lambda: None)
        return self._goal.fitness(USUAL[self._goal.task], outputs, samples.labels.numpy())

    def _outputs(self, model: Any, samples: Samples, pace: Callable[[], None]) -> Values:
        found = []
        with fixed_arithmetic(self._device):
            for x in samples.chunks(_CHUNK):
                pace()
                found.append(_logits(model, x))
        return torch.cat(found).numpy()


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What models are worth on one batch: minus their loss."""

    goal: Goal
    x: Tensor
    labels: Tensor

    def __call__(self, model: Any) -> float:
        """Of one model."""
        with fixed_arithmetic(self.x.device):
            return -float(batch_loss(self.goal.task, _logits(model, self.x), self.labels))

    def of_many(self, logits: Callable[[Tensor], Tensor]) -> list[float]:
        """Of many models that compute at once: a function from inputs to [models, samples, outputs]."""
        with fixed_arithmetic(self.x.device), torch.no_grad():
            return [-float(batch_loss(self.goal.task, of_one, self.labels)) for of_one in logits(self.x)]


def _logits(model: Any, x: Tensor) -> Tensor:
    if not isinstance(model, nn.Module):
        return torch.as_tensor(np.asarray(model(x.numpy())), dtype=torch.float32)
    model.eval()
    with torch.inference_mode():
        outputs: Tensor = model(x)
        return outputs
