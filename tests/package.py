"""Tries what would be published: each file in dist/, in an empty environment, does a whole run there.

`python -m tests.package [PYTHON...]`, as `make package` calls it; each PYTHON is an interpreter to try.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DIST = Path("dist")
RUN = (
    *("--preset", "paper", "--training.portion", "0.2", "--generations", "2", "--quiet"),
    *("--evolution.initial-networks", "6", "--evolution.max-networks", "8"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "4"),
)


def main(interpreters: list[str]) -> None:
    """Try every file with every interpreter."""
    files = sorted(path.resolve() for path in DIST.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    assert len(files) >= 2, "a wheel and a source archive are expected in dist/"
    for interpreter in interpreters:
        for file in files:
            with tempfile.TemporaryDirectory(prefix="epicortex-package-") as folder:
                attempt(interpreter, file, Path(folder))
            print(f"{file.name} works with {interpreter}", flush=True)


def attempt(interpreter: str, file: Path, folder: Path) -> None:
    """Install it, and do a run from beginning to end; nothing of this tree is in reach."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {name: str(folder / name) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME")}

    def run(*words: object) -> None:
        subprocess.run([str(word) for word in words], cwd=folder, env=environment, check=True)

    run(interpreter, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", file)
    run(programs / "python", "-m", "pip", "check")
    epicortex = programs / "epicortex"
    run(epicortex, "--version")
    run(epicortex, "evolve", "digits", *RUN, "--out", "run")
    run(epicortex, "resume", "run", "--generations", "3", "--quiet")
    run(epicortex, "show", "run")
    run(epicortex, "report", "run")
    run(epicortex, "export", "run", "--to", "model.pt2")
    run(programs / "python", "-c", "import epicortex; print(epicortex.load('run'))")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
