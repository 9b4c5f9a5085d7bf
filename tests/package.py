"""Tries what would be published: each file in dist/, in an empty environment, does a whole run there.

Both bring native arithmetic; the source archive is then installed once more where there is no compiler.

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

    def run(*words: object, path: str = os.environ["PATH"]) -> str:
        """Let a command's output go to the terminal, and give what it wrote to standard output."""
        own = {**environment, "PATH": path}
        found = subprocess.run(
            [str(word) for word in words], cwd=folder, env=own, check=True, stdout=subprocess.PIPE, text=True
        )
        print(found.stdout, end="", flush=True)
        return found.stdout

    run(interpreter, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    install = (programs / "python", "-m", "pip", "install", "--quiet")
    run(*install, file)
    run(programs / "python", "-m", "pip", "check")
    epicortex = programs / "epicortex"
    assert "native arithmetic" in run(epicortex, "--version")
    run(epicortex, "evolve", "digits", *RUN, "--out", "run")
    run(epicortex, "resume", "run", "--generations", "3", "--quiet")
    run(epicortex, "show", "run")
    run(epicortex, "report", "run")
    run(epicortex, "export", "run", "--to", "model.pt2")
    run(programs / "python", "-c", "import epicortex; print(epicortex.load('run'))")
    if file.name.endswith(".tar.gz"):
        run(*install, "--no-deps", "--force-reinstall", "--no-cache-dir", file, path=str(programs))
        assert "torch; the native library was not built" in run(epicortex, "--version")
        run(epicortex, "evolve", "digits", *RUN, "--out", "without-compiler")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
