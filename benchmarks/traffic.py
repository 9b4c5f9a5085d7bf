"""What crosses the network in a generation, in bytes: a run on a cluster whose nodes meet over loopback.

`python -m benchmarks.traffic` evolves 64 networks on noise of MNIST's size, first on a Ray cluster of a head
and two nodes with a processor each, then in an MPI job of three ranks that MPICH takes for three hosts. It
reads the counter of the loopback device, headers, acknowledgements and all: nothing else should use it.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.engines import WORKERS, mpiexec
from benchmarks.measure import row
from benchmarks.workers import random_data
from epicortex.config import Config, changed
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import Engine, WorkerSetup, create, enlisted
from epicortex.engines.serving import outward
from epicortex.families.family import Family
from epicortex.run.lifecycle import evolve


class Counted(Engine):
    """An engine that adds up the sizes of what goes through it."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self._family: Family[Any]
        self.out = 0
        self.back = 0

    @property
    def workers(self) -> int:
        return self._inner.workers

    def prepare(self, setup: WorkerSetup) -> None:
        self._family = setup.family
        self._inner.prepare(setup)

    def submit(self, job: Job) -> Future[Outcome]:
        self.out += len(pickle.dumps(outward(job, self._family), protocol=5))
        future = self._inner.submit(job)
        future.add_done_callback(self._count)
        return future

    def close(self) -> None:
        self._inner.close()

    def _count(self, future: Future[Outcome]) -> None:
        outcome = future.result()
        encoded = replace(outcome, phenotype=self._family.encode(outcome.phenotype))
        self.back += len(pickle.dumps(encoded, protocol=5))


def crossed() -> int:
    """The bytes that the loopback device has carried."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    (words,) = [line.split() for line in lines if line.strip().startswith("lo:")]
    return int(words[1])


@contextmanager
def nodes() -> Iterator[None]:
    """A Ray cluster of a head that does no work and a node for each worker, in RAY_ADDRESS meanwhile."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(WORKERS):
            cluster.add_node(num_cpus=1)
        os.environ["RAY_ADDRESS"] = cluster.address
        yield
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        os.environ.update(before)
        cluster.shutdown()


def measure(name: str, networks: int, generations: int) -> None:
    """A run; the bytes before its first generation is over, and of each of the others."""
    config = changed(
        Config(),
        evolution={
            "generations": generations,
            "initial_networks": networks,
            "max_networks": networks,
            "initial_species": 4,
            "max_species": 8,
        },
        training={"portion": 0.002, "min_steps": 0, "fitness_on": "test", "workers": WORKERS},
    )
    seen: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        data = random_data((1, 28, 28), 60_000, 1_000, Path(folder) / "data")
        with Counted(create(name, None, config)) as engine:
            began = crossed()

            def note(_: Generation) -> None:
                seen.append((crossed() - began, engine.out, engine.back))

            evolve(data, config, engine=engine, on_generation=note)
    each = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(seen)]
    carried, out, back = (statistics.mean(column) / 1e6 for column in zip(*each, strict=True))
    size = (data.x_train.nbytes + data.x_test.nbytes) / 1e6
    row(f"{name}: networks of a generation, {networks} out / back", f"{out:.1f} / {back:.1f} MB")
    row(f"{name}: a generation over the network", f"{carried:.1f} MB, {carried / (out + back):.3f} of that")
    row(f"{name}: start and first generation, {size:.0f} MB of data", f"{seen[0][0] / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", default=["ray", "mpi"])
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--in-ranks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_ranks:
        if not enlisted("mpi"):
            measure("mpi", options.networks, options.generations)
        return
    if "ray" in options.engines:
        with nodes():
            measure("ray", options.networks, options.generations)
    if "mpi" in options.engines:
        sizes = ["--networks", str(options.networks), "--generations", str(options.generations)]
        command = [*mpiexec(), sys.executable, "-m", "benchmarks.traffic", "--in-ranks", *sizes]
        # every rank a host of its own, and all over TCP
        hosts = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
        sys.exit(subprocess.run(command, check=False, env={**os.environ, **hosts}).returncode)


if __name__ == "__main__":
    main()
