"""The suite under `mpiexec -n 3 python -m tests.contracts.ranks`: rank 0 runs pytest, the others train."""

from __future__ import annotations

import sys

import pytest
from mpi4py import MPI

from epicortex.engines import enlisted


def main() -> int:
    """Rank 0's exit code is pytest's."""
    if MPI.COMM_WORLD.rank == 0:
        return int(pytest.main(sys.argv[1:]))
    return 0 if enlisted("mpi") else 1


if __name__ == "__main__":
    sys.exit(main())
