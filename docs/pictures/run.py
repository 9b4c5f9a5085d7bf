"""Takes the picture of a run in a terminal: `python docs/pictures/run.py` (needs tmux).

Runs the real command in a terminal of 92×24, waits until it has polished a while, and saves what the screen
shows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parent.parent / "images"
COMMAND = "epicortex evolve digits --minutes 1"
PREPARE = f'export PATH="{Path(sys.executable).parent}:$PATH" PS1="$ "; clear'


def tmux(*arguments: str) -> str:
    """Run one command of tmux on a server of its own."""
    command = ["tmux", "-L", "epicortex", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Run, wait, save."""
    with tempfile.TemporaryDirectory() as folder:
        tmux("-f", "/dev/null", "new-session", "-d", "-x", "92", "-y", "24", "-c", folder, "bash", "--norc")
        try:
            tmux("send-keys", PREPARE, "Enter")
            time.sleep(1)
            tmux("send-keys", COMMAND, "Enter")
            screen = ""
            while "polish, generation" not in screen:
                time.sleep(0.5)
                screen = tmux("capture-pane", "-p")
            time.sleep(12)
            screen = tmux("capture-pane", "-e", "-p")
        finally:
            tmux("kill-server")
    with Path("/dev/null").open("w") as nowhere:
        console = Console(record=True, width=92, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(screen.rstrip()))
        console.save_svg(str(IMAGES / "run.svg"), title=COMMAND)


if __name__ == "__main__":
    main()
