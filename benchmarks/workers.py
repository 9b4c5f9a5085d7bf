"""How well networks spread over workers, what the engine costs beside training, and the memory it takes.

Run it with `python -m benchmarks.workers`. The data is random, with the sizes of MNIST and CIFAR-10: what is
measured does not depend on what the pictures show. `--rounds` and `--networks` make it shorter or longer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path

import numpy as np

from benchmarks.measure import row, seconds
from epicortex.config import Config, TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Job
from epicortex.engines import Engine, WorkerSetup, create
from epicortex.engines.processes import ProcessEngine
from epicortex.evaluation.backprop import Backprop
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.layered.phenotype import Phenotype
from epicortex.run.schedule import Schedule

MNIST = ((1, 28, 28), 60_000, 10_000)
CIFAR10 = ((3, 32, 32), 50_000, 10_000)


def random_data(shape: tuple[int, ...], train: int, test: int, path: Path) -> DataSet:
    """Noise in a file, as large as the data set it stands for."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (train + test, *shape), dtype=np.uint8)
    y = rng.integers(0, 10, train + test)
    data = DataSet(
        "noise",
        x[:train],
        y[:train],
        x[train:],
        y[train:],
        tuple("0123456789"),
        Scaling(255.0, (0.5,) * shape[0], (0.5,) * shape[0]),
    )
    return data.save(path)


def networks(shape: tuple[int, ...], count: int) -> list[Phenotype]:
    """Networks as they come about after some generations: grown from the minimal one, 4 to 20 times."""
    rng = np.random.default_rng(1)
    family = LayeredFamily(Problem(shape, 10))
    grown = []
    for _ in range(count):
        phenotype = family.minimal(rng)
        for _ in range(rng.integers(4, 20)):
            phenotype = family.grow(phenotype, rng)
        grown.append(phenotype)
    return grown


def setup(data: DataSet) -> WorkerSetup:
    """What workers need to train on these data as the paper says."""
    family = LayeredFamily(Problem(data.input_shape, len(data.classes)))
    return WorkerSetup(recipe=Backprop(family, TrainingConfig(), 1), family=family, data=data)


def running(data: DataSet, workers: int) -> Engine:
    engine = create("processes", setup(data), Config(training=TrainingConfig(workers=workers)))
    small = networks(data.input_shape, workers)
    wait([engine.submit(Job(number, 1, 1, one, train=False)) for number, one in enumerate(small)])
    return engine


def train(engine: Engine, jobs: Sequence[Job]) -> float:
    """Have all jobs done; which part of the time the workers were training or scoring."""
    began, busy = time.perf_counter(), 0.0
    for future in [engine.submit(job) for job in jobs]:
        outcome = future.result()
        assert outcome.failed is None, outcome.failed
        busy += outcome.train_seconds + outcome.score_seconds
    return busy / (time.perf_counter() - began) / engine.workers


def throughput(data: DataSet, count: int, rounds: int) -> None:
    """Networks per second with one worker, with two, and in a loop without an engine, in turns."""
    jobs = [Job(number, 1, 1, one) for number, one in enumerate(networks(data.input_shape, count))]
    alone = setup(data)
    jobs = Schedule(alone.family).longest_first(jobs)
    evaluator = alone.evaluator()
    times: dict[str, list[float]] = {"loop": [], "one": [], "two": []}
    busy = []
    with running(data, 1) as one, running(data, 2) as two:
        for _ in range(rounds):
            times["loop"].append(seconds(lambda: [evaluator.run(job) for job in jobs]))
            times["one"].append(seconds(lambda: train(one, jobs)))
            times["two"].append(seconds(lambda: busy.append(train(two, jobs))))
    middle = {name: statistics.median(values) for name, values in times.items()}
    ratios = [a / b for a, b in zip(times["one"], times["two"], strict=True)]
    costs = [a / b for a, b in zip(times["one"], times["loop"], strict=True)]
    parameters = statistics.mean(job.phenotype.parameters for job in jobs)
    print(f"{count} networks of {parameters:,.0f} parameters on average, {rounds} rounds:")
    print(f"  one worker            {count / middle['one']:8.2f} networks/s")
    print(f"  two workers           {count / middle['two']:8.2f} networks/s")
    row("networks a second, two workers / one", f"{statistics.median(ratios):.3f} (best {max(ratios):.3f})")
    row("two workers are at work", f"{statistics.median(busy):.1%} of the time")
    row("one worker / our own loop without an engine", f"{statistics.median(costs):.3f}")


def memory(data: DataSet, count: int) -> None:
    """The proportional set size of this process and of its workers after some networks each."""
    jobs = [Job(number, 1, 1, one) for number, one in enumerate(networks(data.input_shape, count))]
    engine = running(data, 2)
    with engine:
        train(engine, jobs)
        assert isinstance(engine, ProcessEngine)
        sizes = [_proportional(pid) for pid in engine.pids]
    shape = " × ".join(map(str, data.input_shape))
    print(f"memory with {shape} pictures and two workers, after {count} networks:")
    row("memory of each worker", ", ".join(f"{size:.0f} MB" for size in sizes))
    row("memory with the main process", f"{sum(sizes) + _proportional('self'):.0f} MB")


def _proportional(process: int | str) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    (kilobytes,) = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return kilobytes / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mnist = random_data(*MNIST, Path(folder) / "mnist")
        throughput(mnist, options.networks, options.rounds)
        cifar10 = random_data(*CIFAR10, Path(folder) / "cifar10")
        memory(cifar10, options.networks)


if __name__ == "__main__":
    main()
