"""Runs on Ray: on a cluster whose nodes join and die, and on a Ray of their own."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
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


def command_line(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return [""]


def session_folder(pids: set[int]) -> Path:
    """The folder of our own that these processes of Ray have their session in."""
    words = "\0".join(word for pid in pids for word in command_line(pid))
    (folder,) = set(re.findall(r"/[^\0=]*epicortex-ray-[^/\0]+(?=/)", words))
    return Path(folder)


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
        # first the journal, then an outcome in it
        assert at_work(tmp_path / "run", program)
        assert at_work(tmp_path / "run", program)
        below = descendants(program.pid)
        assert len(below) > 3
        folder = session_folder(below)
        os.kill(program.pid, number)
        out, err = program.communicate(timeout=PATIENCE)
        assert program.returncode == code, err
        assert ("epicortex resume" in out) is (number == signal.SIGTERM)
        assert until(lambda: all(state_of(pid) in (None, "Z") for pid in below), 30)  # noqa: B023
        assert until(lambda: not folder.exists(), 30)  # noqa: B023
        words = ["resume", tmp_path / "run", "--quiet", "--engine", "ray"]
        if number == signal.SIGTERM:
            assert f"epicortex resume {tmp_path / 'run'} --engine ray" in out
    words = ["resume", tmp_path / "run", "--quiet"]
    assert run(*words, "--engine", "processes")[0] == 0
    assert same_bytes(tmp_path / "run") == undisturbed


@pytest.mark.usefixtures("no_cluster")
def test_workers_import_nothing_from_the_folder_the_command_is_typed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was sent can hold anything; people change into it and resume it there."""
    # Ray, in tests before, may have put the current folder on this process's path
    monkeypatch.delenv("PYTHONPATH", raising=False)
    sent, sentinel = tmp_path / "sent", tmp_path / "executed"
    words = [*EVOLVE, "--training.hang-limit", "60"]
    assert run(*words, "--out", sent, "--engine", "serial", "--generations", "1")[0] == 0
    for name in ("torch", "numpy", "epicortex", "cloudpickle"):
        (sent / f"{name}.py").write_text(f"open({str(sentinel)!r}, 'w')\n")
    installed = tmp_path / "bin" / "epicortex"  # as an installer writes it
    installed.parent.mkdir()
    installed.write_text("import sys\nfrom epicortex.cli import main\nsys.exit(main())\n")
    for generations, engine in enumerate(("processes", "ray"), 2):
        more = ["resume", ".", "--engine", engine, "--generations", str(generations)]
        done = subprocess.run(
            [sys.executable, installed, *more], cwd=sent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert not sentinel.exists(), engine
    (sent / "epicortex.py").unlink()  # `python -m` would take it for the command
    code, _, err = run("resume", ".", "--engine", "processes", "--generations", "4", cwd=sent)
    assert code == 0, err
    assert not sentinel.exists()


def listening(pids: set[int]) -> list[tuple[IPv4Address | IPv6Address, int, int]]:
    """Address, port and process of every TCP socket that these processes listen on."""
    owners = {}
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                owners[str(entry.readlink())] = pid
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            owner = owners.get(f"socket:[{words[9]}]")
            if words[3] == "0A" and owner is not None:
                address, port = words[1].split(":")
                # four bytes at a time, in the order of this machine
                raw = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
                place = ip_address(raw)
                mapped = place.ipv4_mapped if isinstance(place, IPv6Address) else None
                found.append((mapped or place, int(port, 16), owner))
    return found


@pytest.mark.usefixtures("no_cluster")
def test_a_ray_of_its_own_is_closed_to_others(tmp_path: Path) -> None:
    program = start(*EVOLVE, "--engine", "ray", "--workers", "1", "--out", tmp_path / "run")
    try:
        # first the journal, then an outcome in it
        assert at_work(tmp_path / "run", program)
        assert at_work(tmp_path / "run", program)
        ours = {program.pid, *descendants(program.pid)}
        places = listening(ours)
        assert len(places) >= 4
        assert all(address.is_loopback for address, _, _ in places), places
        assert stat.S_IMODE(session_folder(ours).stat().st_mode) == 0o700
        # Another user of this machine knows the port, and has no token.
        (head,) = [pid for pid in ours if command_line(pid)[0].endswith("gcs_server")]
        (port,) = [port for _, port, pid in places if pid == head]
        code = f"import ray; ray.init(address='127.0.0.1:{port}'); print('joined')"
        for token in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}):
            mode = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "disabled"}
            other = subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, **mode, **token},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            with suppress(subprocess.TimeoutExpired):  # Ray may try for minutes
                assert other.wait(timeout=30) != 0
            other.kill()
            assert "joined" not in other.communicate()[0]
    finally:
        program.kill()
        program.communicate()


@contextmanager
def silent(answer: bytes) -> Iterator[int]:
    """The port of a server that takes every connection, and gives one answer at most."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.sendall(answer)
                    held.append(connection)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            for connection in held:
                connection.close()


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_server_that_is_no_ray_is_refused_in_seconds(tmp_path: Path, answer: bytes) -> None:
    with silent(answer) as port:
        began = time.monotonic()
        words = ["--engine", "ray", "--ray.address", f"127.0.0.1:{port}", "--out", tmp_path / "run"]
        code, _, err = run(*EVOLVE, *words)
        assert code == 4, err
        assert "cannot be joined" in err
        assert time.monotonic() - began < 60


def test_a_server_that_only_greets_as_ray_does_can_be_left(tmp_path: Path) -> None:
    """Ray itself tries for ten minutes; a signal ends the command meanwhile."""
    with silent(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])) as port:
        words = ["--engine", "ray", "--ray.address", f"127.0.0.1:{port}", "--out", tmp_path / "run"]
        program = start(*EVOLVE, *words)
        assert until((tmp_path / "run" / "config.toml").exists)
        time.sleep(3)
        assert program.poll() is None
        program.terminate()
        _, err = program.communicate(timeout=30)
        assert program.returncode == 128 + signal.SIGTERM, err
