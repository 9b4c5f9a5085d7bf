"""What a whole run costs beside training and scoring, at 111 networks from the start.

Runs the preset `paper` on a real data set (MNIST by default, in EPICORTEX_DATA) in this process and reads two
clocks after every generation: the run's own, which says how long workers waited, and the processor time of
this process and of its workers. Run it with `python -m benchmarks.overhead [--data mnist]`; `--profile FILE`
keeps a profile of the main thread (pstats).
"""

from __future__ import annotations

import argparse
import cProfile
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import row
from epicortex import evolve
from epicortex.config.resolving import resolve
from epicortex.ecosystem.history import Generation


def workers_seconds() -> float:
    """Processor time that the children of this process have used so far."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / tick


def main() -> None:
    """Print the share of every generation, and of all but the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--networks", type=int, default=111)
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    config = resolve(
        preset="paper",
        changes={
            "evolution.initial_networks": options.networks,
            "evolution.generations": options.generations,
            "training.workers": options.workers,
        },
    )
    began = time.process_time()
    clocks: list[tuple[float, float]] = []
    lines: list[Generation] = []

    def count(generation: Generation) -> None:
        clocks.append((time.process_time(), workers_seconds()))
        lines.append(generation)
        if len(clocks) == 1:
            print(f"start and first generation: {clocks[0][0] - began:.2f} s of the main process")
            return
        (own, theirs), (own_before, theirs_before) = clocks[-1], clocks[-2]
        taken = f"main {own - own_before:.3f} s, workers {theirs - theirs_before:.2f} s"
        print(f"generation {len(clocks)}: {taken} of processor time", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        run: Callable[[], object] = lambda: evolve(  # noqa: E731
            options.data, config, out=Path(folder) / "run", on_generation=count
        )
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(run)
            profile.dump_stats(options.profile)
        else:
            run()
    beside, total = (sum(getattr(g, name) for g in lines[1:]) for name in ("evolve_seconds", "seconds"))
    (first, first_workers), (last, last_workers) = clocks[0], clocks[-1]
    of = max(1, len(clocks) - 1)
    main_share = (last - first) / (last_workers - first_workers)
    what = f"{options.data}, {options.networks} networks"
    row(
        f"{what}: processor time of the main process / of its workers",
        f"{main_share:.2%} ({(last - first) / of:.3f} s against {(last_workers - first_workers) / of:.1f} s "
        "a generation)",
    )
    row(
        f"{what}: workers wait between two generations",
        f"{beside / of * 1e3:.0f} ms, {beside / total:.2%} of one",
    )


if __name__ == "__main__":
    main()
