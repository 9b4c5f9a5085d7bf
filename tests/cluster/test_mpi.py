"""Runs in MPI jobs, as they are typed; ranks that die or hang; scripts of one's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.world import EVOLVE, at_work, run, start
from tests.contracts.cluster import mpiexec, needs_mpi
from tests.contracts.world import PATIENCE, descendants, state_of, until
from tests.faults.world import same_bytes

pytestmark = needs_mpi


def ranks_of(program: subprocess.Popen[str], count: int) -> list[int]:
    """The process ids of an MPI job's ranks, in the order of ranks."""

    def found() -> dict[int, int]:
        numbers = {pid: _rank(pid) for pid in descendants(program.pid)}
        return {rank: pid for pid, rank in numbers.items() if rank is not None}

    assert until(lambda: len(found()) == count)
    return [pid for _, pid in sorted(found().items())]


def _rank(pid: int) -> int | None:
    """Which rank a process is; mpiexec says so in its environment. Only Python processes count."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    ranks = [int(line.partition(b"=")[2]) for line in environment if line.startswith(b"PMI_RANK=")]
    return ranks[0] if ranks and b"epicortex" in words else None


def lines_of(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("epicortex:")]


def test_a_run_in_three_ranks_gives_the_same_bytes(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    words = [*EVOLVE, "--engine", "mpi", "--out", tmp_path / "run"]
    code, out, err = run(*words, before=mpiexec(3))
    assert code == 0, err
    assert err == ""
    assert out.startswith("champion")
    assert out.count("champion") == 1
    assert same_bytes(tmp_path / "run") == undisturbed


def test_several_networks_at_a_time_give_the_same_bytes(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    words = [*EVOLVE, "--engine", "mpi", "--mpi.chunk", "3", "--out", tmp_path / "run"]
    code, _, err = run(*words, before=mpiexec(3))
    assert code == 0, err
    assert same_bytes(tmp_path / "run") == undisturbed


@pytest.mark.parametrize("rank", [0, 2])
def test_a_dead_rank_ends_the_job_and_resume_goes_on(
    rank: int, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    program = start(*EVOLVE, "--engine", "mpi", "--out", folder, before=mpiexec(3))
    assert at_work(folder, program)
    ranks = ranks_of(program, 3)
    os.kill(ranks[rank], signal.SIGKILL)
    program.communicate(timeout=PATIENCE)
    assert program.returncode != 0
    assert until(lambda: all(state_of(pid) in (None, "Z") for pid in ranks))
    # the engine is in the run's own config
    code, _, err = run("resume", folder, "--quiet", "--engine", "mpi", before=mpiexec(3))
    assert code == 0, err
    assert same_bytes(folder) == undisturbed


def test_a_signal_to_rank_0_stops_the_job_cleanly(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = start(*EVOLVE, "--engine", "mpi", "--out", folder, before=mpiexec(3))
    assert at_work(folder, program)
    for pid in ranks_of(program, 3):
        os.kill(pid, signal.SIGTERM)  # as Slurm does, to all ranks
    out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 128 + signal.SIGTERM, err
    assert out.count("epicortex resume") == 1
    code, _, err = run("resume", folder, "--quiet", "--engine", "processes")
    assert code == 0, err
    assert same_bytes(folder) == undisturbed


def test_without_other_ranks_there_is_nobody_to_train(tmp_path: Path) -> None:
    code, _, err = run(*EVOLVE, "--engine", "mpi", "--out", tmp_path / "run")
    assert code == 2
    (line,) = err.splitlines()
    assert "mpiexec -n 3 epicortex evolve digits --engine mpi" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [["evolve", "no-such-data", "--engine", "mpi"], [*EVOLVE, "--engine", "mpi", "--plugin", "no-such.py"]],
)
def test_what_rank_0_refuses_ends_the_job_with_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*words, before=mpiexec(3), PYTHONPATH=os.pathsep.join(map(os.path.abspath, sys.path)))
    assert code == 2, err
    assert len(lines_of(err)) == 1, err
    assert "Traceback" not in err


def script(folder: Path, body: str) -> list[str]:
    """A program of one's own."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(body))
    return [*mpiexec(3), sys.executable, str(path)]


def test_a_script_evolves_in_rank_0_with_functions_of_its_own(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
        import epicortex
        from tests.contracts.world import small_data

        def own(logits, labels):
            print("scoring")
            return float((logits.argmax(1) == labels).float().mean())

        small = {"generations": 2, "initial_networks": 4, "max_networks": 4, "initial_species": 2,
                 "max_species": 2}
        changes = {f"evolution.{name}": value for name, value in small.items()}
        config = epicortex.configure("paper", changes | {"training.engine": "mpi"})
        for _ in range(2):  # one run after another
            result = epicortex.evolve(small_data(), config, fitness=own)
            print(len(result.history), "generations", flush=True)
        """,
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 generations\n2 generations\n"
    assert "scoring" in done.stderr


def test_a_rank_that_hangs_cannot_be_killed_but_ends_with_the_job(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        f"""
        import time
        from pathlib import Path
        from epicortex.engines import create
        from tests.contracts.world import jobs, settings, setup

        def hang(logits, labels):
            Path({str(tmp_path / "hangs")!r}).touch()
            time.sleep(100_000)

        config = settings(hang_limit=1)
        engine = create("mpi", setup(config, fitness=hang), config)
        engine.submit(jobs(1)[0])
        while not Path({str(tmp_path / "hangs")!r}).exists():
            time.sleep(0.05)
        engine.close()
        """,
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment
    )
    assert done.returncode != 0
    assert len(lines_of(done.stderr)) == 1
    assert "a rank has not answered" in done.stderr
