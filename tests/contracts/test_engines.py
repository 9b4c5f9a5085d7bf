"""One suite over every engine: what `Engine` promises in prose, tried for real.

The promises about workers that are killed or stopped can only be tried where workers are processes of their
own; those tests are in `test_workers.py`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, as_completed, wait
from pathlib import Path

import numpy as np
import pytest
import torch

from epicortex.engines import Engine, create
from epicortex.errors import EngineError
from epicortex.jobs import Job, Outcome
from tests.contracts.fitness import Slow
from tests.contracts.world import children, jobs, marked, network, same, settings, setup

ENGINES = ("serial", "processes")
CONFIG = settings()


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A running engine, shared by the tests that leave it as it is."""
    with create(request.param, setup(CONFIG), CONFIG) as running:
        yield running


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def expected() -> list[Outcome]:
    """What the jobs give without any engine."""
    trainer = setup(CONFIG).trainer()
    return [trainer.run(job) for job in jobs(12, newborn=True)]


def results(futures: list[Future[Outcome]]) -> list[Outcome]:
    return [future.result(timeout=120) for future in futures]


def test_outcomes_are_the_same_bits_as_without_an_engine(engine: Engine, expected: list[Outcome]) -> None:
    outcomes = results([engine.submit(job) for job in jobs(12, newborn=True)])
    assert all(map(same, outcomes, expected))


def test_outcomes_come_back_with_weights_that_nobody_can_write_to(engine: Engine) -> None:
    for job in (Job(1, 1, 1, network()), Job(1, 1, 1, network(), train=False)):
        outcome = engine.submit(job).result(timeout=60)
        assert outcome.phenotype is not None
        arrays = [array for weights in outcome.phenotype.weights for array in weights]
        assert not any(array.flags.writeable for array in arrays)


def test_a_network_that_is_only_scored_comes_back_as_it_went(engine: Engine) -> None:
    outcome = engine.submit(Job(1, 1, 1, network(), newborn=True, train=False)).result(timeout=60)
    assert outcome.phenotype is not None
    assert outcome.phenotype.same_bits(network())
    assert outcome.fitness == outcome.fitness_before


def test_a_failed_network_is_an_outcome_and_the_others_go_on(engine: Engine) -> None:
    good, bad, ugly = marked(1), network(2), network(3)
    infinite = type(bad)(
        bad.genome, tuple(type(layer)(layer.weight * np.float32(1e38), layer.bias) for layer in bad.weights)
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


def test_any_number_of_workers_gives_the_same_bits(expected: list[Outcome]) -> None:
    for workers in (1, 3):
        config = settings(workers=workers)
        with create("processes", setup(config), config) as running:
            assert running.workers == workers
            outcomes = results([running.submit(job) for job in jobs(12, newborn=True)])
        assert all(map(same, outcomes, expected))


def test_jobs_begin_in_order_results_come_one_by_one_and_pending_ones_can_be_cancelled(
    name: str, tmp_path: Path
) -> None:
    config = settings(workers=1)
    finished: list[int] = []
    with create(name, setup(config, fitness=Slow(0.2, tmp_path)), config) as running:
        futures = [running.submit(job) for job in jobs(6)]
        for future in futures:
            future.add_done_callback(
                lambda done: finished.append(0 if done.cancelled() else done.result().network)
            )
        first = next(as_completed(futures, timeout=120))
        assert first is futures[0]
        assert not futures[-1].done()
        assert futures[4].cancel()
        wait(futures, timeout=60)
    assert [number for number in finished if number] == [1, 2, 3, 4, 6]
    assert len(list(tmp_path.iterdir())) == 5


def test_a_network_over_its_time_limit_fails(name: str, tmp_path: Path) -> None:
    config = settings(time_limit=0.5, workers=1)
    # newborns are scored before training, so the time is over when training begins
    with create(name, setup(config, fitness=Slow(1.0, tmp_path)), config) as running:
        outcome = running.submit(Job(1, 1, 1, network(), newborn=True)).result(timeout=120)
    assert outcome.failed == "took longer than the limit of 0.5 s"


def test_closing_ends_quickly_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    threads, processes = set(threading.enumerate()), children()
    shared = set(Path("/dev/shm").iterdir())
    temporary = set(Path(tempfile.gettempdir()).glob("epicortex-*"))
    config = settings()
    running = create(name, setup(config, fitness=Slow(0.5, tmp_path)), config)
    futures = [running.submit(job) for job in jobs(20)]
    futures[0].result(timeout=120)
    began = time.monotonic()
    running.close()
    assert time.monotonic() - began < 5
    wait(futures, timeout=0)
    kinds = {
        "cancelled" if future.cancelled() else type(future.exception()).__name__ for future in futures[1:]
    }
    assert kinds <= {"cancelled", "EngineError", "NoneType"}
    assert "cancelled" in kinds
    with pytest.raises(EngineError, match="the engine was closed"):
        running.submit(jobs(1)[0])
    running.close()
    assert children() <= processes
    assert set(threading.enumerate()) <= threads
    assert set(Path("/dev/shm").iterdir()) <= shared
    assert set(Path(tempfile.gettempdir()).glob("epicortex-*")) <= temporary


def test_jobs_wait_for_a_setup_that_comes_later(name: str) -> None:
    config = settings(workers=1)
    with create(name, None, config) as running:
        future = running.submit(jobs(1)[0])
        time.sleep(0.3)
        assert not future.done()
        running.prepare(setup(config))
        assert future.result(timeout=120).failed is None


def test_an_engine_that_never_got_its_setup_closes_at_once(name: str) -> None:
    processes = children()
    running = create(name, None, settings())
    future = running.submit(jobs(1)[0])
    began = time.monotonic()
    running.close()
    assert time.monotonic() - began < 5
    assert future.cancelled()
    assert children() <= processes


def test_a_setup_that_cannot_work_breaks_the_engine_with_its_reason(name: str, tmp_path: Path) -> None:
    config = settings(workers=1)
    broken = setup(config).at(tmp_path / "gone")
    with create(name, None, config) as running:
        future = running.submit(jobs(1)[0])
        running.prepare(broken)
        with pytest.raises(EngineError, match="gone"):
            future.result(timeout=120)
        with pytest.raises(EngineError, match="gone"):
            running.submit(jobs(1)[0])
