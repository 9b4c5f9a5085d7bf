"""What happens to worker processes: killed, stopped, orphaned.

Only `processes` and `ray` replace workers and kill those that hang. `mpi` does neither: a rank that dies ends
the job, and one that hangs holds it up (see `tests/cluster`). `serial` has no workers to lose.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from epicortex.ecosystem.jobs import Job
from epicortex.engines import Engine, create, process
from epicortex.engines.processes import ProcessEngine
from epicortex.errors import EngineError
from tests.contracts.fitness import Deadly, Slow
from tests.contracts.world import (
    PATIENCE,
    abandoned,
    children,
    jobs,
    marked,
    network,
    same,
    segments,
    settings,
    setup,
    small_data,
    state_of,
    until,
)

Start: TypeAlias = Callable[..., subprocess.Popen[str]]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that trains, written by a user who knows nothing of workers: no guard, own functions."""
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent("""
            import os, sys, time
            from epicortex.engines import create
            from tests.contracts.world import jobs, settings, setup

            def slow(logits, labels):
                print("scoring")
                time.sleep(SECONDS)
                return 0.25

            SECONDS = float(sys.argv[1])
            config = settings(workers=WORKERS)
            engine = create("processes", setup(config, fitness=slow), config)
            futures = [engine.submit(job) for job in jobs(4)]
            print(futures[0].result().fitness, *engine.pids, flush=True)
            END
        """)
    )
    return path


@pytest.fixture
def start(script: Path, tmp_path: Path) -> Iterator[Start]:
    """Runs the script with an end of its own; its temporary files go to tmp_path / "tmp"."""
    (tmp_path / "tmp").mkdir()
    started: list[subprocess.Popen[str]] = []

    def run(end: str, seconds: float, workers: int = 1) -> subprocess.Popen[str]:
        text = script.read_text().replace("WORKERS", str(workers))
        script.write_text(text.replace("END", textwrap.dedent(end)))
        program = subprocess.Popen(
            [sys.executable, str(script), str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path.cwd()), "TMPDIR": str(tmp_path / "tmp")},
            start_new_session=True,
        )
        started.append(program)
        return program

    yield run
    for program in started:
        program.kill()
        with program:
            pass


def pids(engine: Engine) -> tuple[int, ...]:
    """The process ids of the engine's workers."""
    found: tuple[int, ...] = engine.pids  # type: ignore[attr-defined]
    return found


def running_pids(program: subprocess.Popen[str]) -> list[int]:
    assert program.stdout is not None
    fitness, *pids = program.stdout.readline().split()
    assert fitness == "0.25"
    return list(map(int, pids))


def test_workers_killed_at_work_are_replaced_and_their_networks_get_the_same_bits(
    replacing: str, tmp_path: Path
) -> None:
    config = settings()
    slow = Slow(0.3, tmp_path)
    expected = [setup(config, fitness=slow).evaluator().run(job) for job in jobs(6)]
    before = len(list(tmp_path.iterdir()))
    with create(replacing, setup(config, fitness=slow), config) as engine:
        futures = [engine.submit(job) for job in jobs(6)]
        assert until(lambda: len(list(tmp_path.iterdir())) >= before + 2)
        killed = pids(engine)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        outcomes = [future.result(timeout=PATIENCE) for future in futures]
        assert not set(killed) & set(pids(engine))
        assert until(lambda: all(state_of(pid) is None for pid in killed))
    assert all(map(same, outcomes, expected))
    repeated = len(list(tmp_path.iterdir())) - before - 6
    assert repeated <= engine.workers


def test_a_stopped_worker_is_killed_after_its_silence_and_its_network_gets_the_same_bits(
    replacing: str,
) -> None:
    config = settings(workers=1, hang_limit=4.0)
    with create(replacing, setup(config), config) as engine:
        first = engine.submit(Job(1, 1, 1, network())).result(timeout=PATIENCE)
        (pid,) = pids(engine)
        os.kill(pid, signal.SIGSTOP)
        again = engine.submit(Job(1, 1, 1, network())).result(timeout=PATIENCE)
        assert until(lambda: state_of(pid) is None)
        assert pids(engine) != (pid,)
    assert same(first, again)


def test_a_worker_that_gives_signs_of_life_may_take_longer_than_the_limit(
    replacing: str, tmp_path: Path
) -> None:
    # a sign of life after each scoring, and both together take longer than the limit
    config = settings(workers=1, hang_limit=5.0)
    with create(replacing, setup(config, fitness=Slow(3.0, tmp_path)), config) as engine:
        outcome = engine.submit(Job(1, 1, 1, network(), newborn=True)).result(timeout=PATIENCE)
    assert outcome.failed is None
    assert len(list(tmp_path.iterdir())) == 2


