"""What the engines of clusters cost: training against `processes`, and the main process's time for a network.

`python -m benchmarks.engines` starts an MPI job of three ranks in which all engines have two workers each and
take turns. 64 networks are trained on MNIST where EPICORTEX_DATA has it, else on noise of its size. Then
10,000 jobs that do nothing go through each engine, and the processor time of the main process is taken.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import row, seconds
from benchmarks.workers import MNIST, networks, random_data, setup, train
from epicortex.config import Config, TrainingConfig
from epicortex.data import DataSet, Scaling, load
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.engines import Engine, create, enlisted
from epicortex.errors import DataError
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import Genome
from epicortex.run.schedule import Schedule

WORKERS = 2
#: How much longer than with `processes` the same networks may take.
ALLOWED = {"ray": 1.10, "mpi": 1.05}
ALLOWED_DISPATCH = 2e-3


def overhead(names: Sequence[str], data: DataSet, count: int, pieces: int) -> bool:
    """The seconds of each engine for the same networks; the engines take turns at each piece of them."""
    grown = networks(data.input_shape, count)
    ready = setup(data)
    jobs = Schedule(ready.family).longest_first([Job(number, 1, 1, one) for number, one in enumerate(grown)])
    config = Config(training=TrainingConfig(workers=WORKERS))
    times: dict[str, list[float]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        engines = {name: stack.enter_context(create(name, ready, config)) for name in names}
        for engine in engines.values():
            train(engine, jobs[-2 * WORKERS :])
        for turn in range(pieces):
            for name in (names, names[::-1])[turn % 2]:
                times[name].append(seconds(partial(train, engines[name], jobs[turn::pieces])))
            print("  ", {name: round(took[-1], 2) for name, took in times.items()}, flush=True)
    print(f"{count} networks of {data.name}, {WORKERS} workers, in {pieces} pieces:")
    good = True
    for name in names:
        ratios = [ours / theirs for ours, theirs in zip(times[name], times["processes"], strict=True)]
        ratio = sum(times[name]) / sum(times["processes"])
        good = good and ratio <= ALLOWED.get(name, 1.0)
        seen = f"{ratio:.3f} (pieces {min(ratios):.3f} to {max(ratios):.3f})"
        row(f"{name} / processes", f"{seen}, {sum(times[name]):.1f} s")
    return good


def dispatch(names: Sequence[str], count: int) -> bool:
    """The main process's own time for a job that does nothing."""
    tiny = DataSet(
        "two samples",
        np.zeros((2, 1, 4, 4), np.uint8),
        np.arange(2),
        np.zeros((2, 1, 4, 4), np.uint8),
        np.arange(2),
        ("a", "b"),
        Scaling(255.0, (0.5,), (0.5,)),
    )
    phenotype = draw_phenotype(Genome((1, 4, 4), (), 2), rng=np.random.default_rng(1))
    config = Config(training=TrainingConfig(workers=WORKERS))
    ready = setup(tiny)
    jobs = [Job(number, 1, 1, phenotype, train=False) for number in range(count)]
    good = True
    print(f"{count:,} empty jobs, {WORKERS} workers:")
    for name in names:
        with create(name, ready, config) as engine:
            run(engine, jobs[: 10 * WORKERS])
            began, used, before = time.perf_counter(), time.process_time(), by_thread()
            run(engine, jobs)
            used, took, after = time.process_time() - used, time.perf_counter() - began, by_thread()
        good = good and used / count <= ALLOWED_DISPATCH
        row(f"{name}: main process, an empty job", f"{used / count * 1e3:.2f} ms, {count / took:,.0f} jobs/s")
        parts = sorted(((after[one] - before.get(one, 0.0)) / count * 1e6, one[1]) for one in after)[:-6:-1]
        print("    of it, µs:", ", ".join(f"{part:.0f} in {thread}" for part, thread in parts))
    return good


def by_thread() -> dict[tuple[int, str], float]:
    """The processor seconds of each thread of this process, Python's by their own names."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            head, _, words = (task / "stat").read_text().rpartition(") ")
            name = names.get(int(task.name), f"{head.partition('(')[2]} (not Python's)")
            ticks = sum(map(int, words.split()[11:13]))
            found[int(task.name), name] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def run(engine: Engine, jobs: Sequence[Job]) -> None:
    """As a run does it: a few more jobs are with the engine than it has workers."""
    waiting, running = list(reversed(jobs)), set[Future[Outcome]]()
    while waiting or running:
        while waiting and len(running) <= 2 * engine.workers:
            running.add(engine.submit(waiting.pop()))
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            assert future.result().failed is None


def mpiexec() -> list[str]:
    """The command that starts a rank for the main process and one for each worker."""
    beside = Path(sys.executable).with_name("mpiexec")
    return [str(beside) if beside.exists() else "mpiexec", "-n", str(WORKERS + 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--in-ranks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = ["processes"] + [
        name for name, module in (("ray", "ray"), ("mpi", "mpi4py")) if importlib.util.find_spec(module)
    ]
    if "mpi" in names and not options.in_ranks:
        command = [*mpiexec(), sys.executable, "-m", "benchmarks.engines", "--in-ranks", *sys.argv[1:]]
        sys.exit(subprocess.run(command, check=False).returncode)
    if "mpi" in names and enlisted("mpi"):
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            data = load("mnist")
        except DataError:
            data = random_data(*MNIST, Path(folder) / "mnist")
        good = [
            not options.networks or overhead(names, data, options.networks, options.pieces),
            not options.jobs or dispatch(names, options.jobs),
        ]
    if not all(good):
        sys.exit("an engine costs more than it may")


if __name__ == "__main__":
    main()
