"""Runs on Ray: on a cluster whose nodes join and die, and on a Ray of their own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import epicortex
from epicortex.config import Config, changed
from epicortex.engines import create
from epicortex.errors import EngineError
from tests.cluster.world import EVOLVE, at_work, run, start
from tests.contracts import cluster
from tests.contracts.fitness import right
from tests.contracts.world import (
    PATIENCE,
    descendants,
    jobs,
    results,
    settings,
    setup,
    small_data,
    state_of,
    until,
)
from tests.faults.world import same_bytes

pytestmark = cluster.needs_ray


@pytest.fixture(scope="module")
def nodes() -> Iterator[cluster.Nodes]:
    with cluster.started(2) as found:
        yield found


@dataclass(frozen=True)
class Placed:
    """Leaves a file named after the node and the process that it works on, and takes its time."""

    folder: Path
    seconds: float = 0.2

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        import ray

        node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "none"
        (self.folder / f"{node}-{os.getpid()}").touch()
        time.sleep(self.seconds)
        return right(logits, labels)


def node_ids(folder: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in folder.iterdir()}


def with_ray(config: Config, **ray: Any) -> Config:
    return changed(config, ray=ray)


def small_run(**training: Any) -> Config:
    return changed(
        epicortex.configure("paper"),
        evolution={
            "generations": 4,
            "initial_networks": 6,
            "max_networks": 8,
            "initial_species": 2,
            "max_species": 4,
        },
        training={"portion": 0.5, **training},
    )


def test_workers_are_spread_over_nodes_and_all_of_them_work(nodes: cluster.Nodes, tmp_path: Path) -> None:
    config = settings(workers=2)
    with create("ray", setup(config, fitness=Placed(tmp_path)), config) as engine:
        assert all(engine.submit(job).result(timeout=PATIENCE).failed is None for job in jobs(2))
        assert until(lambda: len(engine.pids) == 2)  # type: ignore[attr-defined]
        outcomes = [future.result(timeout=PATIENCE) for future in [engine.submit(job) for job in jobs(8)]]
    assert all(outcome.failed is None for outcome in outcomes)
    assert node_ids(tmp_path) == {node.node_id for node in nodes.working}


def test_the_data_is_in_memory_once_a_node(nodes: cluster.Nodes, tmp_path: Path) -> None:
    """Workers map the object store; what they have for themselves is far less than the data."""
    config = settings(workers=4, portion=0.01)
    large = small_data(1_500_000)
    with create("ray", setup(config, data=large, fitness=Placed(tmp_path)), config) as engine:
        for future in [engine.submit(job) for job in jobs(8)]:
            assert future.result(timeout=PATIENCE).failed is None
        own = {pid: _private(pid) for pid in engine.pids}  # type: ignore[attr-defined]
    size = large.x_train.nbytes + large.x_test.nbytes
    assert size > 90e6
    assert len(node_ids(tmp_path)) == 2
    with create("ray", setup(config), config) as engine:
        for future in [engine.submit(job) for job in jobs(8)]:
            assert future.result(timeout=PATIENCE).failed is None
        bare = [_private(pid) for pid in engine.pids]  # type: ignore[attr-defined]
    assert max(own.values()) - min(bare) < size / 2


def _private(pid: int) -> int:
    """The bytes that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_"))


def test_a_node_that_dies_during_a_run_costs_only_what_was_in_flight(
    nodes: cluster.Nodes, tmp_path: Path
) -> None:
    fitness = Placed(tmp_path / "places")
    fitness.folder.mkdir()
    victim = nodes.add()
    config = small_run(engine="ray", workers=3)
    killer = threading.Thread(target=_kill_at_work, args=(nodes, victim, fitness.folder))

    def kill(line: epicortex.Generation) -> None:
        if line.generation == 1:
            killer.start()

    epicortex.evolve(small_data(), config, out=tmp_path / "ray", fitness=fitness, on_generation=kill)
    killer.join()
    assert victim.node_id in node_ids(fitness.folder)
    assert victim not in nodes.working
    quick = Placed(fitness.folder, 0.0)
    epicortex.evolve(small_data(), small_run(engine="serial"), out=tmp_path / "serial", fitness=quick)
    assert same_bytes(tmp_path / "ray") == same_bytes(tmp_path / "serial")
    lines = (tmp_path / "ray" / "networks.jsonl").read_text()
    assert '"failed":"' not in lines


