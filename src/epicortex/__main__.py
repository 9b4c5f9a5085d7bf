"""Where the command begins: `epicortex`, and `python -m epicortex`, which like it imports nothing from here.

An impatient Ctrl-C before a command has begun ends it with one line; all else is left to `cli`.
"""

import os
import signal
import sys
from pathlib import Path


def main() -> int:
    """Run the command and give its exit code."""
    impatient = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if impatient:
        # Not as an exception: imports would swallow it here and there, print it, or make another of it.
        signal.signal(signal.SIGINT, _stop)
    from epicortex.cli import main as run

    return run(impatient=impatient)


def _stop(*_: object) -> None:
    os.write(2, b"epicortex: stopped\n")
    os._exit(130)


if __name__ == "__main__":
    # Python puts the current folder first; what lies there, such as a torch.py that was sent, is not ours.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
        del sys.path[0]
    sys.exit(main())
