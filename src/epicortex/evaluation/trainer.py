"""How torch does the work of the evaluator `backprop`: the reference for every other arithmetic.

Structure is never touched here, only weights. What a job consists of is in `training`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.evaluation import scoring
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.checks import find_device
from epicortex.evaluation.evaluator import Pace
from epicortex.evaluation.fitness import FitnessFunction, Values
from epicortex.evaluation.goals import Goal
from epicortex.evaluation.groups import ParameterGroups
from epicortex.evaluation.losses import batch_loss, sample_losses
from epicortex.evaluation.optimisers import OptimiserFactory, find_optimiser, needs_closure
from epicortex.evaluation.samples import class_weights
from epicortex.evaluation.tensors import fitness_samples
from epicortex.evaluation.training import ELEMENTWISE, Batch, Model, View, attempt, recipe
from epicortex.families.family import Family, HasAverages, HasMemory, Shape


class Trainer:
    """Trains and scores networks on one data set by torch; prepared once, used for any number of jobs."""

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
        self.family = family
        self.training = training
        self.fitness = fitness
        self.goal = Goal.of(data)
        self.classes = len(data.classes)
        self.device = find_device(training.device)
        self.accelerated = self.device.type != "cpu" if accelerated is None else accelerated
        self.optimiser = optimiser or find_optimiser(training.optimiser)
        self.elementwise = optimiser is None and training.optimiser in ELEMENTWISE
        self.learnt, self.measured = fitness_samples(data, training, seed, self.device)
        self.samples = len(self.learnt)
        self.spatial = tuple(self.learnt.x.shape[2:])
        self.scaling = data.scaling
        self.labels, self.taught = (part.labels.cpu().numpy() for part in (self.measured, self.learnt))
        self.class_weights: Tensor | None = None
        if training.class_weights == "balanced":
            weights = class_weights(self.taught, len(data.classes))
            self.class_weights = torch.from_numpy(weights).to(self.device)

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
        arithmetic = fixed_arithmetic(self.device)
        return attempt(self, job, heartbeat=heartbeat, should_stop=should_stop, arithmetic=arithmetic)

    def model(self, job: Job) -> Model:
        """The network of a job as a module."""
        return _TorchModel(self, job)


class _TorchModel:
    """A network that torch trains."""

    def __init__(self, shop: Trainer, job: Job) -> None:
        self._shop, self._job = shop, job
        family = shop.family
        self._network = scoring.build(family, job.phenotype, shop.device, accelerated=shop.accelerated)
        self._size = scoring.batch_size(family.outline(family.encode(job.phenotype)[0]))
        self._average: dict[str, Tensor] | None = None
        self._kept: Any = None

    def begin(self) -> None:
        shop, phenotype = self._shop, self._job.phenotype
        training, factors = shop.training, recipe(shop.family, phenotype)
        self._groups = ParameterGroups(
            self._network, flat=shop.elementwise, exempt=training.decay == "weights"
        )
        self._optimiser = shop.optimiser(self._groups.parameters(), **training.optimiser_arguments)
        suited = shop.goal.rate(training.optimiser)
        _scale(self._optimiser, "lr", self._job.rate * factors.get("rate", 1.0) * suited)
        _scale(self._optimiser, "matrix_rate", 1 / suited)
        for decay in ("weight_decay", "matrix_decay"):
            _scale(self._optimiser, decay, factors.get("decay", 1.0))
        self._rates = [group.get("lr") for group in self._optimiser.param_groups]
        self._step = _closure_step if needs_closure(self._optimiser) else _plain_step
        if self._keeper:
            self._groups.remind(self._optimiser, self._keeper.memory(phenotype, self._network))
        self._network.train()

    @property
    def _keeper(self) -> HasMemory[Any] | None:
        """The family, where its genes hold what the optimiser remembers."""
        family, inherits = self._shop.family, self._shop.training.optimiser_state == "inherited"
        return family if inherits and isinstance(family, HasMemory) else None

    def step(self, batch: Batch, rate: float) -> float:
        if self._job.course is not None:
            for group, usual in zip(self._optimiser.param_groups, self._rates, strict=True):
                if usual is not None:
                    group["lr"] = usual * rate
        x, y = self._shop.learnt.batch(
            batch.rows, moves=batch.moves, flips=batch.flips, augment=batch.augment
        )
        return self._step(self._optimiser, partial(self._loss, _smaller(x, batch.size), y))

    def average(self, weight: float) -> None:
        now = {name: value for name, value in self._network.state_dict().items() if value.is_floating_point()}
        if self._average is None:
            self._average = {name: value.clone() for name, value in now.items()}
        for name, value in now.items():
            self._average[name].lerp_(value, weight)

    def end(self) -> None:
        family, phenotype = self._shop.family, self._job.phenotype
        self._network.eval()
        if self._keeper:
            memory = self._groups.memory(self._optimiser)
            self._kept = self._keeper.remembered(phenotype, self._network, memory)
        else:
            self._kept = family.learned(phenotype, self._network)
        if self._average is not None and isinstance(family, HasAverages):
            self._network.load_state_dict(self._average, strict=False)
            self._kept = family.with_average(self._kept, family.learned(phenotype, self._network))

    def answers(self, view: View, pace: Pace) -> Values:
        samples = self._shop.measured
        count = len(samples) if view.most is None else min(view.most, len(samples))
        chunks = (
            _smaller(x.flip(-1) if view.mirrored else x, view.size)
            for x in samples.chunks(self._size, count, view.augment)
        )
        return scoring.outputs(self._network, chunks, count, self._shop.classes, pace).numpy()

    def losses(self, answers: Values, labels: Values) -> NDArray[np.float32]:
        task, smoothing = self._shop.goal.task, self._shop.training.smoothing(len(self._shop.spatial))
        found = sample_losses(task, torch.from_numpy(answers), torch.from_numpy(labels), smoothing=smoothing)
        return np.asarray(found.numpy(), np.float32)

    def phenotype(self) -> Any:
        return self._kept

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        shop = self._shop
        weight, smoothing = shop.class_weights, shop.training.smoothing(len(shop.spatial))
        return batch_loss(shop.goal.task, self._network(x), y, weight=weight, smoothing=smoothing)


def _smaller(images: Tensor, size: Shape | None) -> Tensor:
    """Images [samples, channels, height, width] averaged down to a size."""
    if size is None:
        return images
    height, width = size
    return functional.adaptive_avg_pool2d(images, (height, width))


def _scale(optimiser: torch.optim.Optimizer, name: str, factor: float) -> None:
    if factor != 1.0:
        for group in optimiser.param_groups:
            if name in group:
                group[name] *= factor


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
