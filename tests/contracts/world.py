"""A small world for engines: a data set learnt in a moment, networks, and what processes there are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from epicortex.config import Config, TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import WorkerSetup
from epicortex.evaluation.backprop import Backprop
from epicortex.evaluation.fitness import FitnessFunction
from epicortex.evaluation.optimisers import OptimiserFactory
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.layers import HiddenLayer
from epicortex.families.layered.phenotype import Phenotype

CLASSES = 3
SHAPE = (1, 8, 8)
FAMILY = LayeredFamily(Problem(SHAPE, CLASSES))
#: After how many seconds something hangs; far more than it takes, since machines have other things to do.
PATIENCE = 1200.0


def small_data(samples: int = 600, *, seed: int = 1) -> DataSet:
    """Bright stripes whose place tells the class, under noise; a third is the test part."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, samples).astype(np.int64)
    x = rng.integers(0, 120, (samples, *SHAPE)).astype(np.uint8)
    for label in range(CLASSES):
        x[y == label, :, 2 * label + 1, :] += 100
    test = samples // 3
    return DataSet(
        name="stripes",
        x_train=x[test:],
        y_train=y[test:],
        x_test=x[:test],
        y_test=y[:test],
        classes=tuple("abc"),
        scaling=Scaling(255.0, (0.4,), (0.3,)),
    )


def network(seed: int = 1, *hidden: HiddenLayer) -> Phenotype:
    """A network for the stripes; by default a small convolution with kernels of two shapes."""
    layers = hidden or (ConvLayer(((3, 3), (1, 3)), (1, 1)), FullLayer(5))
    return draw_phenotype(Genome(SHAPE, layers, CLASSES), rng=np.random.default_rng(seed))


def marked(seed: int = 1) -> Phenotype:
    """A network that a fitness function can tell by its huge outputs."""
    plain = network(seed)
    *below, top = plain.weights
    return Phenotype(plain.genome, (*below, top.replace(bias=top.bias + np.float32(1e6))))


def jobs(count: int, *, newborn: bool = False) -> list[Job]:
    """As many different jobs."""
    return [Job(number, 1, 1, network(number), newborn=newborn) for number in range(1, count + 1)]


def settings(**training: Any) -> Config:
    """A config for the stripes: quick training, two workers."""
    return Config(training=TrainingConfig(**{"portion": 0.5, "workers": 2, **training}))


def setup(
    config: Config,
    *,
    data: DataSet | None = None,
    fitness: FitnessFunction | None = None,
    optimiser: OptimiserFactory | None = None,
) -> WorkerSetup:
    """What workers need for the stripes."""
    return WorkerSetup(
        recipe=Backprop(FAMILY, config.training, 1, fitness, optimiser),
        family=FAMILY,
        data=data or small_data(),
    )


def results(futures: list[Future[Outcome]]) -> list[Outcome]:
    """The outcomes, in the order of the futures."""
    return [future.result(timeout=PATIENCE) for future in futures]


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same but for the clock."""
    if one.phenotype is None or other.phenotype is None:
        weights = one.phenotype is other.phenotype
    else:
        weights = one.phenotype.same_bits(other.phenotype)
    return weights and all(
        getattr(one, name) == getattr(other, name)
        for name in ("network", "generation", "fitness", "fitness_before", "failed", "samples")
    )


def until(condition: Callable[[], bool], seconds: float = PATIENCE, *, every: float = 0.02) -> bool:
    """Wait until something holds, with a look every so many seconds; False if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def state_of(pid: int) -> str | None:
    """A process's state letter (R, S, T, Z …), or None where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(parent: int | None = None) -> set[int]:
    """The child processes of one, or of this one, zombies too."""
    found: set[int] = set()
    try:
        for task in Path(f"/proc/{parent or os.getpid()}/task").iterdir():
            with suppress(OSError):  # a thread that has just ended
                found.update(map(int, (task / "children").read_text().split()))
    except OSError:
        pass  # the whole process has
    return found


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    mine = children(pid)
    return mine.union(*map(descendants, mine))


def segments() -> set[Path]:
    """All pieces of shared memory there are."""
    return set(Path("/dev/shm").iterdir())


def abandoned(before: set[Path]) -> set[Path]:
    """New pieces of shared memory that no process uses; other programs may have made some meanwhile."""
    used = ""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            used += (entry / "maps").read_text()
    ours = ("epicortex", "torch_", "psm_", "pym-", "sem.", "tmp")  # as we, torch and Python would call them
    return {path for path in segments() - before if path.name.startswith(ours) and str(path) not in used}
