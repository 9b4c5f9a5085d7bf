"""The network that will take longest is trained first."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from epicortex import Engine, evolve
from epicortex.config import Config, resolving
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import create
from epicortex.engines.setup import WorkerSetup
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.layers import HiddenLayer
from epicortex.run.schedule import Schedule

FAMILY = LayeredFamily(Problem((1, 8, 8), 10))


def job(network: int, *hidden: HiddenLayer) -> Job:
    genome = Genome((1, 8, 8), hidden, 10)
    rng = np.random.default_rng(network)
    return Job(network, 1, 1, draw_phenotype(genome, rng=rng))


#: Few weights, each used at 64 places; many weights, each used once; hardly any.
CONVOLUTION = job(1, ConvLayer(((3, 3),) * 4, (1, 1)))
WIDE = job(2, FullLayer(60))
OUTPUT = job(3)


def order(jobs: Sequence[Job]) -> list[int]:
    return [one.network for one in jobs]


def test_what_takes_more_multiplications_comes_first() -> None:
    assert WIDE.phenotype.parameters > CONVOLUTION.phenotype.parameters
    assert order(Schedule(FAMILY).longest_first([OUTPUT, WIDE, CONVOLUTION])) == [1, 2, 3]


def test_what_took_long_comes_first_the_next_time() -> None:
    schedule = Schedule(FAMILY)
    took = {1: 1.0, 2: 2.0, 3: 9.0}
    outcomes = [Outcome(network, 1, train_seconds=seconds) for network, seconds in took.items()]
    schedule.learn([OUTPUT, WIDE, CONVOLUTION], outcomes)
    assert order(schedule.longest_first([CONVOLUTION, WIDE, OUTPUT])) == [3, 2, 1]


class Noting(Engine):
    """Notes what it is given, in order, and leaves the work to the serial engine."""

    def __init__(self, config: Config) -> None:
        self._inner = create("serial", None, config)
        self.given: list[Job] = []

    @property
    def workers(self) -> int:
        return self._inner.workers

    def prepare(self, setup: WorkerSetup) -> None:
        self._inner.prepare(setup)

    def submit(self, job: Job) -> Future[Outcome]:
        self.given.append(job)
        return self._inner.submit(job)

    def close(self) -> None:
        self._inner.close()


def test_a_run_hands_out_the_longest_job_first() -> None:
    changes = {"generations": 1, "initial_networks": 12, "initial_species": 4, "evolve": False}
    config = resolving.resolve("paper", {f"evolution.{name}": value for name, value in changes.items()})
    with Noting(config) as engine:
        evolve("digits", config, engine=engine)
    costs = [FAMILY.cost(one.phenotype) for one in engine.given]
    assert len(set(costs)) > 3
    assert costs == sorted(costs, reverse=True)
