"""How far one main process goes: its costs for a network, a model made of them, and a simulation as a check.

`python -m benchmarks.scaling` runs real generations (evolution, journal, checkpoint and all) on an engine
whose workers only wait, few enough that the main process has time, and takes the processor time of each of
its threads. From that it says what a generation takes with more workers, and then simulates those as well.
Weights are written twice a generation: TMPDIR should be a fast disk, or memory.
"""

from __future__ import annotations

import argparse
import heapq
import pickle
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engines import by_thread
from benchmarks.measure import processor_seconds, row
from benchmarks.simulated import SimulatedEngine, config_for, outcome
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.history import Generation
from epicortex.engines.serving import inward, outward
from epicortex.evolution import Evolution
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.pages.plots import Figure, axis
from epicortex.pages.svg import picture
from epicortex.run.lifecycle import evolve
from epicortex.storage import checkpoint, lines
from epicortex.storage.atomic import LogMark
from epicortex.storage.journal import Heading, Journal

#: Processor seconds of the library below an engine in the thread that leads workers, for a job, as
#: `benchmarks.engines` has measured them with `ray` and `mpi`.
ENGINE_COST = 0.00032


@dataclass(frozen=True)
class Costs:
    """Processor seconds of the main process for a network, thread by thread, in a run."""

    leading: float
    """Handing out: the library below the engine, and packing."""
    outcomes: float
    """Unpacking what comes back, and the journal."""
    recording: float
    """Logs and the checkpoint."""
    collecting: float
    """The main thread, while workers train."""
    between: float
    """The main thread, while workers wait: evolution, and taking the snapshot that is written later."""

    @property
    def beside(self) -> float:
        """While workers train. Python runs one thread at a time: hashing and writing hardly overlap."""
        return self.leading + self.outcomes + self.recording + self.collecting


@dataclass(frozen=True)
class Forecast:
    """What the model says of a generation."""

    work: float
    """Seconds of training for each worker."""
    training: float
    """Seconds from the first network sent to the last one back, if the main process cost nothing."""
    beside: float
    """The same if training took only as long as the longest, and all else was the main process."""
    between: float

    @property
    def seconds(self) -> float:
        return max(self.training, self.beside) + self.between

    @property
    def efficiency(self) -> float:
        """Which part of their time workers train."""
        return self.work / self.seconds


def forecast(costs: Costs, *, networks: int, workers: int, seconds: float) -> Forecast:
    """The model: workers share the training, one processor does the rest."""
    alone = [0.0] * workers
    for number in range(networks):
        heapq.heapreplace(alone, alone[0] + duration(number, seconds))
    return Forecast(
        work=sum(alone) / workers,
        training=max(alone),
        beside=networks * costs.beside + LONGEST * seconds,
        between=networks * costs.between,
    )


#: The longest training in mean ones.
LONGEST = 5 / 3


def duration(network: int, mean: float) -> float:
    """A network's own time: from a third of the mean to five thirds."""
    return mean * (1 / 3 + random.Random(network).random() * (LONGEST - 1 / 3))


def apart(networks: int, shape: tuple[int, ...]) -> dict[str, float]:
    """What a network costs in each step by itself, the least of three: less than in a run."""
    config = config_for(networks, 5)
    family = LayeredFamily.from_config(config, Problem(shape, 10))
    evolution = Evolution(config, family)
    state = evolution.start()
    for _ in range(2):
        state = evolution.tell(state, [outcome(job) for job in evolution.ask(state)]).state
    jobs = evolution.ask(state)
    outcomes = [outcome(job) for job in jobs]
    back = [
        pickle.dumps(replace(one, phenotype=family.encode(job.phenotype)), protocol=5)
        for one, job in zip(outcomes, jobs, strict=True)
    ]
    step = evolution.tell(state, outcomes)
    snapshot = checkpoint.take(step.state, family)

    def cost(work: Callable[[], Any]) -> float:
        return min(processor_seconds(work) for _ in range(3)) / len(jobs)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mark = LogMark(0, "")

        def journal() -> None:
            heading = Heading("run", state.generation, "digest")
            journal = Journal(folder / "a.journal", heading, family=family)
            for one in outcomes:
                journal.append(one)
            journal.sync()
            journal.close()
            (folder / "a.journal").unlink()

        def write() -> None:
            lines.network_lines(step.evaluated, family)
            logs = {"history.jsonl": mark, "networks.jsonl": mark}
            checkpoint.write(folder, snapshot, run="run", logs=logs, keep=1)

        return {
            "dispatch": cost(lambda: [pickle.dumps(outward(job, family), protocol=5) for job in jobs]),
            "result": cost(
                lambda: [inward(pickle.loads(one), job, family) for one, job in zip(back, jobs, strict=True)]
            ),
            "journal": cost(journal),
            "checkpoint": cost(write),
            "evolution": cost(lambda: (evolution.ask(state), evolution.tell(state, outcomes))),
            "snapshot": cost(lambda: checkpoint.take(step.state, family)),
        }


