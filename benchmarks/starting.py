"""What a run costs before its first network: the shortest there is, on native arithmetic and on torch.

Both take turns as commands of their own, with two workers. Processor time counts all processes of a run;
memory is that of the largest, as the system counts it at its peak. Run it with
`python -m benchmarks.starting`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import row

BACKENDS = ("native", "torch")
_RUN = ["evolve", "digits", "--preset", "layered", "--generations", "1", "--quiet", "--workers", "2"]
_SMALL = ["--evolution.initial-networks", "2", "--evolution.max-networks", "2"]
_STEPS = ["--training.portion", "0.1", "--training.min-steps", "1"]


def shortest(backend: str, folder: Path) -> tuple[float, float, float]:
    """Seconds by the clock, of processor time, and MB of the largest process."""
    command = [sys.executable, "-m", "epicortex", *_RUN, *_SMALL, *_STEPS]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--training.backend", backend, "--out", str(folder)], stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the run on {backend} ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print the median of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    seen: dict[str, list[tuple[float, float, float]]] = {backend: [] for backend in BACKENDS}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for backend in BACKENDS:
                seen[backend].append(shortest(backend, Path(folder, f"{backend}{number}")))
    for backend in BACKENDS:
        clock, processor, memory = map(statistics.median, zip(*seen[backend], strict=True))
        told = f"{clock:.1f} s by the clock, {processor:.2f} s of processor time, {memory:.0f} MB"
        row(f"the shortest run of digits, two workers, {backend}", told)


if __name__ == "__main__":
    main()
