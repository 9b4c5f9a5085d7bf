"""The suite, as far as it takes an engine of its own: how it begins, what order it keeps, how it ends."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from concurrent.futures import as_completed, wait
from pathlib import Path

import pytest

from epicortex.engines import create
from epicortex.engines.bench import ENVIRONMENT
from epicortex.errors import EngineError
from epicortex.jobs import Job, Outcome
from tests.contracts.fitness import Noting, Slow
from tests.contracts.world import children, jobs, network, results, same, settings, setup


def test_any_number_of_workers_gives_the_same_bits(name: str, expected: list[Outcome]) -> None:
    for workers in (1, 2, 3):
        config = settings(workers=workers)
        with create(name, setup(config), config) as running:
            assert 1 <= running.workers <= workers
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


def test_workers_train_under_the_same_conditions_everywhere(name: str, tmp_path: Path) -> None:
    config = settings()
    with create(name, setup(config, fitness=Noting(tmp_path)), config) as running:
        results([running.submit(job) for job in jobs(6)])
    noted = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert noted
    for conditions in noted:
        assert conditions["threads"] == 1
        assert conditions["denormals flushed"]
        assert conditions["precision"] == "highest"
        if name != "serial":  # which works in the program's own process
            assert conditions["environment"] == ENVIRONMENT
            assert conditions["large blocks come from the heap"]
