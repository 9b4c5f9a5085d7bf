"""Where data is looked for: what is asked for, else EPICORTEX_DATA, else the user's cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epicortex.data import data_dir, load
from epicortex.data.places import user_cache_dir
from epicortex.errors import DataError


def test_the_folder_asked_for_goes_before_the_environment_and_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "named"))
    assert data_dir(tmp_path / "asked") == tmp_path / "asked"
    assert data_dir() == tmp_path / "named"
    monkeypatch.setenv("EPICORTEX_DATA", "")
    assert data_dir() == user_cache_dir() / "data"


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has a place of its own")
def test_the_cache_follows_the_xdg_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache_dir() == tmp_path / "xdg" / "epicortex"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache_dir() == tmp_path / ".cache" / "epicortex"


def test_a_user_that_does_not_exist_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICORTEX_DATA", "~nobody-here/data")
    with pytest.raises(DataError, match="EPICORTEX_DATA is '~nobody-here/data'"):
        data_dir()


def test_importing_data_loads_no_heavy_library() -> None:
    heavy = {"torch", "PIL", "sklearn", "scipy", "ssl", "pyarrow"}
    script = f"import sys, epicortex.data; print(*({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_a_data_set_without_a_name_on_disk_can_be_mapped(tmp_path: Path) -> None:
    data = load("digits", data_dir=tmp_path)
    with (tmp_path / "gone").open("w+b") as stream:
        (tmp_path / "gone").unlink()
        data.write_to(stream)
        stream.flush()
        again = type(data).open(f"/proc/{os.getpid()}/fd/{stream.fileno()}", verify=True)
    assert again.digest == data.digest
