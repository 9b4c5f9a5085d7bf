"""The suite over the engine `mpi`, in an MPI job of three ranks, and of two hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.contracts.cluster import mpiexec, needs_mpi
from tests.contracts.world import PATIENCE

pytestmark = needs_mpi
SUITE = [Path(__file__).with_name(name) for name in ("test_engines.py", "test_lives.py")]


def ranks(count: int, *arguments: object, **environment: str) -> str:
    """Run the suite in an MPI job; the last line that it printed."""
    done = subprocess.run(
        [*mpiexec(count), sys.executable, "-m", "tests.contracts.ranks", "-q", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * PATIENCE,
        env={**os.environ, "EPICORTEX_TEST_RANKS": "1", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_the_suite_holds_in_three_ranks() -> None:
    tests = sum(len(re.findall(r"^def test_", file.read_text(), re.MULTILINE)) for file in SUITE)
    assert re.fullmatch(rf"{tests} passed in .*", ranks(3, *SUITE))


def test_each_host_gets_the_data_once_and_works() -> None:
    """MPICH can take the ranks of one machine for those of two."""
    words = ranks(4, *SUITE, "-k", "same_bits or cannot_work", MPIR_CVAR_ODD_EVEN_CLIQUES="1")
    assert re.fullmatch(r"3 passed, \d+ deselected in .*", words)
