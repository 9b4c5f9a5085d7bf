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
from epicortex.evaluation.evaluator import NetworkFailed, Pace, Stopped, finite, reason
from epicortex.evaluation.fitness import BUILT_IN, FitnessFunction
from epicortex.evaluation.flat import ELEMENTWISE
from epicortex.evaluation.optimisers import OptimiserFactory, find_optimiser, needs_closure
from epicortex.evaluation.samples import Samples, class_weights, draw_batches, draw_moves, fitness_samples
from epicortex.families.family import Compilable, Family, Problem

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
    alone = own_optimiser is not None or training.optimiser not in ELEMENTWISE
    reasons = (
        (not native.available(), native.why_not()),
        (not isinstance(family, Compilable), f"the family {family.name} has no native form"),
        (data is None, "there is no data set"),
        (dimensions > 2, f"{dimensions} spatial dimensions are more than 2"),
        (dtype not in (np.uint8, np.float32), f"values of type {dtype} are neither uint8 nor float32"),
        (training.device != "cpu", f"training.device is {training.device}"),
        (alone, f"the optimiser {training.optimiser} does not work on one vector of parameters"),
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
        self._loss = native.CrossEntropy(class_weights=weights)

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
            newborn = before if job.newborn else None
            return Outcome(
                job.network, job.generation, job.phenotype, before, newborn, score_seconds=scored - start
            )
        samples = self._train(network, job, pace)
        trained = time.perf_counter()
        fitness = self._measure(network, pace)
        learned = [array.astype(np.float32, copy=False) for array in program.unflatten(network.parameters)]
        return Outcome(
            job.network,
            job.generation,
            family.with_tensors(job.phenotype, learned, network.state if program.state_size else None),
            fitness,
            before,
            samples=samples,
            train_seconds=trained - scored,
            score_seconds=scored - start + time.perf_counter() - trained,
        )

    def _train(self, network: native.Network, job: Job, pace: Pace) -> int:
        """Train on the portion drawn for this network and generation; how many samples that was."""
        step = _stepper(network, self._training, job.rate)
        rng = randomness.generator(job.seed, "training", generation=job.generation, network=job.network)
        shifts = randomness.generator(job.seed, "shifts", generation=job.generation, network=job.network)
        seen, spatial, shift = 0, self._learnt.x.shape[2:], self._training.shift
        for number, chosen in enumerate(draw_batches(len(self._learnt), self._training, rng), 1):
            pace()
            rows = self._learnt.rows[chosen]
            moves = draw_moves(len(rows), spatial, shift, shifts) if shift and spatial else None
            loss = step(self._learnt.x, rows, self._learnt.y[rows], scaling=self._scaling, moves=moves)
            if not math.isfinite(loss):
                raise NetworkFailed(f"the loss became {loss} in training step {number}")
            seen += len(chosen)
        return seen

    def _measure(self, network: native.Network, pace: Pace) -> float:
        """The network's fitness as it is now."""
        rows = self._measured.rows
        parts = []
        for start in range(0, len(rows), _SCORED):
            pace()
            parts.append(
                network.score(self._measured.x, rows[start : start + _SCORED], scaling=self._scaling)
            )
        logits = torch.from_numpy(np.concatenate(parts))
        if not bool(torch.isfinite(logits).all()):
            raise NetworkFailed("its outputs are not finite (NaN or infinity)")
        if self._fitness is None:
            return BUILT_IN[self._training.fitness](logits.argmax(1), self._labels)
        return finite(float(self._fitness(logits, self._labels.clone())), self._training.fitness)


class _Rows:
    """Samples as arrays: all of them, and which rows are meant."""

    def __init__(self, samples: Samples) -> None:
        self.x: NDArray[Any] = samples.x.numpy()
        self.y: NDArray[np.int64] = samples.y.numpy().astype(np.int64)
        index = samples.index
        self.rows: NDArray[np.int64] = np.arange(len(self.y)) if index is None else index.numpy()

    def __len__(self) -> int:
        return len(self.rows)


def _stepper(network: native.Network, training: TrainingConfig, rate: float) -> Callable[..., float]:
    """One training step by the configured optimiser: natively where it is one of ours, else torch's own."""
    name, arguments = training.optimiser, dict(training.optimiser_arguments)
    if name in _OPTIMISERS and set(arguments) <= _ARGUMENTS[name]:
        ours = _OPTIMISERS[name](**arguments)
        ours.lr *= rate

        def native_step(*batch: Any, **more: Any) -> float:
            return network.step(*batch, **more, optimiser=ours)

        return native_step
    parameter = torch.nn.Parameter(torch.from_numpy(network.parameters))
    parameter.grad = torch.from_numpy(network.gradient)
    optimiser = find_optimiser(name)([parameter], **arguments)
    assert not needs_closure(optimiser)
    for group in optimiser.param_groups:
        group["lr"] *= rate

    def torch_step(*batch: Any, **more: Any) -> float:
        loss = network.step(*batch, **more)
        optimiser.step()
        return loss

    return torch_step
