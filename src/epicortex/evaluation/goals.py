"""What networks learn, by task: what they are shown as right, how far off an answer is, what it is worth.

Classes are learnt by softmax and cross-entropy, numbers by squared error in standard deviations of the
training part, sets of labels by sigmoid and cross-entropy. Each arithmetic has these losses: torch's are in
`losses`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from epicortex import native
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.errors import ConfigError
from epicortex.evaluation.fitness import BUILT_IN, FitnessFunction, Values
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

    def native(self, smoothing: float, weights: list[float] | None) -> native.Loss:
        """The loss of native arithmetic."""
        if self.task == "classes":
            return native.CrossEntropy(smoothing, weights)
        return native.SquaredError() if self.task == "regression" else native.SigmoidCrossEntropy()

    def rate(self, optimiser: str) -> float:
        """What the learning rate is multiplied by, so that one that is set for classes suits.

        The steps of SGD are as large as the gradient, and squared error is steeper than cross-entropy; other
        optimisers do not mind, nor do orthogonal steps.
        """
        steep = optimiser in ("SGD", "OrthogonalSGD") and self.task == "regression"
        return _STEEP if steep else 1.0

    def fitness(self, name: str, outputs: Values, y: Values, own: FitnessFunction | None = None) -> float:
        """What outputs are worth; a function of a person's own gets numbers in the unit of the data."""
        if own is not None:
            import torch  # theirs takes tensors, which are its own

            return float(own(*(torch.from_numpy(self.answers(one).copy()) for one in (outputs, y))))
        if self.task == "classes":
            return BUILT_IN[name](outputs.argmax(1), y)
        if self.task == "multilabel":
            return BUILT_IN[name]((outputs > 0).astype(np.int64), y.astype(np.int64))
        return BUILT_IN[name](self.answers(outputs), self.answers(y))

    def answers(self, outputs: Values) -> Values:
        """Outputs in the unit of the data; those of classes and labels stay logits."""
        if self.targets is None:
            return outputs
        return outputs * np.asarray(self.targets.std, np.float64) + np.asarray(self.targets.mean, np.float64)


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
