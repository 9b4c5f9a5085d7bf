"""The memory of a run over its generations: every process's proportional set size, once a minute.

`python -m benchmarks.memory RUN PID` watches a run that is going on in the process PID, until it ends, and
draws `memory.svg`; rows go to `memory.jsonl`, and `python -m benchmarks.memory --draw` draws from those.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.measure import row
from epicortex.pages.plots import Figure, axis
from epicortex.pages.svg import picture

ROWS = Path("memory.jsonl")


def proportional(process: int) -> float:
    """Megabytes, pages that are shared counted in parts."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def family(process: int) -> list[int]:
    """A process and its children, in order of age."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *map(int, children)]


def watch(run: Path, process: int, seconds: float) -> None:
    """Append a row every so many seconds until the process ends."""
    while True:
        try:
            sizes = [proportional(one) for one in family(process)]
        except OSError:
            return
        history = run / "history.jsonl"
        generation = len(history.read_text().splitlines()) if history.exists() else 0
        with ROWS.open("a") as file:
            file.write(json.dumps({"generation": generation, "megabytes": sizes}) + "\n")
        time.sleep(seconds)


def draw(rows: list[dict[str, list[float]]]) -> Figure:
    """One line for the main process and one for each worker."""
    names = ("main process", "first worker", "second worker")
    traces = [
        {
            "x": [each["generation"] for each in rows if len(each["megabytes"]) > place],
            "y": [each["megabytes"][place] for each in rows if len(each["megabytes"]) > place],
            "name": name,
            "mode": "lines",
            "line": {"color": f"var(--{role})", "width": 2},
        }
        for place, (name, role) in enumerate(zip(names, ("best", "mean", "offspring"), strict=True))
    ]
    return {"data": traces, "layout": {"xaxis": axis("generation"), "yaxis": axis("MB")}}


def main() -> None:
    """Watch, or only draw; print what the largest worker had early and late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("process", type=int, nargs="?")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    if not options.draw:
        watch(options.run, options.process, options.seconds)
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    Path("memory.svg").write_text(picture(draw(rows), "Memory of a run over its generations"))
    tenth = max(1, len(rows) // 10)
    for name, part in (("second tenth", rows[tenth : 2 * tenth]), ("last tenth", rows[-tenth:])):
        largest = max(max(each["megabytes"][1:]) for each in part)
        row(f"memory of the larger worker, {name} of a run", f"{largest:.0f} MB")


if __name__ == "__main__":
    main()
