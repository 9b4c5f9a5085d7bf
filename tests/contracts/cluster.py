"""Clusters on this machine: a real Ray of several node processes, which can be killed, and real MPI jobs."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.world import descendants, state_of, until


def needs(module: str) -> list[pytest.MarkDecorator]:
    """Marks of a test that is left out, saying so, where an extra is not installed."""
    missing = importlib.util.find_spec(module) is None
    reason = f"{module} is not installed (make cluster-test)"
    return [pytest.mark.cluster, pytest.mark.skipif(missing, reason=reason)]


needs_ray, needs_mpi = needs("ray"), needs("mpi4py")


def mpiexec(ranks: int) -> list[str]:
    """The command that starts so many ranks: that of the mpich wheel, or the machine's own."""
    beside = Path(sys.executable).with_name("mpiexec")
    return [str(beside) if beside.exists() else "mpiexec", "-n", str(ranks)]


@dataclass
class Nodes:
    """The nodes of a cluster; the head has no processors, so that it does no work."""

    cluster: Any
    working: list[Any] = field(default_factory=list)

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, cpus: int = 4) -> Any:
        """A node joins."""
        node = self.cluster.add_node(num_cpus=cpus)
        self.working.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Kill every process of a node at once, as a power cut would."""
        victims = [each.process.pid for group in node.all_processes.values() for each in group]
        victims += [pid for parent in victims for pid in descendants(parent)]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for group in node.all_processes.values():
            for each in group:
                each.process.wait()
        assert until(lambda: all(state_of(pid) in (None, "Z") for pid in victims))
        self.working.remove(node)
        self.cluster.worker_nodes.remove(node)


@contextmanager
def started(nodes: int) -> Iterator[Nodes]:
    """A cluster with so many working nodes of four places each, in RAY_ADDRESS meanwhile."""
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # The fitness functions of the tests are found on every node as an installed package would be.
    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), root])
    found = Nodes(Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}))
    try:
        for _ in range(nodes):
            found.add()
        found.cluster.wait_for_nodes()
        os.environ["RAY_ADDRESS"] = found.address
        yield found
    finally:
        for name in ("RAY_ADDRESS", "PYTHONPATH"):
            os.environ.pop(name, None)
        os.environ.update(before)
        found.cluster.shutdown()
