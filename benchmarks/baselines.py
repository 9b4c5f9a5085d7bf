"""Ours against its controls, its ablations and what people write by hand: same data, cores, minutes, honesty.

`python -m benchmarks.baselines mnist cifar10 --minutes 10 --seeds 1 2 3 --out FILE.jsonl` runs one arm after
another, each with all the cores, and adds a line for every run that starts and ends. What the file has is not
run again. `python -m benchmarks.baselines --tables FILE.jsonl` writes the tables and plots of
docs/results/default.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.arms import ARMS, NEED_OURS
from benchmarks.ledger import Key, Ledger
from benchmarks.measure import matrix_speed
from epicortex.data.catalog import BUILT_INS
from epicortex.errors import EpiCortexError
from epicortex.versions import versions

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "results" / "default.md"
USUAL: Final = (
    "ours",
    "founder",
    "scratch",
    "optuna",
    "cnn",
    "lenet",
    "no-averaging",
    "no-shapes",
    "naive",
    "uniform",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """As the command line says."""
    options = _parsed(arguments)
    try:
        if options.tables:
            from benchmarks import results_page

            results_page.write(options.tables, options.page)
            return 0
        keys = [
            Key(_source(data), options.minutes, options.cores, arm, seed)
            for data in options.data
            for seed in options.seeds
            for arm in _ordered(options.arms)
        ]
        return run_all(keys, Ledger(options.out), again=options.again)
    except EpiCortexError as error:
        print(f"baselines: {error}", file=sys.stderr)
        return 2


def run_all(keys: Sequence[Key], ledger: Ledger, *, again: bool = False) -> int:
    """Run what is missing, or `again` all of it, one after another; 1 if a run failed."""
    for run in ledger.runs():
        if run.ending == "broken off":
            print(f"run {run.number} ({run.key.name}) was broken off; it stays in the file as such")
    failed = False
    for place, key in enumerate(keys, 1):
        if ledger.finished(key) and not again:
            print(f"[{place}/{len(keys)}] {key.name}: done already", flush=True)
            continue
        print(f"[{place}/{len(keys)}] {key.name} …", flush=True)
        failed |= not run_one(key, ledger)
    return 1 if failed else 0


def run_one(key: Key, ledger: Ledger) -> bool:
    """Run one arm in a process of its own; whether it came to its end."""
    number = ledger.start(key, **_circumstances())
    request: dict[str, Any] = {
        **{name: getattr(key, name) for name in Key.__dataclass_fields__},
        "folder": str(ledger.path.with_suffix("") / f"{number}-{key.name}"),
    }
    if key.arm in NEED_OURS:
        ours = ledger.finished(Key(key.data, key.minutes, key.cores, "ours", key.seed))
        request["ours"] = ours and dict(ours.figures)
    Path(request["folder"]).parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.arms"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=_environment(key.cores),
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        ledger.end(number, key, "failed", {"reason": reason})
        print(f"  failed: {reason}", flush=True)
        return False
    figures = json.loads(done.stdout.splitlines()[-1])
    ledger.end(number, key, "finished", figures)
    size = "" if figures["parameters"] is None else f", {figures['parameters']:,} parameters"
    print(f"  test {figures['test']:.2%}{size}, {figures['seconds']:.0f} s", flush=True)
    return True


def _circumstances() -> dict[str, Any]:
    """When and on what a run begins."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    load, speed = os.getloadavg()[0], matrix_speed() / 1e9
    return {"at": now, "load": round(load, 2), "speed": round(speed, 1), "commit": commit(), **versions()}


def commit() -> str:
    """The commit of this code, with a + where files differ from it."""
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.decode().strip() + ("+" if changed.stdout else "")


def _environment(cores: int) -> dict[str, str]:
    """Nobody takes more threads than there are cores for it."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(cores))
    return {**os.environ, **threads}


def _source(data: str) -> str:
    return data if data in BUILT_INS else str(Path(data).expanduser().absolute())


def _ordered(arms: Sequence[str]) -> list[str]:
    """Ours first: others rest on it."""
    return sorted(dict.fromkeys(arms), key=lambda arm: arm != "ours")


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.baselines", description=(__doc__ or "").split("\n\n", 1)[0]
    )
    parser.add_argument("data", nargs="*", help="built-in names or paths of data sets")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each run (10)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(USUAL), metavar="ARM")
    parser.add_argument("--cores", type=int, default=2, help="workers or threads of each run (2)")
    parser.add_argument("--out", type=Path, default=Path("baselines.jsonl"), help="the file of runs")
    parser.add_argument("--again", action="store_true", help="also what the file has; the last one counts")
    parser.add_argument("--tables", type=Path, metavar="FILE", help="write tables and plots, run nothing")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that they go into")
    options = parser.parse_args(arguments)
    if not options.data and not options.tables:
        parser.error("name at least one data set, or --tables FILE")
    return options


if __name__ == "__main__":
    sys.exit(main())