def test_a_network_that_kills_its_worker_three_times_fails_and_a_third_try_may_succeed(
    replacing: str, tmp_path: Path
) -> None:
    config = settings()
    with create(replacing, setup(config, fitness=Deadly(tmp_path, times=5)), config) as engine:
        fails, *others = [engine.submit(job) for job in (Job(9, 1, 1, marked()), *jobs(4))]
        how = {"processes": "signal 9", "ray": "its process died"}[replacing]
        assert fails.result(timeout=PATIENCE).failed == f"killed its worker 3 times ({how})"
        succeeds = engine.submit(Job(10, 1, 1, marked()))
        assert succeeds.result(timeout=PATIENCE).failed is None
        assert all(other.result(timeout=PATIENCE).failed is None for other in others)
    assert len(list(tmp_path.iterdir())) == 5


def test_an_idle_worker_that_dies_is_reaped_and_replaced() -> None:
    config, before = settings(workers=1), children()
    with ProcessEngine(config) as engine:
        engine.prepare(setup(config))
        engine.submit(jobs(1)[0]).result(timeout=PATIENCE)
        (pid,) = engine.pids
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: state_of(pid) is None and len(engine.pids) == 1)
        assert engine.submit(jobs(1)[0]).result(timeout=PATIENCE).failed is None
    assert children() <= before


@pytest.mark.slow
def test_a_time_in_which_the_program_itself_was_stopped_does_not_count_as_silence(
    script: Path, start: Start
) -> None:
    script.write_text(script.read_text().replace("workers=WORKERS", "workers=2, hang_limit=10"))
    program = start("print(*engine.pids, [f.result().fitness for f in futures])", 1)
    pids = running_pids(program)
    for pid in (program.pid, *pids):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(11)
    for pid in (program.pid, *pids):
        os.kill(pid, signal.SIGCONT)
    out, err = program.communicate(timeout=PATIENCE)
    assert set(map(int, out.split("[")[0].split())) == set(pids)
    assert out.count("0.25") == 4, err


def test_workers_that_cannot_start_break_the_engine_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_BOOT", "raise SystemExit(7)")
    config, before = settings(workers=2), children()
    with ProcessEngine(config) as engine:
        future = engine.submit(jobs(1)[0])
        engine.prepare(setup(config))
        with pytest.raises(EngineError, match=r"3 workers in a row died while starting \(exit code 7\)"):
            future.result(timeout=PATIENCE)
    assert children() <= before


def test_scripts_need_no_guard_and_what_their_functions_print_stays_out_of_the_output(
    start: Start,
) -> None:
    program = start("[f.result() for f in futures]; engine.close()", 0)
    out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert out.startswith("0.25")
    assert "scoring" not in out
    assert err.count("scoring") == 4
    assert "Traceback" not in err


def test_workers_go_when_the_program_is_killed_even_stopped_ones(start: Start, tmp_path: Path) -> None:
    shared = segments()
    program = start("time.sleep(600)", 1, workers=2)
    pids = running_pids(program)
    assert len(pids) == 2
    assert all(state_of(pid) for pid in pids)
    os.kill(pids[0], signal.SIGSTOP)
    program.kill()
    program.communicate()
    assert until(lambda: all(state_of(pid) in (None, "Z") for pid in pids))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert until(lambda: not abandoned(shared))


def test_workers_go_when_the_program_ends_without_closing(start: Start, tmp_path: Path) -> None:
    program = start("raise SystemExit(3)", 1)
    pids = running_pids(program)
    _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 3
    assert "Traceback" not in err
    assert until(lambda: all(state_of(pid) in (None, "Z") for pid in pids))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_signals_for_the_program_do_not_disturb_its_workers(start: Start) -> None:
    end = """
        print(*engine.pids, [f.result().fitness for f in futures])
        engine.close()
    """
    program = start(end, 0.5)
    pids = running_pids(program)
    for pid in pids:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
    out, err = program.communicate(timeout=PATIENCE)
    assert set(map(int, out.split("[")[0].split())) == set(pids)
    assert out.count("0.25") == 4, err
    assert "Traceback" not in err


def test_a_worker_that_finds_other_data_in_the_file_refuses_to_work(tmp_path: Path) -> None:
    config = settings(workers=1)
    data = small_data().save(tmp_path / "data")
    with ProcessEngine(config) as engine:
        engine.prepare(setup(config, data=data))
        assert engine.submit(jobs(1)[0]).result(timeout=PATIENCE).failed is None
        small_data(seed=2).save(tmp_path / "data")
        os.kill(engine.pids[0], signal.SIGKILL)
        with pytest.raises(EngineError, match="was replaced by other data"):
            engine.submit(jobs(1)[0]).result(timeout=PATIENCE)
