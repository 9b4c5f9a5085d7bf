"""The evaluator `backprop`: networks learn from a data set, on the arithmetic that the run has settled on.

Torch is imported only where it does the work: by `trainer`, and by checks before a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epicortex.config import Config, TrainingConfig
from epicortex.data import DataSet
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import Evaluator, finite
from epicortex.evaluation.figures import Verdict, counted, fit_temperature
from epicortex.evaluation.fitness import FitnessFunction, Values
from epicortex.evaluation.goals import Goal, check
from epicortex.evaluation.samples import Rows, fitness_rows, part_of
from epicortex.evaluation.tallies import labelled, regressed
from epicortex.families.family import Family, HasMemory
from epicortex.measures import USUAL

if TYPE_CHECKING:
    from epicortex.evaluation.optimisers import OptimiserFactory


@dataclass(frozen=True, slots=True, eq=False)
class Backprop:
    """Training by backpropagation on a data set, as workers are told about it."""

    family: Family[Any]
    training: TrainingConfig
    seed: int
    fitness: FitnessFunction | None = None
    """The user's own function that `training.fitness` names."""
    optimiser: OptimiserFactory | None = None
    """The user's own optimiser that `training.optimiser` names."""

    @classmethod
    def from_config(cls, config: Config, family: Family[Any], functions: Mapping[str, Any]) -> Self:
        """As the section `training` says."""
        return cls(
            family,
            config.training,
            config.evolution.seed,
            functions.get("fitness"),
            functions.get("optimiser"),
        )

    def check(self, data: DataSet | None) -> None:
        """Settings that could train no network are refused."""
        from epicortex.evaluation.checks import check_training

        if data is None:
            raise ConfigError(
                "evaluator: backprop needs a data set to train on; a task takes the evaluator episodes"
            )
        if self.training.backend != "native" and not _builds_modules(self.family):
            raise ConfigError(
                f"evaluator: backprop cannot train networks of the family {self.family.name}, whose weights "
                "evolve; take another family"
            )
        own = {self.training.fitness: self.fitness} if self.fitness else None
        check_training(self.training, data=data, fitness=own, optimiser=self.optimiser)
        check(self.training, data.task, own=self.fitness is not None)
        if self.training.optimiser_state == "inherited":
            _check_memory(self.family, self.training.optimiser, own=self.optimiser is not None)

    def open(self, data: DataSet | None) -> Evaluator:
        """A trainer over the data set, on the arithmetic that the run has settled on."""
        if data is None:
            raise ConfigError("evaluator: backprop needs a data set to train on")
        if self.training.backend == "native":
            from epicortex.evaluation.compiled import NativeTrainer

            return NativeTrainer(data, self.family, self.training, seed=self.seed, fitness=self.fitness)
        from epicortex.evaluation.trainer import Trainer

        return Trainer(
            data,
            self.family,
            self.training,
            seed=self.seed,
            fitness=self.fitness,
            optimiser=self.optimiser,
        )

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """The usual figure on the test set, where there is one that fitness was not measured on."""
        return self.judge(phenotype, data).figure

    def judge(self, phenotype: Any, data: DataSet | None) -> Verdict:
        """What the test set says, class by class, and the temperature that the validation set asks for."""
        if data is None or self.training.fitness_on == "test":
            return Verdict()
        goal, temperature = Goal.of(data), None
        if goal.task == "classes":
            _, held = fitness_rows(data, self.training, self.seed)
            learnt = data.x_val is not None and np.may_share_memory(data.x_val, data.x_train)
            if not learnt:
                temperature = fit_temperature(self._answers(phenotype, data, held), held.labels)
        if not len(data.y_test):
            return Verdict(temperature=temperature)
        tested = part_of(data, "test")
        answers = self._answers(phenotype, data, tested)
        fitness = None
        if self.training.fitness != USUAL[goal.task]:
            name = self.training.fitness
            fitness = finite(goal.fitness(name, answers, tested.labels, self.fitness), name)
        if goal.task == "regression":
            found = regressed(goal.answers(answers), data.y_test, data.y_train.mean(0), fitness)
            return Verdict(regression=found)
        if goal.task == "multilabel":
            return Verdict(labels=labelled(answers > 0, data.y_test, fitness))
        return Verdict(counted(answers.argmax(1), tested.labels, len(data.classes), fitness), temperature)

    def _answers(self, phenotype: Any, data: DataSet, rows: Rows) -> Values:
        """What a network says of samples, by the arithmetic of the run: that of native runs has the same
        bits on every CPU, and so have the figures of their models.
        """
        if self.training.backend == "native":
            from epicortex.evaluation.compiled import answers

            return answers(self.family, phenotype, rows, data.scaling)
        import torch

        from epicortex.evaluation import scoring
        from epicortex.evaluation.tensors import Samples

        samples = Samples.of(rows, data.scaling, torch.device("cpu"))
        return scoring.logits(phenotype, self.family, samples, len(data.classes)).numpy()


def _builds_modules(family: Family[Any]) -> bool:
    import torch

    return isinstance(family.build(family.minimal(np.random.default_rng(0))), torch.nn.Module)


def _check_memory(family: Family[Any], optimiser: str, *, own: bool) -> None:
    """Refuse an optimiser whose memory the family's genes cannot hold."""
    held = family.remembers if isinstance(family, HasMemory) else ()
    if own or optimiser not in held:
        what = f"only of {', '.join(held)}" if held else "of no optimiser"
        raise ConfigError(
            f"training.optimiser_state: genes of the family {family.name} hold the memory {what}; "
            "it must be fresh"
        )
