"""How far one main process goes: its costs for a network, a model made of them, and a simulation as a check.

`python -m benchmarks.scaling` takes the processor time of everything that the main process does for a network
of MNIST's size, says what a generation takes with so many workers and networks, and then runs real
generations (evolution, journal, checkpoint and all) on an engine whose workers only wait.
"""

from __future__ import annotations

import argparse
import pickle
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulated import SimulatedEngine, config_for, outcome
from epicortex.data import DataSet, Scaling
from epicortex.evolution import Evolution
from epicortex.jobs import Job
from epicortex.run import evolve
from epicortex.storage import checkpoint, lines
from epicortex.storage.atomic import LogMark
from epicortex.storage.journal import Heading, Journal
from epicortex.variation import LayeredFamily, Rules

#: Processor seconds of the library below an engine for a job, as `benchmarks.engines` has measured them.
ENGINE_COST = 0.0005


@dataclass(frozen=True)
class Costs:
    """Processor seconds of the main process for a network in a generation."""

    dispatch: float
    result: float
    journal: float
    evolution: float
    snapshot: float
    checkpoint: float
    engine: float
    job_bytes: float
    outcome_bytes: float

    @property
    def beside(self) -> float:
        """While workers train: sending, receiving, and writing the generation before."""
        return self.engine + self.dispatch + self.result + self.journal + self.checkpoint

    @property
    def between(self) -> float:
        """While workers wait."""
        return self.evolution + self.snapshot


@dataclass(frozen=True)
class Forecast:
    """What the model says of a generation."""

    training: float
    """Seconds if the main process cost nothing."""
    beside: float
    between: float

    @property
    def seconds(self) -> float:
        return max(self.training, self.beside) + self.between

    @property
    def efficiency(self) -> float:
        """Which part of their time workers train."""
        return self.training / self.seconds


def forecast(costs: Costs, *, networks: int, workers: int, seconds: float, longest: float) -> Forecast:
    """The model: workers share the training, one process does the rest."""
    training = max(networks * seconds / workers, longest)
    return Forecast(training, networks * costs.beside, networks * costs.between)


def measure(networks: int, shape: tuple[int, ...], engine_cost: float) -> Costs:
    """All costs, each the least of three."""
    config = config_for(networks, 5)
    evolution = Evolution(config, LayeredFamily(shape, 10, rules=Rules.from_config(config.evolution)))
    state = evolution.start()
    for _ in range(2):
        state = evolution.tell(state, [outcome(job) for job in evolution.ask(state)]).state
    jobs = evolution.ask(state)
    outcomes = [outcome(job) for job in jobs]
    sent = [pickle.dumps(job, protocol=5) for job in jobs]
    back = [pickle.dumps(one, protocol=5) for one in outcomes]
    step = evolution.tell(state, outcomes)
    snapshot = checkpoint.take(step.state)

    def cost(work: Callable[[], Any]) -> float:
        times = []
        for _ in range(3):
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
        return min(times) / len(jobs)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mark = LogMark(0, "")

        def journal() -> None:
            journal = Journal(folder / "a.journal", Heading("run", state.generation, "digest"))
            for one in outcomes:
                journal.append(one)
            journal.sync()
            journal.close()
            (folder / "a.journal").unlink()

        def write() -> None:
            lines.network_lines(step.evaluated)
            logs = {"history.jsonl": mark, "networks.jsonl": mark}
            checkpoint.write(folder, snapshot, run="run", logs=logs, keep=1)

        return Costs(
            dispatch=cost(lambda: [pickle.dumps(job, protocol=5) for job in jobs]),
            result=cost(lambda: [pickle.loads(one) for one in back]),
            journal=cost(journal),
            evolution=cost(lambda: (evolution.ask(state), evolution.tell(state, outcomes))),
            snapshot=cost(lambda: checkpoint.take(step.state)),
            checkpoint=cost(write),
            engine=engine_cost,
            job_bytes=statistics.mean(map(len, sent)),
            outcome_bytes=statistics.mean(map(len, back)),
        )


def durations(mean: float) -> Callable[[Job], float]:
    """A network's own time: from a third of the mean to five thirds."""

    def duration(job: Job) -> float:
        return mean * (1 / 3 + random.Random(job.network).random() * 4 / 3)

    return duration


def simulate(
    networks: int, workers: int, mean: float, shape: tuple[int, ...], *, cost: float, returns: bool
) -> float:
    """The median seconds of a generation of a whole run, the first two aside."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (20, *shape), dtype=np.uint8), rng.integers(0, 10, 20)
    channels = shape[0]
    scaling = Scaling(255.0, (0.5,) * channels, (0.5,) * channels)
    data = DataSet("noise", x, y, x, y, tuple("0123456789"), scaling)
    with tempfile.TemporaryDirectory() as folder:
        engine = SimulatedEngine(workers, durations(mean), cost=cost, returns=returns)
        with engine:
            result = evolve(data, config_for(networks, 5), out=Path(folder) / "run", engine=engine)
    return statistics.median(line["seconds"] for line in result.history[2:])


def show(costs: Costs) -> None:
    print(f"a network on its way: {costs.job_bytes:,.0f} bytes out, {costs.outcome_bytes:,.0f} bytes back")
    for name in ("engine", "dispatch", "result", "journal", "checkpoint", "evolution", "snapshot"):
        print(f"  {name:11s} {getattr(costs, name) * 1e6:6.0f} µs")
    print(f"  beside training {costs.beside * 1e6:.0f} µs, between generations {costs.between * 1e6:.0f} µs")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=10_000, help="of the model and the simulation")
    parser.add_argument("--workers", type=int, nargs="*", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--seconds", type=float, nargs="*", default=[1.0, 5.0], help="of training a network")
    parser.add_argument("--side", type=int, default=28, help="of the square pictures")
    parser.add_argument("--engine-cost", type=float, default=ENGINE_COST)
    parser.add_argument("--simulate", type=int, nargs="*", default=[1_000], help="with so many workers")
    parser.add_argument("--one-thread", action="store_true", help="outcomes go back where jobs go out")
    options = parser.parse_args(arguments)
    shape = (1, options.side, options.side)
    costs = measure(min(options.networks, 1_000), shape, options.engine_cost)
    show(costs)
    print(f"{options.networks:,} networks:")
    for seconds in options.seconds:
        for workers in options.workers:
            said = forecast(
                costs,
                networks=options.networks,
                workers=workers,
                seconds=seconds,
                longest=seconds * 5 / 3,
            )
            line = (
                f"  {workers:6,} workers, {seconds:g} s a network: training {said.training:.1f} s, beside it "
                f"{said.beside:5.1f} s, between {said.between:4.1f} s: {said.efficiency:4.0%} at work"
            )
            if workers in options.simulate:
                took = simulate(
                    options.networks,
                    workers,
                    seconds,
                    shape,
                    cost=options.engine_cost,
                    returns=not options.one_thread,
                )
                line += f"; the model says {said.seconds:.1f} s, the simulation took {took:.1f} s"
            print(line, flush=True)


if __name__ == "__main__":
    main()
