"""A data set in memory that workers must read: shared through a file that leaves nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from epicortex.data import DataSet
from epicortex.engines.sharing import shared
from tests.contracts.world import small_data


@pytest.mark.parametrize("nameless", [True, False])
def test_the_file_holds_the_data_set_and_is_gone_afterwards(
    nameless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if nameless and not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = small_data()
    with shared(data.write_to, nameless=nameless) as file:
        assert len(list(tmp_path.iterdir())) == (0 if nameless else 1)
        assert file.orphans_remove is not nameless
        opened = DataSet.open(file.path)
        assert opened.digest == data.digest
        assert np.array_equal(opened.x_train, data.x_train)
    assert list(tmp_path.iterdir()) == []
    assert not file.path.exists()
