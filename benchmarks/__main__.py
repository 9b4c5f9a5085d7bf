"""All benchmarks, one after another, and a table of what they saw: `make bench`."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("layers", "loops", "core", "step_cost", "workers", "overhead", "native", "parts", "ways")


def run(name: str) -> tuple[list[str], int]:
    """One benchmark, printed as it goes; its rows of the table, and its exit code."""
    command = [sys.executable, "-u", "-m", f"benchmarks.{name}"]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("| "):
                rows.append(line.rstrip())
    return rows, process.returncode


def main() -> None:
    """Run all; end with the table."""
    failed, rows = [], ["| what | seen |", "|---|---|"]
    for name in BENCHMARKS:
        print(f"\n== {name} ==", flush=True)
        found, code = run(name)
        rows += found
        if code:
            failed.append(name)
    print("", *rows, sep="\n")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
