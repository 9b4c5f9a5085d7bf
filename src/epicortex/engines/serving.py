"""What every worker does, whichever engine leads it: settle in, get ready, do one job after another.

How messages reach it, and what becomes of it when it fails, is left to each engine.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines.setup import WorkerSetup
from epicortex.errors import EpiCortexError
from epicortex.families.family import Family
from epicortex.versions import versions

if TYPE_CHECKING:
    from epicortex.data import DataSet
    from epicortex.evaluation.evaluator import Evaluator

#: One thread for every library that would start more, and sums in a fixed order on graphics processors.
ENVIRONMENT: Final = {
    **dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
    ),
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


class WorkerBroken(Exception):
    """A worker says that it cannot work at all, and that another could not either."""


def search_path() -> list[str]:
    """Where a worker looks for modules: where the program does, and in its current folder last of all.

    An interactive program looks there first; a worker must not take a file there for torch.
    """
    current = [str(Path.cwd())] if "" in sys.path else []
    return [str(entry) for entry in sys.path if entry != ""] + current


def settle() -> None:
    """Make this process a worker: signals and standard output are the program's, freed memory its own."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # these are for the program, which may want to finish something; it ends its workers itself
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):  # a daemon may have closed its standard error
        os.dup2(2, 1)  # a print in a user's function must not mix with what the program prints
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Have glibc keep what a batch frees for the next batch, which asks for the same sizes again.

    By default every large activation is a new mapping, zeroed page by page.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)  # the most it takes
            mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """A worker that is ready: what it evaluates with, and the family that reads what it is sent."""

    evaluator: Evaluator
    family: Family[Any]

    def perform(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Do a job that `outward` packed. Weights that did not change are left out: the sender has them."""
        job = replace(job, phenotype=self.family.decode(*job.phenotype))
        outcome = self.evaluator.run(job, heartbeat=heartbeat, should_stop=should_stop)
        if outcome.phenotype is None or outcome.phenotype is job.phenotype:
            return replace(outcome, phenotype=None)
        return replace(outcome, phenotype=self.family.encode(outcome.phenotype))


def outward(job: Job, family: Family[Any]) -> Job:
    """A job for another process: the phenotype as plain values and arrays."""
    return replace(job, phenotype=family.encode(job.phenotype))


def inward(outcome: Outcome, job: Job, family: Family[Any]) -> Outcome:
    """The outcome of a job that went `outward`."""
    if outcome.failed is not None:
        return outcome
    if outcome.phenotype is None:
        return replace(outcome, phenotype=job.phenotype)
    return replace(outcome, phenotype=family.decode(*outcome.phenotype))


def make_ready(content: bytes, data: DataSet | None = None) -> Bench:
    """The bench of a packed setup, over this data set or its own; `WorkerBroken` says why there is none."""
    try:
        setup: WorkerSetup = pickle.loads(content)
        return Bench(setup.evaluator(data), setup.family)
    except Exception as error:
        reason = str(error) if isinstance(error, EpiCortexError) else f"{type(error).__name__}: {error}"
        raise WorkerBroken(" ".join(reason.split())) from error


def check_versions(expected: Mapping[str, str]) -> None:
    """Refuse to work where the bits would differ from those of the main process."""
    for name, here in versions().items():
        if here != expected[name]:
            raise WorkerBroken(
                f"{platform.node()} has {name} {here} and the main process has {expected[name]}; "
                "install the same version everywhere"
            )
