"""The ranks of an MPI job: which share a host, how they get the data set, and what those do that train.

Rank 0 leads. The first rank of every host has the data set in a file that the others there map, so that it
crosses the network once a host and is in memory once.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import serving
from epicortex.engines.sharing import shared
from epicortex.errors import ConfigError, EpiCortexError

if TYPE_CHECKING:
    from epicortex.data import DataSet

ORDER: Final = 1
DATA: Final = 2
STOP: Final = 3
_CHUNK: Final = 8 * 2**20
_LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class World:
    """The communicators of an EpiCortex job."""

    everyone: Any
    host: Any
    """The ranks of this host; the first has the data."""
    leaders: Any
    """The first ranks of all hosts, rank 0 first; null for the others."""

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which evolves."""
        return bool(self.everyone.rank == 0)

    @property
    def others(self) -> range:
        """The ranks that train."""
        return range(1, self.everyone.size)


@dataclass(frozen=True, slots=True)
class Order:
    """An engine is opened: what a rank needs besides the data."""

    content: bytes
    versions: dict[str, str]
    data: bool
    """Whether a data set follows."""


@dataclass(frozen=True, slots=True)
class Announced:
    """An engine will be opened that needs a module."""

    module: str


@cache
def world() -> World:
    """The job that this process is a rank of. All ranks come here before anything else."""
    if MPI.COMM_WORLD.size == 1:
        raise ConfigError(
            "training.engine: mpi needs a rank that evolves and others that train; start it as in "
            "mpiexec -n 3 epicortex evolve digits --engine mpi"
        )
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise ConfigError("training.engine: mpi needs an MPI library that allows threads (THREAD_MULTIPLE)")
    everyone = MPI.COMM_WORLD.Dup()
    host = everyone.Split_type(MPI.COMM_TYPE_SHARED, key=everyone.rank)
    leaders = everyone.Split(0 if host.rank == 0 else MPI.UNDEFINED, key=everyone.rank)
    here = World(everyone, host, leaders)
    if here.leads:
        atexit.register(_dismiss, here)
    return here


def _dismiss(here: World) -> None:
    """Rank 0 ends: so do the others."""
    for rank in here.others:
        here.everyone.send(None, dest=rank, tag=ORDER)


def announce(here: World, module: str) -> None:
    """Rank 0 tells all others what will be needed; they import it while it reads the data."""
    for rank in here.others:
        here.everyone.send(Announced(module), dest=rank, tag=ORDER)


def give(here: World, order: Order, data: DataSet | None) -> None:
    """Rank 0 tells all others what to work with; a data set is one that is mapped from a file."""
    for rank in here.others:
        here.everyone.send(order, dest=rank, tag=ORDER)
    if data is None:
        return
    assert data.path is not None
    if here.leaders.size > 1:
        _send_file(here.leaders, data.path)
    _tell_host(here, data)


def serve() -> None:
    """What all other ranks do: train for one engine after another until rank 0 ends."""
    global _bench  # noqa: PLW0603  tasks of mpi4py.futures are functions
    os.environ.update(serving.ENVIRONMENT)
    serving.settle()
    here = world()
    while (order := _receive(here.everyone, ORDER)) is not None:
        if isinstance(order, Announced):
            importlib.import_module(order.module)
            continue
        with ExitStack() as files:
            try:
                data = _data(here, files) if order.data else None
                serving.check_versions(order.versions)
                _bench = serving.make_ready(order.content, data)
            except serving.WorkerBroken as broken:
                _bench = broken
            with MPICommExecutor(here.everyone, root=0):
                pass  # back when rank 0 has closed its engine
            _bench = None
        here.everyone.recv(source=0, tag=STOP)


_bench: serving.Bench | serving.WorkerBroken | None = None


def do(jobs: list[Job]) -> list[Outcome]:
    """The task that `mpi4py.futures` carries to a rank."""
    if isinstance(_bench, serving.WorkerBroken):
        raise _bench
    assert _bench is not None
    everyone = world().everyone

    def should_stop() -> bool:
        return bool(everyone.iprobe(source=0, tag=STOP))

    return [_bench.perform(job, should_stop=should_stop) for job in jobs]


def _data(here: World, files: ExitStack) -> DataSet:
    """The data set, from this host's first rank, or as that."""
    from epicortex.data import DataSet

    if here.host.rank > 0:
        kind, content = _receive(here.host, DATA)
        if kind == "broken":
            raise serving.WorkerBroken(content)
        try:
            shared_data: DataSet = pickle.loads(content)
        except EpiCortexError as error:
            raise serving.WorkerBroken(str(error)) from error
        return shared_data
    chunks = _incoming_file(here.leaders)
    try:
        file = files.enter_context(shared(lambda stream: _write(stream, chunks)))
        data = DataSet.open(file.path)
    except (OSError, EpiCortexError) as error:
        for _ in chunks:
            pass  # the other hosts get theirs
        reason = f"the data set cannot be written on {MPI.Get_processor_name()}: {error}"
        _tell_host(here, reason)
        raise serving.WorkerBroken(reason) from error
    _tell_host(here, data)
    return data


def _tell_host(here: World, data: DataSet | str) -> None:
    message = ("broken", data) if isinstance(data, str) else ("data", pickle.dumps(data))
    for rank in range(1, here.host.size):
        here.host.send(message, dest=rank, tag=DATA)


def _send_file(leaders: Any, path: Path) -> None:
    with path.open("rb") as stream:
        leaders.bcast(os.fstat(stream.fileno()).st_size)
        while chunk := stream.read(_CHUNK):
            leaders.Bcast(bytearray(chunk))


def _incoming_file(leaders: Any) -> Iterator[memoryview]:
    left = leaders.bcast(None)
    while left:
        chunk = memoryview(bytearray(min(left, _CHUNK)))
        leaders.Bcast(chunk)
        left -= len(chunk)
        yield chunk


def _write(stream: IO[bytes], chunks: Iterator[memoryview]) -> None:
    for chunk in chunks:
        stream.write(chunk)


def _receive(comm: Any, tag: int) -> Any:
    """The next message from the first rank. MPI's own waiting would keep a core busy."""
    while not comm.iprobe(source=0, tag=tag):
        time.sleep(_LOOK_SECONDS)
    return comm.recv(source=0, tag=tag)
