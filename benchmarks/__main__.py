"""All benchmarks, one after another: `make bench`."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("core", "step_cost", "workers", "overhead")

if __name__ == "__main__":
    failed = []
    for name in BENCHMARKS:
        print(f"\n== {name} ==", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
