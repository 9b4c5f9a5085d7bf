"""Simulated steps a second on `double-pole`, beside neat-python: `python -m benchmarks.task_speed`.

Both have a population of networks without a hidden node and two worker processes: ours those of the engine
`processes`, neat-python its own `ParallelEvaluator`. The worlds are the same but for their track, which is
endless, so that every episode has the same length; neat-python's networks act in our physics in Python,
ours in compiled code. Steps are divided by the seconds of a clock and by the processor time of the workers;
the machine may have other work, which only the second is blind to.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.tasks import Theirs, neat_config
from epicortex import engines
from epicortex.config import resolving
from epicortex.ecosystem.jobs import Job
from epicortex.evaluation.episodes import Episodes
from epicortex.evaluation.sight import Sight
from epicortex.families.unstructured import UnstructuredFamily
from epicortex.tasks import poles
from epicortex.tasks.own import OwnTask
from epicortex.tasks.physics import Policy, World, balance

NETWORKS: Final = 100
WORKERS: Final = 2
WORLD: Final = replace(poles.DOUBLE.world, largest_angle=1e300, track=1e300)


@dataclass(frozen=True)
class Endless:
    """Acts for so many steps, whatever falls."""

    steps: int
    problem = poles.DOUBLE.problem

    def evaluate(self, network: Any, rng: np.random.Generator) -> float:
        """The steps."""
        del rng
        return steps(network, WORLD, self.steps)


def steps(policy: Policy, world: World, number: int) -> float:
    """Act; all steps are done."""
    done, _ = balance(policy, world, poles.DOUBLE.start, number)
    assert done == number
    return float(done)


class Slow:
    """A policy that has no wiring to hand over."""

    def __init__(self, policy: Policy) -> None:
        self.reset, self.act = policy.reset, policy.act


def ours(number: int) -> None:
    """A generation in our workers."""
    config = resolving.resolve("task", {"training.workers": WORKERS})
    task = OwnTask("endless", Endless(number))
    family = UnstructuredFamily(task.problem)
    recipe = Episodes(family, task, 1, Sight())
    setup = engines.WorkerSetup(recipe=recipe, family=family)
    networks = [family.minimal(np.random.default_rng(seed)) for seed in range(NETWORKS)]
    with engines.create("processes", setup, config) as engine:
        futures = [engine.submit(Job(place, 1, 1, network)) for place, network in enumerate(networks)]
        assert all(future.result().fitness == number for future in futures)


def theirs_alone(number: int, genome: Any, config: Any) -> float:
    """One of neat-python's networks."""
    return steps(Slow(Theirs(genome, config)), WORLD, number)


def theirs(number: int) -> None:
    """A generation in neat-python's workers."""
    import neat

    config = neat_config("double-pole", {"NEAT.pop_size": NETWORKS})

    def once(genomes: Sequence[tuple[int, Any]], config: Any) -> None:
        evaluator.evaluate(genomes, config)
        raise TimeoutError

    with neat.ParallelEvaluator(WORKERS, partial(theirs_alone, number)) as evaluator, suppress(TimeoutError):
        neat.Population(config).run(once, 1)


def rates(generation: Callable[[int], None], number: int) -> tuple[float, float]:
    """Steps a second by the clock, and by the processor time of the workers, without what starting takes."""

    def spent(steps: int) -> tuple[float, float]:
        began, used = time.perf_counter(), _children()
        generation(steps)
        return time.perf_counter() - began, _children() - used

    start, whole = spent(1), spent(number)
    clock, processor = (max(1e-9, after - before) for before, after in zip(start, whole, strict=True))
    return NETWORKS * number / clock, NETWORKS * number / processor


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a table."""
    print("| double-pole, two workers | steps a second | steps a second of processor time |", flush=True)
    print("|---|---|---|")
    found = []
    for who, generation, number in (("EpiCortex", ours, 50_000), ("neat-python", theirs, 1_000)):
        found.append(rates(generation, number))
        print(f"| {who} | {found[-1][0]:,.0f} | {found[-1][1]:,.0f} |", flush=True)
    clock, processor = (one / other for one, other in zip(*found, strict=True))
    print(f"| times as many | {clock:.0f} | {processor:.0f} |")


if __name__ == "__main__":
    main()
