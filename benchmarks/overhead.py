"""What a whole run costs beside training and scoring: the part of a generation in which workers wait.

Runs `epicortex evolve` on a real data set (MNIST by default, in EPICORTEX_DATA) with 111 networks from the
start and reads the run's own clock. Run it with `python -m benchmarks.overhead [--data mnist]`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--networks", default="111")
    parser.add_argument("--generations", default="3")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "epicortex", "evolve", arguments.data, "--preset", "paper"]
        command += [
            "--evolution.initial-networks",
            arguments.networks,
            "--generations",
            arguments.generations,
        ]
        command += ["--quiet", "--out", str(run)]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - start
        lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    total, count = sum(line["seconds"] for line in lines), len(lines)
    beside = sum(line["evolve_seconds"] for line in lines)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{arguments.data}, {lines[-1]['networks']} networks, {count} generations of {total / count:.1f} s")
    waiting = f"{beside / count * 1e3:.0f} ms, {beside / total:.2%} of it"
    row(f"workers wait in a generation of {lines[-1]['networks']} networks", waiting)
    print(f"start, end and everything between generations: {wall - total:.1f} s")
    print(f"processor time of all processes: {used.ru_utime + used.ru_stime:.0f} s")


if __name__ == "__main__":
    main()
