"""The queue between those who submit and those who work."""

from __future__ import annotations

import pytest

from epicortex.engines.task_queue import TaskQueue
from epicortex.errors import EngineError
from tests.contracts.world import jobs


def test_tasks_come_first_in_first_out_and_one_that_is_put_back_first() -> None:
    queue = TaskQueue()
    for job in jobs(3):
        queue.put(job)
    first = queue.take()
    assert first is not None
    assert first.job.network == 1
    assert first.future.running()
    queue.put_back(first)
    taken = [queue.take(0) for _ in range(4)]
    assert [task and task.job.network for task in taken] == [1, 2, 3, None]


def test_cancelled_tasks_are_passed_over() -> None:
    queue = TaskQueue()
    futures = [queue.put(job) for job in jobs(2)]
    futures[0].cancel()
    task = queue.take(0)
    assert task is not None
    assert task.job.network == 2


def test_closing_cancels_what_waits_or_tells_it_why() -> None:
    for cancel in (True, False):
        queue = TaskQueue()
        begun, waiting = [queue.put(job) for job in jobs(2)]
        task = queue.take()
        assert task is not None
        assert queue.close(EngineError("enough"), cancel=cancel)
        assert not queue.close(EngineError("again"), cancel=cancel)
        assert queue.take() is None
        assert waiting.cancelled() is cancel
        if not cancel:
            assert str(waiting.exception()) == "enough"
        queue.put_back(task)
        assert str(begun.exception()) == "enough"
        with pytest.raises(EngineError, match="enough"):
            queue.put(jobs(1)[0])
