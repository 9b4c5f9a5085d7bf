"""The user's key: made once, for the user alone, and the same for all processes."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from epicortex.config import Config
from epicortex.storage import key
from epicortex.storage.folder import RunFolder, RunInfo, is_own

SIGN = "from epicortex.storage import key; print(key.signature(b'content'))"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_processes_that_begin_at_the_same_time_have_the_same_key(home: Path) -> None:
    signers = [
        subprocess.Popen([sys.executable, "-c", SIGN], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    said = {signer.communicate()[0].strip() for signer in signers}
    assert said == {key.signature(b"content")}
    assert [path.name for path in (home / "epicortex").iterdir()] == ["key"]
    assert stat.S_IMODE(key.place().stat().st_mode) == 0o600


def test_another_key_signs_otherwise(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = key.signature(b"content")
    assert mine is not None
    assert key.is_signed(b"content", mine)
    assert not key.is_signed(b"other", mine)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "other"))
    assert not key.is_signed(b"content", mine)


def test_a_damaged_key_is_made_anew(home: Path) -> None:
    first = key.signature(b"content")
    key.place().write_text("damaged")
    second = key.signature(b"content")
    assert second not in (None, first)
    assert second == key.signature(b"content")


def test_without_a_place_for_a_key_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert key.signature(b"content") is None
    RunFolder.create(tmp_path / "run", Config(), RunInfo.now(data="digits", data_digest="0")).close()
    assert not is_own(tmp_path / "run")


def test_a_run_is_its_users_own(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    RunFolder.create(run, Config(), RunInfo.now(data="digits", data_digest="0")).close()
    assert is_own(run)
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "other"))
    assert not is_own(run)
