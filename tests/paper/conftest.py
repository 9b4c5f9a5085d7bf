"""A whole experiment: two real runs of each mode on digits, with all controls."""

from __future__ import annotations

from pathlib import Path

import pytest

from epicortex.cli import main
from tests.paper.world import SMALL


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a finished experiment."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    assert main(["reproduce", "digits", "--runs", "2", "--controls", "all", *SMALL, "--out", str(out)]) == 0
    return out
