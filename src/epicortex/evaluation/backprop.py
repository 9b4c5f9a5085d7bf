"""One network through one generation: scored while newborn, trained, scored.

The same job gives the same bits in any process. A network that yields NaN, runs out of memory or time, or
raises, comes back as a failed outcome with its reason; it never ends a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import EpiCortexError
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.checks import find_device
from epicortex.evaluation.fitness import (
    BUILT_IN,
    FitnessFunction,
    accuracy,
    balanced_accuracy,
    confusion_matrix,
)
from epicortex.evaluation.flat import ELEMENTWISE, flattened
from epicortex.evaluation.optimisers import OptimiserFactory, find_optimiser, needs_closure
from epicortex.evaluation.samples import Samples, class_weights, draw_batches, fitness_samples, split
from epicortex.families.activations import Activations
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.irregular import IrregularConv
from epicortex.families.layered.network import Network
from epicortex.families.layered.phenotype import Phenotype

#: How many numbers the largest feature map of a scoring batch may hold: about what a cache does.
_SCORING_NUMBERS: Final = 2**19
_MEMORY_WORDS: Final = ("can't allocate memory", "out of memory", "bad_alloc", "could not create a memory")


class Stopped(EpiCortexError):
    """Training was broken off because its caller asked for it."""


class _NetworkFailed(Exception):
    """This network cannot go on, for the reason given."""


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How a network does on one part of the data."""

    accuracy: float
    balanced_accuracy: float
    confusion: NDArray[np.int64]
    """How often each class (row) was taken for which (column)."""
    predictions: NDArray[np.int64]


@dataclass(slots=True)
class _Pace:
    """What happens between two batches: a sign of life, a look at the clock, and at whether to stop."""

    heartbeat: Callable[[], None] | None = None
    should_stop: Callable[[], bool] | None = None
    time_limit: float | None = None
    began: float = field(default_factory=time.monotonic)

    def __call__(self) -> None:
        if self.heartbeat is not None:
            self.heartbeat()
        if self.should_stop is not None and self.should_stop():
            raise Stopped("training was stopped")
        if self.time_limit is not None and time.monotonic() - self.began > self.time_limit:
            raise _NetworkFailed(f"took longer than the limit of {self.time_limit:g} s")


class Trainer:
    """Trains and scores networks on one data set; prepared once, used for any number of jobs."""

    def __init__(
        self,
        data: DataSet,
        training: TrainingConfig,
        activations: Activations,
        *,
        seed: int,
        fitness: FitnessFunction | None = None,
        optimiser: OptimiserFactory | None = None,
        accelerated: bool | None = None,
    ) -> None:
        """`accelerated`: compute as suits a graphics processor; by default where there is one."""
        self._data = data
        self._training = training
        self._activations = activations
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
        pace = _Pace(heartbeat, should_stop, self._training.time_limit)
        try:
            with fixed_arithmetic(self._device):
                return self._run(job, pace)
        except Stopped:
            raise
        except Exception as error:
            return Outcome(job.network, job.generation, failed=_reason(error))

    def score(self, phenotype: Phenotype, split_name: str = "test") -> Score:
        """How a network does on a part of the data as stored: train, test or validation."""
        samples = split(self._data, split_name, self._device)
        with fixed_arithmetic(self._device):
            logits = self._logits(self._build(phenotype), samples, _Pace())
        predictions, labels = logits.argmax(1), samples.labels.cpu()
        confusion = confusion_matrix(predictions, labels, len(self._data.classes))
        return Score(
            accuracy(predictions, labels),
            balanced_accuracy(predictions, labels),
            confusion.numpy(),
            predictions.numpy(),
        )

    def _run(self, job: Job, pace: _Pace) -> Outcome:
        network = self._build(job.phenotype)
        start = time.perf_counter()
        before = self._measure(network, pace) if job.newborn or not job.train else None
        scored = time.perf_counter()
        score_seconds = scored - start
        if not job.train:
            newborn = before if job.newborn else None
            return Outcome(
                job.network, job.generation, job.phenotype, before, newborn, score_seconds=score_seconds
            )
        samples = self._train(network, job, pace)
        trained = time.perf_counter()
        fitness = self._measure(network, pace)
        return Outcome(
            job.network,
            job.generation,
            network.phenotype(),
            fitness,
            before,
            samples=samples,
            train_seconds=trained - scored,
            score_seconds=score_seconds + time.perf_counter() - trained,
        )

    def _build(self, phenotype: Phenotype) -> Network:
        network = Network(phenotype, self._activations).to(self._device)
        if self._accelerated:
            for layer in network.layers:
                if isinstance(layer, IrregularConv):
                    layer.divided = False
        for parameter in network.parameters():
            # the last bits of a matrix product can hang on where memory begins; torch's own is always aligned
            parameter.data = parameter.data.clone()
        return network

    def _train(self, network: nn.Module, job: Job, pace: _Pace) -> int:
        """Train on the portion drawn for this network and generation; how many samples that was."""
        parameters = [flattened(network)] if self._elementwise else list(network.parameters())
        optimiser = self._optimiser(parameters, **self._training.optimiser_arguments)
        if job.rate != 1.0:
            for group in optimiser.param_groups:
                group["lr"] *= job.rate
        step = _closure_step if needs_closure(optimiser) else _plain_step
        rng = randomness.generator(job.seed, "training", generation=job.generation, network=job.network)
        shifts = randomness.generator(job.seed, "shifts", generation=job.generation, network=job.network)
        seen = 0
        for number, chosen in enumerate(draw_batches(len(self._learnt), self._training, rng), 1):
            pace()
            rows = torch.from_numpy(chosen).to(self._device)
            x, y = self._learnt.batch(rows, shift=self._training.shift, rng=shifts)
            loss = step(optimiser, partial(self._loss, network, x, y))
            if not math.isfinite(loss):
                raise _NetworkFailed(f"the loss became {loss} in training step {number}")
            seen += len(chosen)
        return seen

    def _loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(network(x), y, weight=self._class_weights)

    def _measure(self, network: Network, pace: _Pace) -> float:
        """The network's fitness as it is now."""
        logits = self._logits(network, self._measured, pace)
        if self._fitness is None:
            return BUILT_IN[self._training.fitness](logits.argmax(1), self._labels)
        fitness = float(self._fitness(logits, self._labels.clone()))
        if not math.isfinite(fitness):
            raise _NetworkFailed(f"the fitness function {self._training.fitness} gave {fitness}")
        return fitness

    def _logits(self, network: Network, samples: Samples, pace: _Pace) -> Tensor:
        logits = torch.empty(len(samples), len(self._data.classes))
        place = 0
        with torch.inference_mode():
            for x in samples.chunks(scoring_batch(network.genome)):
                pace()
                logits[place : place + len(x)] = network(x)
                place += len(x)
            if not bool(torch.isfinite(logits).all()):
                raise _NetworkFailed("its outputs are not finite (NaN or infinity)")
        return logits


def scoring_batch(genome: Genome) -> int:
    """How many samples are scored at a time. It alters the last bits, so it follows from the genome alone.

    >>> scoring_batch(Genome((1, 28, 28), (), 10))
    640
    """
    largest = max(math.prod(shape) for shape in genome.shapes)
    return max(64, min(1024, _SCORING_NUMBERS // largest // 64 * 64))


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


def _reason(error: Exception) -> str:
    """Why a network failed, in one line without anything that differs between two equal runs."""
    if isinstance(error, _NetworkFailed):
        return str(error)
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(w in text for w in _MEMORY_WORDS):
        return "ran out of memory"
    return f"{type(error).__name__}: {text}"[:300]
