"""What networks learn, by task: what they are shown as right, how far off an answer is, what it is worth.

Classes are learnt by softmax and cross-entropy, numbers by squared error in standard deviations of the
training part, sets of labels by sigmoid and cross-entropy. The native arithmetic has the same losses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from epicortex import native
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.errors import ConfigError
from epicortex.evaluation.fitness import BUILT_IN, FitnessFunction
from epicortex.measures import MEASURES, TaskKind

#: How much smaller the steps of SGD are for squared error than for cross-entropy.
_STEEP: Final = 0.05


@dataclass(frozen=True, slots=True)
class Goal:
    """What is predicted of a sample; by default one class."""

    task: TaskKind = "classes"
    targets: Scaling | None = None
    """How numbers become what is learnt."""

    @classmethod
    def of(cls, data: DataSet) -> Goal:
        """That of a data set."""
        return cls(data.task, data.targets)

    def taught(self, y: np.ndarray) -> np.ndarray:
        """Labels as networks learn them: classes as they are, anything else float32 [samples, outputs]."""
        if self.targets is not None:
            return self.targets.apply(y)
        return y if self.task == "classes" else y.astype(np.float32)

    def loss(
        self, outputs: Tensor, y: Tensor, *, weight: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """The mean loss of a batch; weights and smoothing are for classes alone."""
        if self.task == "classes":
            return functional.cross_entropy(outputs, y, weight=weight, label_smoothing=smoothing)
        if self.task == "regression":
            return functional.mse_loss(outputs, y)
        return functional.binary_cross_entropy_with_logits(outputs, y)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample; of several outputs the mean."""
        if self.task == "classes":
            return functional.cross_entropy(outputs, y, reduction="none")
        if self.task == "regression":
            return functional.mse_loss(outputs, y, reduction="none").mean(1)
        return functional.binary_cross_entropy_with_logits(outputs, y, reduction="none").mean(1)

    def native(self, smoothing: float, weights: list[float] | None) -> native.Loss:
        """The loss of native arithmetic."""
        if self.task == "classes":
            return native.CrossEntropy(smoothing, weights)
        return native.SquaredError() if self.task == "regression" else native.SigmoidCrossEntropy()

    def rate(self, optimiser: str) -> float:
        """What the learning rate is multiplied by, so that one that is set for classes suits.

        The steps of SGD are as large as the gradient, and squared error is steeper than cross-entropy; other
        optimisers do not mind.
        """
        return _STEEP if optimiser == "SGD" and self.task == "regression" else 1.0

    def fitness(self, name: str, outputs: Tensor, y: Tensor, own: FitnessFunction | None = None) -> float:
        """What outputs are worth; a function of a person's own gets numbers in the unit of the data."""
        if own is not None:
            return float(own(self.answers(outputs), self.answers(y).clone()))
        if self.task == "classes":
            return BUILT_IN[name](outputs.argmax(1), y)
        if self.task == "multilabel":
            return BUILT_IN[name]((outputs > 0).to(torch.int64), y.to(torch.int64))
        return BUILT_IN[name](self.answers(outputs), self.answers(y))

    def answers(self, outputs: Tensor) -> Tensor:
        """Outputs in the unit of the data; those of classes and labels stay logits."""
        if self.targets is None:
            return outputs
        mean, std = (
            torch.tensor(values, dtype=torch.float64) for values in (self.targets.mean, self.targets.std)
        )
        return outputs.double() * std + mean


def check(training: TrainingConfig, task: TaskKind, *, own: bool) -> None:
    """Refuse settings that make no sense for a task."""
    name = training.fitness
    if not own and name in MEASURES and MEASURES[name].task != task:
        right = ", ".join(one for one, measure in MEASURES.items() if measure.task == task)
        raise ConfigError(f"training.fitness is {name}, but the data is for {task}: it must be {right}")
    if task != "classes" and training.class_weights != "none":
        raise ConfigError(f"training.class_weights: there are no classes to weigh; the data is for {task}")
    if task != "classes" and training.unflipped:
        raise ConfigError(f"training.unflipped: there are no classes to spare; the data is for {task}")
