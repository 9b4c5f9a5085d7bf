"""The suite, as far as it takes an engine of its own: how it begins, what order it keeps, how it ends."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from concurrent.futures import as_completed, wait
from pathlib import Path

import pytest

from epicortex.ecosystem.jobs import Outcome
from epicortex.engines import create
from epicortex.engines.serving import ENVIRONMENT
from epicortex.errors import EngineError
from tests.contracts.fitness import Held, Noting, Plodding, Slow
from tests.contracts.world import (
    PATIENCE,
    abandoned,
    children,
    jobs,
    results,
    same,
    segments,
    settings,
    setup,
    until,
)


def test_any_number_of_workers_gives_the_same_bits(name: str, expected: list[Outcome]) -> None:
    for workers in (1, 3):
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
    with create(name, setup(config, fitness=Held(tmp_path)), config) as running:
        futures = [running.submit(job) for job in jobs(6)]
        for future in futures:
            future.add_done_callback(
                lambda done: finished.append(0 if done.cancelled() else done.result().network)
            )
        try:
            first = next(as_completed(futures, timeout=PATIENCE))
            assert first is futures[0]
            assert not any(future.done() for future in futures[1:])
            assert futures[4].cancel()
        finally:
            (tmp_path / "go").touch()  # or closing would wait for ever
        wait(futures, timeout=PATIENCE)
    assert [number for number in finished if number] == [1, 2, 3, 4, 6]
    assert len(list(tmp_path.iterdir())) == 5 + 1


#: A training that takes minutes, so that it must be broken off between two of its batches.
LONG = {"workers": 1, "batch_size": 1, "min_steps": 5000}


def test_a_network_over_its_time_limit_fails_between_two_batches(name: str, tmp_path: Path) -> None:
    config, steps = settings(time_limit=2.0, **LONG), tmp_path / "steps"
    with create(name, setup(config, optimiser=Plodding(steps)), config) as running:
        outcome = running.submit(jobs(1)[0]).result(timeout=PATIENCE)
    assert outcome.failed == "took longer than the limit of 2 s"
    assert 0 < steps.stat().st_size < 5000


def test_closing_stops_a_network_between_two_batches(name: str, tmp_path: Path) -> None:
    config, steps = settings(**LONG), tmp_path / "steps"
    with create(name, setup(config, optimiser=Plodding(steps)), config) as running:
        future = running.submit(jobs(1)[0])
        assert until(lambda: steps.exists() and steps.stat().st_size > 0)
    with pytest.raises(EngineError, match="the engine was closed"):
        future.result(timeout=0)
    made = steps.stat().st_size
    assert 0 < made < 5000
    time.sleep(0.3)
    assert steps.stat().st_size == made


def test_closing_breaks_off_and_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, processes = set(threading.enumerate()), children()
    shared = segments()
    temporary, calls = tmp_path / "temporary", tmp_path / "calls"
    temporary.mkdir()
    calls.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    config = settings()
    running = create(name, setup(config, fitness=Slow(0.5, calls)), config)
    futures = [running.submit(job) for job in jobs(20)]
    futures[0].result(timeout=PATIENCE)
    running.close()
    wait(futures, timeout=0)
    assert len(list(calls.iterdir())) < len(futures)  # it did not wait for all of them
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
    assert until(lambda: not abandoned(shared))
    assert list(temporary.iterdir()) == []


def test_jobs_wait_for_a_setup_that_comes_later(name: str) -> None:
    config = settings(workers=1)
    with create(name, None, config) as running:
        future = running.submit(jobs(1)[0])
        time.sleep(0.3)
        assert not future.done()
        running.prepare(setup(config))
        assert future.result(timeout=PATIENCE).failed is None


def test_an_engine_that_never_got_its_setup_closes_all_the_same(name: str) -> None:
    processes = children()
    running = create(name, None, settings())
    future = running.submit(jobs(1)[0])
    running.close()
    assert future.cancelled()
    assert children() <= processes


def test_a_setup_that_cannot_work_breaks_the_engine_with_its_reason(name: str, tmp_path: Path) -> None:
    config = settings(workers=1)
    broken = setup(config).at(tmp_path / "gone")
    with create(name, None, config) as running:
        future = running.submit(jobs(1)[0])
        running.prepare(broken)
        with pytest.raises(EngineError, match="gone"):
            future.result(timeout=PATIENCE)
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
