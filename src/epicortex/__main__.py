"""`python -m epicortex` is the command `epicortex`, and like it imports nothing from the current folder."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the current folder first; what lies there, such as a torch.py that was sent, is not ours.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
        del sys.path[0]
    from epicortex.cli import main

    sys.exit(main())
