"""The evaluator `backprop` on native arithmetic: the same jobs as `backprop.Trainer`, not by torch.

Which samples a network sees, and how they are moved, is drawn exactly as there. The weights come out slightly
different, since sums are made in another order; they are the same bits on every CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from epicortex import native, randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.evaluator import NetworkFailed, Pace, Stopped, reason
from epicortex.evaluation.fitness import FitnessFunction
from epicortex.evaluation.flat import ELEMENTWISE
from epicortex.evaluation.optimisers import OptimiserFactory, find_optimiser
from epicortex.evaluation.samples import (
    MOST_SHIFT,
    Samples,
    class_weights,
    draw_batches,
    draw_flips,
    draw_moves,
    fitness_samples,
)
from epicortex.evaluation.scoring import Measured, measured
from epicortex.families.family import Compilable, Family, HasRecipe, Problem

#: How many samples are scored between two signs of life; it alters no bit.
_SCORED: Final = 2048
_OPTIMISERS: Final[Mapping[str, Callable[..., native.Optimiser]]] = {
    "SGD": native.SGD,
    "Adadelta": native.Adadelta,
    "Adam": native.Adam,
    "AdamW": native.AdamW,
}
#: What each of these takes; other arguments (amsgrad, maximize, …) are left to torch's own.
_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "SGD": frozenset({"lr", "momentum", "dampening", "weight_decay", "nesterov"}),
    "Adadelta": frozenset({"lr", "rho", "eps", "weight_decay"}),
    "Adam": frozenset({"lr", "betas", "eps", "weight_decay"}),
    "AdamW": frozenset({"lr", "betas", "eps", "weight_decay"}),
}


def why_torch(
    training: TrainingConfig,
    family: Family[Any],
    problem: Problem,
    data: DataSet | None,
    own_optimiser: OptimiserFactory | None,
) -> str | None:
    """Why a run cannot train on native arithmetic; None where it can."""
    dtype = None if data is None else data.x_train.dtype
    dimensions = len(problem.input_shape) - 1
    special = training.decay == "weights" or training.optimiser_state == "inherited"
    alone = own_optimiser is not None or training.optimiser not in ELEMENTWISE
    reasons = (
        (not native.available(), native.why_not()),
        (not isinstance(family, Compilable), f"the family {family.name} has no native form"),
        (data is None, "there is no data set"),
        (dimensions > 2, f"{dimensions} spatial dimensions are more than 2"),
        (dtype not in (np.uint8, np.float32), f"values of type {dtype} are neither uint8 nor float32"),
        (training.device != "cpu", f"training.device is {training.device}"),
        (alone, f"the optimiser {training.optimiser} does not work on one vector of parameters"),
        (special and not is_ours(training), f"{training.optimiser} is torch's own, and treats weights alike"),
    )
    return next((reason for holds, reason in reasons if holds), None)


class NativeTrainer:
    """Trains and scores networks on one data set; prepared once, used for any number of jobs."""

    def __init__(
        self,
        data: DataSet,
        family: Any,
        training: TrainingConfig,
        *,
        seed: int,
        fitness: FitnessFunction | None = None,
    ) -> None:
        if not native.available():
            raise ConfigError(
                f"this run trains on native arithmetic, which is not there ({native.why_not()}); install "
                "epicortex where there is a C++ compiler"
            )
        self._family = family
        self._training = training
        self._fitness = fitness
        self._scaling = native.Scaling(data.scaling.divisor, data.scaling.mean, data.scaling.std)
        learnt, measured = fitness_samples(data, training, seed, torch.device("cpu"))
        self._learnt, self._measured = _Rows(learnt), _Rows(measured)
        self._labels = measured.labels.cpu()
        weights = None
        if training.class_weights == "balanced":
            weights = class_weights(learnt.labels, len(data.classes)).tolist()
        self._loss = native.CrossEntropy(training.label_smoothing, weights)

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
            return self._run(job, pace)
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=reason(error))

    def _run(self, job: Job, pace: Pace) -> Outcome:
        family = self._family
        tensors, state = family.tensors(job.phenotype)
        program = native.Program(self._learnt.x.shape[1:], family.operations(job.phenotype), self._loss)
        network = native.Network(program, program.flatten(tensors), None if state is None else state.copy())
        start = time.perf_counter()
        before = self._measure(network, pace) if job.newborn or not job.train else None
        scored = time.perf_counter()
        if not job.train:
            assert before is not None
            return Outcome(
                job.network,
                job.generation,
                job.phenotype,
                before.fitness,
                before.fitness if job.newborn else None,
                before.measures,
                before.losses,
                score_seconds=scored - start,
            )
        samples, phenotype = self._train(network, job, pace)
        trained = time.perf_counter()
        after = self._measure(network, pace)
        return Outcome(
            job.network,
            job.generation,
            phenotype,
            after.fitness,
            before.fitness if before else None,
            after.measures,
            after.losses,
            samples=samples,
            train_seconds=trained - scored,
            score_seconds=scored - start + time.perf_counter() - trained,
        )

    def _train(self, network: native.Network, job: Job, pace: Pace) -> tuple[int, Any]:
        """Train on the portion drawn for this generation: how many samples, and what the network became."""
        family, phenotype, program = self._family, job.phenotype, network.program
        factors = family.recipe(phenotype) if isinstance(family, HasRecipe) else {}
        stepper = _Stepper(
            network, self._training, job.rate * factors.get("rate", 1.0), factors.get("decay", 1.0)
        )
        inherits = self._training.optimiser_state == "inherited"
        held = family.momentum(phenotype) if inherits else None
        if held is not None:
            stepper.remind(program.flatten(held))
        seen = self._steps(stepper, job, factors.get("augmentation", 1.0), pace)
        learned = _tensors(program, network.parameters)
        state = network.state if program.state_size else None
        if inherits:
            momentum = _tensors(program, stepper.memory())
            return seen, family.with_tensors(phenotype, learned, state, momentum)
        return seen, family.with_tensors(phenotype, learned, state)

    def _steps(self, stepper: _Stepper, job: Job, augmentation: float, pace: Pace) -> int:
        """All steps of a generation; how many samples that was."""
        training, spatial = self._training, self._learnt.x.shape[2:]
        rng, shifts, flips = (
            randomness.generator(job.seed, purpose, generation=job.generation, network=job.network)
            for purpose in ("training", "shifts", "flips")
        )
        shift = min(MOST_SHIFT, training.shift * augmentation)
        seen = 0
        for number, chosen in enumerate(draw_batches(len(self._learnt), training, rng), 1):
            pace()
            rows = self._learnt.rows[chosen]
            loss = stepper.step(
                self._learnt.x,
                rows,
                self._learnt.y[rows],
                scaling=self._scaling,
                moves=draw_moves(len(rows), spatial, shift, shifts) if shift and spatial else None,
                flips=draw_flips(len(rows), flips) if training.flip and len(spatial) == 2 else None,
            )
            if not math.isfinite(loss):
                raise NetworkFailed(f"the loss became {loss} in training step {number}")
            seen += len(chosen)
        return seen

    def _measure(self, network: native.Network, pace: Pace) -> Measured:
        """How the network does as it is now."""
        rows, parts = self._measured.rows, []
        for start in range(0, len(rows), _SCORED):
            pace()
            part = rows[start : start + _SCORED]
            parts.append(network.score(self._measured.x, part, scaling=self._scaling))
        logits = torch.from_numpy(np.concatenate(parts))
        if not bool(torch.isfinite(logits).all()):
            raise NetworkFailed("its outputs are not finite (NaN or infinity)")
        return measured(logits, self._labels, self._training, self._fitness)


class _Rows:
    """Samples as arrays: all of them, and which rows are meant."""

    def __init__(self, samples: Samples) -> None:
        # No copy, unless somebody handed over a view, such as every fourth sample.
        self.x: NDArray[Any] = np.ascontiguousarray(samples.x.numpy())
        self.y: NDArray[np.int64] = samples.y.numpy().astype(np.int64)
        index = samples.index
        self.rows: NDArray[np.int64] = np.arange(len(self.y)) if index is None else index.numpy()

    def __len__(self) -> int:
        return len(self.rows)


class _Stepper:
    """Training steps by the configured optimiser: ours, or torch's own on the same vector."""

    def __init__(self, network: native.Network, training: TrainingConfig, rate: float, decay: float) -> None:
        self._network = network
        self._ours: native.Optimiser | None = None
        self._theirs: torch.optim.Optimizer | None = None
        name, arguments = training.optimiser, dict(training.optimiser_arguments)
        if is_ours(training):
            self._ours = _OPTIMISERS[name](**arguments)
            self._ours.lr *= rate
            self._ours.weight_decay *= decay
            if training.decay == "weights":
                self._ours.decayed = network.program.weight_mask()
            return
        parameter = torch.nn.Parameter(torch.from_numpy(network.parameters))
        parameter.grad = torch.from_numpy(network.gradient)
        self._theirs = find_optimiser(name)([parameter], **arguments)
        for group in self._theirs.param_groups:
            group["lr"] *= rate
            if "weight_decay" in group:
                group["weight_decay"] *= decay

    def step(self, *batch: Any, **more: Any) -> float:
        """The loss before the step."""
        loss = self._network.step(*batch, **more, optimiser=self._ours)
        if self._theirs is not None:
            self._theirs.step()
        return loss

    def remind(self, momentum: NDArray[np.float32]) -> None:
        """Go on with a momentum of before."""
        assert self._ours is not None
        self._ours.memory, self._ours.steps = [momentum], 1

    def memory(self) -> NDArray[np.float32]:
        """The momentum now."""
        assert self._ours is not None
        return self._ours.memory[0]


def is_ours(training: TrainingConfig) -> bool:
    """Whether the optimiser runs natively, with all arguments that it is given."""
    name = training.optimiser
    return name in _OPTIMISERS and set(training.optimiser_arguments) <= _ARGUMENTS[name]


def _tensors(program: native.Program, vector: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return [array.astype(np.float32, copy=False) for array in program.unflatten(vector)]
