"""The evaluator `backprop`: one network through one generation: scored while newborn, trained, scored.

Structure is never touched here, only weights. What is drawn, and from which samples, is in `samples`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from epicortex import randomness
from epicortex.config import Config, TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation import scoring
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.checks import check_training, find_device
from epicortex.evaluation.evaluator import Evaluator, NetworkFailed, Pace, Stopped, reason
from epicortex.evaluation.fitness import FitnessFunction
from epicortex.evaluation.flat import ELEMENTWISE
from epicortex.evaluation.groups import ParameterGroups
from epicortex.evaluation.optimisers import OptimiserFactory, find_optimiser, needs_closure
from epicortex.evaluation.samples import MOST_SHIFT, class_weights, draw_batches, fitness_samples
from epicortex.evaluation.scoring import Measured
from epicortex.families.family import Family, HasMemory, HasRecipe


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
        if data is None:
            raise ConfigError("evaluator: backprop needs a data set to train on")
        own = {self.training.fitness: self.fitness} if self.fitness else None
        check_training(self.training, data=data, fitness=own, optimiser=self.optimiser)
        if self.training.optimiser_state == "inherited":
            _check_memory(self.family, self.training.optimiser, own=self.optimiser is not None)

    def open(self, data: DataSet | None) -> Evaluator:
        """A trainer over the data set, on the arithmetic that the run has settled on."""
        if data is None:
            raise ConfigError("evaluator: backprop needs a data set to train on")
        if self.training.backend == "native":
            from epicortex.evaluation.compiled import NativeTrainer

            return NativeTrainer(data, self.family, self.training, seed=self.seed, fitness=self.fitness)
        return Trainer(
            data,
            self.family,
            self.training,
            seed=self.seed,
            fitness=self.fitness,
            optimiser=self.optimiser,
        )

    def test(self, phenotype: Any, data: DataSet | None) -> float | None:
        """The accuracy on the test set, where there is one that fitness was not measured on."""
        if data is None or self.training.fitness_on == "test" or not len(data.y_test):
            return None
        return scoring.score(phenotype, self.family, data, "test").accuracy


class Trainer:
    """Trains and scores networks on one data set; prepared once, used for any number of jobs."""

    def __init__(
        self,
        data: DataSet,
        family: Family[Any],
        training: TrainingConfig,
        *,
        seed: int,
        fitness: FitnessFunction | None = None,
        optimiser: OptimiserFactory | None = None,
        accelerated: bool | None = None,
    ) -> None:
        """`accelerated`: compute as suits a graphics processor; by default where there is one."""
        self._classes = len(data.classes)
        self._family = family
        self._training = training
        self._device = find_device(training.device)
        self._accelerated = self._device.type != "cpu" if accelerated is None else accelerated
        self._fitness = fitness
        self._optimiser = optimiser or find_optimiser(training.optimiser)
        self._elementwise = optimiser is None and training.optimiser in ELEMENTWISE
        self._learnt, self._measured = fitness_samples(data, training, seed, self._device)
        self._labels = self._measured.labels.cpu()
        self._class_weights = (
            class_weights(self._learnt.labels, len(data.classes))
            if training.class_weights == "balanced"
            else None
        )

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Train and score one network. `heartbeat` is called between batches; so is `should_stop`,
        which breaks off with `Stopped`.
        """
        pace = Pace(heartbeat, should_stop, self._training.time_limit)
        try:
            with fixed_arithmetic(self._device):
                return self._run(job, pace)
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))

    def _run(self, job: Job, pace: Pace) -> Outcome:
        network = scoring.build(self._family, job.phenotype, self._device, accelerated=self._accelerated)
        size = scoring.batch_size(self._family.outline(self._family.encode(job.phenotype)[0]))
        start = time.perf_counter()
        before = self._measure(network, size, pace) if job.newborn or not job.train else None
        scored = time.perf_counter()
        score_seconds = scored - start
        if not job.train:
            assert before is not None
            newborn = before.fitness if job.newborn else None
            return Outcome(
                job.network,
                job.generation,
                job.phenotype,
                before.fitness,
                newborn,
                before.measures,
                before.losses,
                score_seconds=score_seconds,
            )
        samples, phenotype = self._train(network, job, pace)
        trained = time.perf_counter()
        measured = self._measure(network, size, pace)
        return Outcome(
            job.network,
            job.generation,
            phenotype,
            measured.fitness,
            before.fitness if before else None,
            measured.measures,
            measured.losses,
            samples=samples,
            train_seconds=trained - scored,
            score_seconds=score_seconds + time.perf_counter() - trained,
        )

    def _train(self, network: nn.Module, job: Job, pace: Pace) -> tuple[int, Any]:
        """Train on the portion drawn for this generation: how many samples, and what the network became."""
        family, training, phenotype = self._family, self._training, job.phenotype
        factors = family.recipe(phenotype) if isinstance(family, HasRecipe) else {}
        groups = ParameterGroups(network, flat=self._elementwise, exempt=training.decay == "weights")
        optimiser = self._optimiser(groups.parameters(), **training.optimiser_arguments)
        _scale(optimiser, "lr", job.rate * factors.get("rate", 1.0))
        _scale(optimiser, "weight_decay", factors.get("decay", 1.0))
        keeper = family if training.optimiser_state == "inherited" and isinstance(family, HasMemory) else None
        if keeper:
            groups.remind(optimiser, keeper.memory(phenotype, network))
        network.train()
        seen = self._steps(network, optimiser, job, factors.get("augmentation", 1.0), pace)
        network.eval()
        if keeper:
            return seen, keeper.remembered(phenotype, network, groups.memory(optimiser))
        return seen, family.learned(phenotype, network)

    def _steps(
        self, network: nn.Module, optimiser: torch.optim.Optimizer, job: Job, augmentation: float, pace: Pace
    ) -> int:
        """All steps of a generation; how many samples that was."""
        training = self._training
        step = _closure_step if needs_closure(optimiser) else _plain_step
        rng, shifts, flips = (
            randomness.generator(job.seed, purpose, generation=job.generation, network=job.network)
            for purpose in ("training", "shifts", "flips")
        )
        shift = min(MOST_SHIFT, training.shift * augmentation)
        seen = 0
        for number, chosen in enumerate(draw_batches(len(self._learnt), training, rng), 1):
            pace()
            rows = torch.from_numpy(chosen).to(self._device)
            x, y = self._learnt.batch(rows, shift=shift, rng=shifts, flips=flips if training.flip else None)
            loss = step(optimiser, partial(self._loss, network, x, y))
            if not math.isfinite(loss):
                raise NetworkFailed(f"the loss became {loss} in training step {number}")
            seen += len(chosen)
        return seen

    def _loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        smoothing = self._training.label_smoothing
        return functional.cross_entropy(network(x), y, weight=self._class_weights, label_smoothing=smoothing)

    def _measure(self, network: nn.Module, size: int, pace: Pace) -> Measured:
        """How the network does as it is now."""
        samples = self._measured
        logits = scoring.outputs(network, samples.chunks(size), len(samples), self._classes, pace)
        return scoring.measured(logits, self._labels, self._training, self._fitness)


def _scale(optimiser: torch.optim.Optimizer, name: str, factor: float) -> None:
    if factor != 1.0:
        for group in optimiser.param_groups:
            if name in group:
                group[name] *= factor


def _check_memory(family: Family[Any], optimiser: str, *, own: bool) -> None:
    """Refuse an optimiser whose memory the family's genes cannot hold."""
    held = family.remembers if isinstance(family, HasMemory) else ()
    if own or optimiser not in held:
        what = f"only of {', '.join(held)}" if held else "of no optimiser"
        raise ConfigError(
            f"training.optimiser_state: genes of the family {family.name} hold the memory {what}; "
            "it must be fresh"
        )


def _plain_step(optimiser: torch.optim.Optimizer, compute: Callable[[], Tensor]) -> float:
    loss = compute()
    optimiser.zero_grad(set_to_none=False)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.item()


def _closure_step(optimiser: torch.optim.Optimizer, compute: Callable[[], Tensor]) -> float:
    def closure() -> float:
        optimiser.zero_grad(set_to_none=False)
        loss = compute()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    return float(optimiser.step(closure))
