"""The engine `ray`: a worker for every slot that a Ray cluster has, on whichever node Ray puts it.

One thread does all the talking to Ray: it hands out jobs, takes outcomes, and looks now and then for workers
that are silent and for nodes that are new. Ray decides where workers run.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import ray
from ray.exceptions import ActorDiedError, RayError

from epicortex.config import Config
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import ray_session
from epicortex.engines.base import Engine
from epicortex.engines.process import MAX_FAILED_STARTS, START_LIMIT
from epicortex.engines.ray_worker import RayWorker
from epicortex.engines.returns import Returns
from epicortex.engines.serving import ENVIRONMENT, inward, outward, search_path
from epicortex.engines.setup import WorkerSetup, needed_module
from epicortex.engines.task_queue import Task, TaskQueue
from epicortex.errors import EngineError, EpiCortexError
from epicortex.families.family import Family
from epicortex.machine import available_cores
from epicortex.versions import versions

_TICK: Final = 0.5
_LOOK_FOR_NODES: Final = 2.0


@dataclass(slots=True, eq=False)
class _Worker:
    """An actor, as far as is known."""

    actor: Any
    node: str = ""
    """Where it is; empty until it is ready."""
    pid: int = 0
    task: Task | None = None
    silent: float = 0.0
    """For how long its job has given no sign of life."""
    asked: bool = False
    """Whether it was asked for one."""


class RayEngine(Engine):
    """Trains in the workers of a Ray cluster, or of a Ray of its own on this machine."""

    def __init__(self, config: Config) -> None:
        self._limit = config.training.workers
        self._module = needed_module(config)
        self._settings = config.ray
        self._hang_limit = config.training.hang_limit
        self._address = config.ray.address or os.environ.get("RAY_ADDRESS") or None
        self._tasks = TaskQueue()
        self._returns = Returns("epicortex-ray-outcomes")
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._family: Any = None
        self._package: tuple[Any, ...] | None = None
        self._workers: set[_Worker] = set()
        self._idle: deque[_Worker] = deque()
        self._wanted = self._limit or 1
        self._failed_starts = 0
        self._homeless = 0.0
        self._looked = 0.0
        self._thread = threading.Thread(target=self._lead, name="epicortex-ray", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    @property
    def workers(self) -> int:
        """How many there are or should be. Without a limit this follows the nodes that join and leave."""
        return self._wanted

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the workers that are ready, each on its own node."""
        return tuple(worker.pid for worker in tuple(self._workers) if worker.node)

    def prepare(self, setup: WorkerSetup) -> None:
        """Hand in the setup. The data set goes into the object store, from where each node gets one copy."""
        content = setup.at(None).packed()
        self._events.put(partial(self._take_setup, setup, content))

    def submit(self, job: Job) -> Future[Outcome]:
        """Queue a job."""
        future = self._tasks.put(job)
        self._events.put(self._hand_out)
        return future

    def close(self) -> None:
        """Kill the workers, which hold nothing that must be saved; a Ray of our own ends too."""
        self._end(EngineError("the engine was closed"), cancel=True)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._returns.close()
        atexit.unregister(self.close)

    def _end(self, reason: EngineError, *, cancel: bool = False) -> None:
        self._tasks.close(reason, cancel=cancel)
        self._events.put(lambda: None)

    def _lead(self) -> None:
        """All that is ever asked of Ray. Runs in a thread of its own."""
        try:
            cpus = self._settings.num_cpus * (self._limit or available_cores())
            closed = lambda: self._tasks.closed is not None  # noqa: E731
            with ray_session.connected(self._address, cpus=cpus, given_up=closed):
                try:
                    self._look_for_nodes()
                    self._follow_events()
                finally:
                    for worker in self._workers:
                        ray.kill(worker.actor)
        except EpiCortexError as error:
            self._end(EngineError(str(error)))
        except RayError as error:
            self._end(EngineError(f"Ray failed: {_one_line(error)}"))
        except BaseException as error:
            self._end(EngineError(f"the leader of workers failed: {type(error).__name__}: {error}"))
            raise
        finally:
            for worker in self._workers:
                if worker.task is not None:
                    self._tasks.put_back(worker.task)
            self._workers.clear()

    def _follow_events(self) -> None:
        tended = time.monotonic()
        while self._tasks.closed is None:
            try:
                event = self._events.get(timeout=_TICK)
            except queue.Empty:
                pass
            else:
                event()
            if (passed := time.monotonic() - tended) >= _TICK:
                tended += passed
                # a time in which this process itself was stopped does not count against its workers
                self._tend(min(passed, 2 * _TICK))

    def _tend(self, passed: float) -> None:
        """What is due now and then: look for nodes, and after workers that are silent."""
        self._looked += passed
        if self._looked >= _LOOK_FOR_NODES:
            self._look_for_nodes()
        for worker in tuple(self._workers):
            if worker.task is None:
                continue
            worker.silent += passed
            if worker.silent >= self._hang_limit:
                self._lose(worker, f"no sign of life for {self._hang_limit:g} s", at_fault=True)
            elif worker.silent >= self._hang_limit / 2 and not worker.asked:
                worker.asked = True
                pulse = worker.actor.pulse.options(concurrency_group="pulse").remote()
                self._when_done(pulse, partial(self._hear, worker))

    def _hear(self, worker: _Worker, answer: Future[float]) -> None:
        worker.asked = False
        if answer.exception() is None:  # if the worker is gone, the job says so
            worker.silent = min(worker.silent, answer.result())

    def _look_for_nodes(self) -> None:
        """Have as many workers as there are places for, or as many as were asked for."""
        places = sum(map(self._places_on, ray.nodes()))
        self._homeless = 0.0 if places else self._homeless + self._looked
        self._looked = 0.0
        if self._homeless >= max(START_LIMIT, self._hang_limit):
            raise EngineError(
                f"no node of the Ray cluster has {self._settings.num_cpus:g} CPUs and "
                f"{self._settings.num_gpus:g} GPUs for a network; change ray.num_cpus or ray.num_gpus"
            )
        self._wanted = self._limit or max(1, places)
        while len(self._workers) < self._wanted:
            self._start_worker()

    def _places_on(self, node: dict[str, Any]) -> int:
        if not node["Alive"]:
            return 0
        has = node["Resources"]
        needs = {"CPU": self._settings.num_cpus, "GPU": self._settings.num_gpus}
        return int(min(has.get(name, 0.0) // need for name, need in needs.items() if need))

    def _start_worker(self) -> None:
        actor = ray.remote(
            num_cpus=self._settings.num_cpus,
            num_gpus=self._settings.num_gpus,
            scheduling_strategy="SPREAD",
            max_restarts=0,  # what is lost with a worker is for us to replace
            concurrency_groups={"pulse": 1},
            runtime_env={"env_vars": ENVIRONMENT},
        )(RayWorker)
        worker = _Worker(actor.remote(self._module))
        self._workers.add(worker)
        self._prepare_worker(worker)

    def _take_setup(self, setup: WorkerSetup, content: bytes) -> None:
        data = setup.data_set()
        self._family = setup.family
        shared = ray.put(None if data is None else data.detached())
        self._package = content, versions(), shared, search_path()
        for worker in self._workers:
            self._prepare_worker(worker)

    def _prepare_worker(self, worker: _Worker) -> None:
        if self._package is not None:
            self._when_done(worker.actor.prepare.remote(*self._package), partial(self._begin, worker))

    def _begin(self, worker: _Worker, answer: Future[tuple[str, int, str]]) -> None:
        """A worker is ready, or cannot be."""
        error = answer.exception()
        if error is not None:
            self._failed_starts += not _went_with_its_node(error)
            if self._failed_starts == MAX_FAILED_STARTS:
                raise EngineError(
                    f"{MAX_FAILED_STARTS} workers in a row could not be started: {_one_line(error)}"
                )
            self._lose(worker, "", at_fault=False)
            return
        self._failed_starts = 0
        worker.node, worker.pid, broken = answer.result()
        if broken:
            raise EngineError(broken)
        self._idle.append(worker)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give waiting tasks to idle workers."""
        while self._idle and (task := self._tasks.take(0)) is not None:
            worker = self._idle.popleft()
            worker.task, worker.silent = task, 0.0
            # Ray sends what is small with the call; what is large goes into the object store and travels
            # as a reference.
            answer = worker.actor.run.remote(pickle.dumps(outward(task.job, self._family), protocol=5))
            self._when_done(answer, partial(self._take_outcome, worker, task))

    def _take_outcome(self, worker: _Worker, task: Task, answer: Future[bytes]) -> None:
        if worker.task is not task:
            return  # given up on before
        error = answer.exception()
        if error is not None:
            at_fault = isinstance(error, ActorDiedError) and not _went_with_its_node(error)
            self._lose(worker, "its process died" if at_fault else "it went with its node", at_fault=at_fault)
            return
        worker.task = None
        self._idle.append(worker)
        self._returns.put(partial(_give_back, task, answer.result(), self._family))
        self._hand_out()

    def _lose(self, worker: _Worker, how: str, *, at_fault: bool) -> None:
        """A worker is gone or has to go; another takes its place."""
        self._workers.discard(worker)
        task, worker.task = worker.task, None
        ray.kill(worker.actor)
        if task is not None:
            (self._tasks.worker_died if at_fault else self._tasks.worker_lost)(task, how)
        self._look_for_nodes()
        self._hand_out()

    def _when_done(self, reference: Any, then: Callable[[Future[Any]], None]) -> None:
        """Have `then` called with the finished future, in our own thread: Ray's must not wait."""
        reference.future().add_done_callback(lambda future: self._events.put(partial(then, future)))


def _give_back(task: Task, content: bytes, family: Family[Any]) -> None:
    try:
        outcome = inward(pickle.loads(content), task.job, family)
    except Exception as error:
        task.future.set_exception(EngineError(f"network {task.job.network} came back damaged: {error}"))
    else:
        task.future.set_result(outcome)


def _went_with_its_node(error: BaseException) -> bool:
    return not isinstance(error, ActorDiedError) or "node has died" in str(error)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:1000]