def _kill_at_work(nodes: cluster.Nodes, node: Any, folder: Path) -> None:
    """Kill the node as soon as it works on something new."""
    for path in folder.glob(f"{node.node_id}-*"):
        path.unlink()
    assert until(lambda: node.node_id in node_ids(folder))
    nodes.kill(node)


def test_workers_follow_the_nodes_that_join_and_leave(nodes: cluster.Nodes, tmp_path: Path) -> None:
    config = with_ray(settings(workers=None), num_cpus=4)
    with create("ray", setup(config, fitness=Placed(tmp_path)), config) as engine:
        assert until(lambda: engine.workers == 2)  # a node killed before may not be known to be
        new = nodes.add()
        assert until(lambda: engine.workers == 3)
        assert until(lambda: len(engine.pids) == 3)  # type: ignore[attr-defined]
        assert all(outcome.failed is None for outcome in results([engine.submit(job) for job in jobs(6)]))
        assert new.node_id in node_ids(tmp_path)
        nodes.kill(new)
        assert until(lambda: engine.workers == 2)
        assert all(outcome.failed is None for outcome in results([engine.submit(job) for job in jobs(6)]))


def test_a_network_gets_the_resources_it_asks_for(nodes: cluster.Nodes) -> None:
    assert len(nodes.working) == 2
    config = with_ray(settings(workers=None), num_cpus=0.5)
    with create("ray", None, config) as engine:
        assert until(lambda: engine.workers == 16)


def test_a_cluster_without_room_for_any_network_is_refused_with_a_reason(
    nodes: cluster.Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epicortex.engines.ray.START_LIMIT", 3.0)
    config = with_ray(settings(workers=1, hang_limit=3.0), num_cpus=64)
    refused = pytest.raises(EngineError, match="no node of the Ray cluster has 64 CPUs and 0 GPUs")
    with create("ray", setup(config), config) as engine, refused:
        engine.submit(jobs(1)[0]).result(timeout=PATIENCE)


def test_other_versions_on_a_node_are_refused(nodes: cluster.Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epicortex.engines.ray.versions", lambda: {**_versions(), "torch": "1.0"})
    config = settings(workers=1)
    with (
        create("ray", setup(config), config) as engine,
        pytest.raises(EngineError, match=r"has torch .* and the main process has 1\.0; install the same"),
    ):
        engine.submit(jobs(1)[0]).result(timeout=PATIENCE)


def _versions() -> dict[str, str]:
    from epicortex.versions import versions

    return versions()


def test_a_cluster_that_is_not_there_gives_one_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    address = "127.0.0.1:1"
    code, _, err = run(*EVOLVE, "--engine", "ray", "--ray.address", address, "--out", out, RAY_ADDRESS="")
    assert code == 4, err
    lines = [line for line in err.splitlines() if line.startswith("epicortex:")]
    assert len(lines) == 1
    assert f"the Ray cluster {address} cannot be joined" in lines[0]
    assert "refused" in lines[0]  # by the socket: Ray itself would have tried for two minutes
    assert "Traceback" not in err


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("no_cluster")
def test_a_ray_of_its_own_gives_the_same_bytes_and_is_gone_afterwards(
    undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    words = [*EVOLVE, "--engine", "ray", "--workers", "2", "--out", tmp_path / "run"]
    program = start(*words, TMPDIR=str(tmp_path / "t"))
    below: set[int] = set()

    def ended() -> bool:
        below.update(descendants(program.pid))
        return program.poll() is not None

    assert until(ended)
    out, err = program.communicate()
    assert program.returncode == 0, err
    assert err == ""
    assert out.startswith("champion")
    assert same_bytes(tmp_path / "run") == undisturbed
    assert len(below) > 3
    assert until(lambda: all(state_of(pid) in (None, "Z") for pid in below))
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.usefixtures("no_cluster")
def test_a_run_on_ray_stops_cleanly_or_dies_at_once_and_is_resumed(
    undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    words = [*EVOLVE, "--engine", "ray", "--workers", "1", "--out", tmp_path / "run"]
    for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        program = start(*words)
        assert at_work(tmp_path / "run", program)
        below = descendants(program.pid)
        assert len(below) > 3
        os.kill(program.pid, number)
        out, err = program.communicate(timeout=PATIENCE)
        assert program.returncode == code, err
        assert ("epicortex resume" in out) is (number == signal.SIGTERM)
        assert until(lambda: all(state_of(pid) in (None, "Z") for pid in below))  # noqa: B023
        words = ["resume", tmp_path / "run", "--quiet"]
    assert run(*words, "--engine", "processes")[0] == 0
    assert same_bytes(tmp_path / "run") == undisturbed
