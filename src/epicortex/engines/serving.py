"""What every worker does, whichever engine leads it: settle in, get ready, do one job after another.

How messages reach it, and what becomes of it when it fails, is each engine's affair.
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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import EpiCortexError
from epicortex.versions import versions

if TYPE_CHECKING:
    from epicortex.data import DataSet
    from epicortex.evaluation import Trainer

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


def make_ready(content: bytes, data: DataSet | None = None) -> Trainer:
    """The trainer of a packed setup, over this data set or its own; `WorkerBroken` says why there is none."""
    try:
        trainer: Trainer = pickle.loads(content).trainer(data)
    except Exception as error:
        reason = str(error) if isinstance(error, EpiCortexError) else f"{type(error).__name__}: {error}"
        raise WorkerBroken(" ".join(reason.split())) from error
    return trainer


def check_versions(expected: Mapping[str, str]) -> None:
    """Refuse to work where the bits would come out otherwise than in the main process."""
    for name, here in versions().items():
        if here != expected[name]:
            raise WorkerBroken(
                f"{platform.node()} has {name} {here} and the main process has {expected[name]}; "
                "install the same version everywhere"
            )


def perform(
    trainer: Trainer,
    job: Job,
    *,
    heartbeat: Callable[[], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Do a job. Weights that did not change are left out: who sent them has them (see `with_weights`)."""
    outcome = trainer.run(job, heartbeat=heartbeat, should_stop=should_stop)
    return replace(outcome, phenotype=None) if outcome.phenotype is job.phenotype else outcome


def with_weights(outcome: Outcome, job: Job) -> Outcome:
    """An outcome that came without weights because they are the job's own."""
    if outcome.failed is None and outcome.phenotype is None:
        return replace(outcome, phenotype=job.phenotype)
    return outcome
