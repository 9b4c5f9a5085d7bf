"""What every cluster test compares with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.world import EVOLVE, run
from tests.faults.world import same_bytes


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared data is kept for the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICORTEX_DATA", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def undisturbed(data_folder: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The run in one process."""
    folder: Path = tmp_path_factory.mktemp("runs") / "serial"
    code, _, err = run(*EVOLVE, "--engine", "serial", "--out", folder)
    assert code == 0, err
    return same_bytes(folder)
