"""One suite over every engine: what `Engine` promises in prose, tried for real.

How engines begin and end is in `test_lives.py`. The promises about workers that are killed or stopped can
only be kept by `processes` and `ray`; those tests are in `test_workers.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest
import torch

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import Engine, create
from tests.contracts.world import PATIENCE, jobs, marked, network, results, same, settings, setup

CONFIG = settings()


@pytest.fixture(scope="module")
def engine(name: str) -> Iterator[Engine]:
    """A running engine, shared by the tests that leave it as it is."""
    with create(name, setup(CONFIG), CONFIG) as running:
        yield running


def test_outcomes_are_the_same_bits_as_without_an_engine(engine: Engine, expected: list[Outcome]) -> None:
    outcomes = results([engine.submit(job) for job in jobs(12, newborn=True)])
    assert all(map(same, outcomes, expected))


def test_outcomes_come_back_with_weights_that_nobody_can_write_to(engine: Engine) -> None:
    for job in (Job(1, 1, 1, network()), Job(1, 1, 1, network(), train=False)):
        outcome = engine.submit(job).result(timeout=PATIENCE)
        assert outcome.phenotype is not None
        arrays = [array for genes in outcome.phenotype.weights for array in genes.values()]
        assert not any(array.flags.writeable for array in arrays)


def test_a_network_that_is_only_scored_comes_back_as_it_went(engine: Engine) -> None:
    outcome = engine.submit(Job(1, 1, 1, network(), newborn=True, train=False)).result(timeout=PATIENCE)
    assert outcome.phenotype is not None
    assert outcome.phenotype.same_bits(network())
    assert outcome.fitness == outcome.fitness_before


def test_a_failed_network_is_an_outcome_and_the_others_go_on(engine: Engine) -> None:
    good, bad, ugly = marked(1), network(2), network(3)
    infinite = type(bad)(
        bad.genome, tuple(genes.replace(weight=genes.weight * np.float32(1e38)) for genes in bad.weights)
    )
    outcomes = results(
        [engine.submit(Job(number, 1, 1, one)) for number, one in enumerate((good, infinite, ugly), 1)]
    )
    assert [outcome.failed is None for outcome in outcomes] == [True, False, True]
    assert outcomes[1].failed == "the loss became nan in training step 1"


def test_several_threads_may_submit(engine: Engine, expected: list[Outcome]) -> None:
    futures: dict[int, Future[Outcome]] = {}

    def submit(part: list[Job]) -> None:
        futures.update({job.network: engine.submit(job) for job in part})

    all_jobs = jobs(12, newborn=True)
    threads = [threading.Thread(target=submit, args=(all_jobs[start::3],)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(map(same, results([futures[number] for number in range(1, 13)]), expected))


def test_the_callers_torch_settings_stay(engine: Engine) -> None:
    torch.set_num_threads(2)
    try:
        results([engine.submit(job) for job in jobs(2)])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