def simulate(
    networks: int, generations: int, engine: SimulatedEngine, shape: tuple[int, ...]
) -> tuple[Costs, float]:
    """A run: its costs, and the seconds of a generation, from its third generation on."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (20, *shape), dtype=np.uint8), rng.integers(0, 10, 20)
    channels = shape[0]
    scaling = Scaling(255.0, (0.5,) * channels, (0.5,) * channels)
    data = DataSet("noise", x, y, x, y, tuple("0123456789"), scaling)
    used: list[dict[str, float]] = []

    def note(_: Generation) -> None:
        used.append({name: took for (_, name), took in by_thread().items()})

    with tempfile.TemporaryDirectory() as folder, engine:
        config = config_for(networks, generations)
        result = evolve(data, config, out=Path(folder) / "run", engine=engine, on_generation=note)
    late = result.history[2:]

    def cost(thread: str) -> float:
        first, last = (
            sum(took for name, took in seen.items() if thread in name) for seen in used[1 :: len(used) - 2]
        )
        return (last - first) / len(late) / networks

    between = statistics.mean(line.evolve_seconds for line in late) / networks
    return Costs(
        leading=cost("simulated-lead"),
        outcomes=cost("simulated-outcomes"),
        recording=cost("recorder"),
        collecting=max(0.0, cost("MainThread") - between),
        between=between,
    ), statistics.mean(line.seconds for line in late)


def draw(costs: Costs, networks: int, seconds: Sequence[float]) -> Figure:
    """Which part of their time workers train, over how many there are."""
    counts = [round(10 ** (place / 10)) for place in range(10, 41)]
    traces = [
        {
            "x": counts,
            "y": [
                100 * forecast(costs, networks=networks, workers=count, seconds=each).efficiency
                for count in counts
            ],
            "name": f"{each:g} s a network",
            "mode": "lines",
            "line": {"color": f"var(--{role})", "width": 2},
        }
        for each, role in zip(seconds, ("best", "mean", "offspring"), strict=False)
    ]
    layout = {"xaxis": {**axis("workers"), "type": "log"}, "yaxis": axis("% of their time at work")}
    return {"data": traces, "layout": layout}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=10_000, help="of the model and the simulation")
    parser.add_argument("--workers", type=int, nargs="*", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--seconds", type=float, nargs="*", default=[1.0, 2.0, 5.0], help="of a training")
    parser.add_argument("--side", type=int, default=28, help="of the square pictures")
    parser.add_argument("--engine-cost", type=float, default=ENGINE_COST)
    parser.add_argument("--measure", type=int, default=4_000, help="costs with so many networks")
    parser.add_argument("--simulate", type=int, nargs="*", default=[1_000], help="with so many workers")
    parser.add_argument("--generations", type=int, default=4, help="of the simulation; two do not count")
    parser.add_argument("--before", action="store_true", help="outcomes go back where jobs go out")
    parser.add_argument("--draw", type=Path, help="a picture of the model")
    options = parser.parse_args(arguments)
    shape, networks = (1, options.side, options.side), options.networks

    def engine(workers: int, mean: float) -> SimulatedEngine:
        return SimulatedEngine(
            workers,
            lambda job: duration(job.network, mean),
            cost=options.engine_cost,
            before=options.before,
        )

    for step, took in apart(min(options.measure, 1_000), shape).items():
        row(f"{step} by itself, a network", f"{took * 1e6:.0f} µs")
    # few enough workers that the main process has time
    costs, _ = simulate(options.measure, options.generations, engine(100, 0.25), shape)
    for thread, took in asdict(costs).items():
        row(f"main process in a run, {thread}, a network", f"{took * 1e6:.0f} µs")
    row("main process in a run, networks a second at most", f"{1 / costs.beside:.0f}")
    for seconds in options.seconds:
        for workers in options.workers:
            said = forecast(costs, networks=networks, workers=workers, seconds=seconds)
            text = (
                f"training {said.training:.1f} s, main process {said.beside:.1f} s beside it and "
                f"{said.between:.1f} s between: {said.seconds:.1f} s, {said.efficiency:.0%} at work"
            )
            if workers in options.simulate:
                _, took = simulate(networks, options.generations, engine(workers, seconds), shape)
                text += f"; simulation {took:.1f} s"
            row(f"{networks:,} networks of {seconds:g} s, {workers:,} workers", text)
    if options.draw:
        figure = draw(costs, networks, options.seconds)
        options.draw.write_text(picture(figure, "Which part of their time workers train"))


if __name__ == "__main__":
    main()
