"""`python -m epicortex` is the command `epicortex`."""

import sys

from epicortex.cli import main

if __name__ == "__main__":
    sys.exit(main())
