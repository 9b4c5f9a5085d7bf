"""A checkpoint is whole or not there; a damaged one is noticed, and the one before is used."""

from __future__ import annotations

import os
import pickle
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings

from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import StorageError
from epicortex.families.layered import LayeredFamily
from epicortex.storage import checkpoint
from epicortex.storage.atomic import Log, LogMark
from epicortex.storage.checkpoint import Checkpoint
from tests.storage.states import (
    SMALL_FAMILY,
    THOROUGH,
    identity,
    of_a_family,
    offsets,
    small_state,
    states,
)

NOTHING = LogMark(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
LOGS = {"history.jsonl": NOTHING, "networks.jsonl": NOTHING}
FILES = ("manifest.json", "state.json", "weights.safetensors")


def write(
    folder: Path,
    state: EcosystemState,
    *,
    family: LayeredFamily = SMALL_FAMILY,
    keep: int = 3,
    logs: dict[str, LogMark] = LOGS,
) -> None:
    folder.mkdir(exist_ok=True)
    checkpoint.write(folder, checkpoint.take(state, family), run="r", logs=logs, keep=keep)


def latest(run: Path, name: str = "r") -> tuple[Checkpoint | None, list[str]]:
    return checkpoint.read_latest(run, run=name, family=SMALL_FAMILY)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with the checkpoints of generations 1 and 2."""
    write(tmp_path / "checkpoints", small_state(1))
    write(tmp_path / "checkpoints", small_state(2))
    return tmp_path


@settings(max_examples=25)
@given(drawn=of_a_family(states))
def test_a_state_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[LayeredFamily, EcosystemState]
) -> None:
    family, state = drawn
    folder = tmp_path_factory.mktemp("checkpoints")
    write(folder, state, family=family)
    back = checkpoint.read(folder, state.generation, run="r", family=family)
    assert identity(back.state) == identity(state)
    shutil.rmtree(folder)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    for generation in range(1, 6):
        write(tmp_path, small_state(generation), keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000004", "00000005"]


def test_the_newest_is_read(run: Path) -> None:
    found, problems = latest(run)
    assert found is not None
    assert identity(found.state) == identity(small_state(2))
    assert problems == []


def test_without_any_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    assert latest(tmp_path) == (None, [])


@pytest.mark.parametrize("name", FILES)
def test_truncated_at_every_offset_the_one_before_is_used(run: Path, name: str) -> None:
    path = run / "checkpoints" / "00000002" / name
    whole = path.read_bytes()
    for length in offsets(len(whole)):
        path.write_bytes(whole[:length])
        found, problems = latest(run)
        assert found is not None
        assert found.state.generation == 1
        assert len(problems) == 1
        assert "generation 2 cannot be used" in problems[0]
        assert "\n" not in problems[0]


@pytest.mark.parametrize("name", FILES)
def test_with_any_byte_flipped_the_one_before_is_used(run: Path, name: str) -> None:
    path = run / "checkpoints" / "00000002" / name
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(3000 if THOROUGH else 200):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
        path.write_bytes(data)
        found, problems = latest(run)
        assert found is not None
        assert found.state.generation == 1
        assert len(problems) == 1


def test_if_all_are_damaged_one_line_says_so(run: Path) -> None:
    for path in run.glob("checkpoints/*/state.json"):
        path.write_bytes(b"{}")
    with pytest.raises(StorageError, match=r"cannot be resumed: .*generation 2.*generation 1") as caught:
        latest(run)
    assert "\n" not in str(caught.value)


class Bomb:
    """What a hostile file would like to have run."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/epicortex-was-here",)


@pytest.mark.parametrize("name", FILES)
def test_a_pickle_in_any_place_is_refused_and_does_not_run(run: Path, name: str) -> None:
    (run / "checkpoints" / "00000002" / name).write_bytes(pickle.dumps(Bomb()))
    found, problems = latest(run)
    assert found is not None
    assert found.state.generation == 1
    assert problems
    assert not Path("/tmp/epicortex-was-here").exists()


@pytest.mark.parametrize("name", FILES)
def test_links_pipes_and_folders_in_the_place_of_files_are_refused(run: Path, name: str) -> None:
    path = run / "checkpoints" / "00000002" / name
    kept = path.rename(run / "kept")
    for what in ("link", "device", "pipe", "folder"):
        if what in ("link", "device"):
            path.symlink_to(kept if what == "link" else "/dev/zero")
        elif what == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        found, _ = latest(run)
        assert found is not None
        assert found.state.generation == 1
        path.rmdir() if path.is_dir() else path.unlink()


def test_another_runs_checkpoint_is_not_taken(run: Path) -> None:
    with pytest.raises(StorageError, match="another run"):
        latest(run, "other")


def test_a_newer_format_is_refused_clearly(run: Path) -> None:
    from epicortex.storage import strict

    path = run / "checkpoints" / "00000002" / "manifest.json"
    values = strict.unseal(path.read_bytes(), "here")
    path.write_bytes(strict.sealed({**values, "format": 2}))
    with pytest.raises(StorageError, match="a newer EpiCortex wrote it"):
        checkpoint.read(run / "checkpoints", 2, family=SMALL_FAMILY)


def test_a_checkpoint_counts_only_with_the_logs_it_was_written_with(tmp_path: Path) -> None:
    log = Log(tmp_path / "history.jsonl")
    log.append(b"one\n")
    first = log.mark
    write(tmp_path / "checkpoints", small_state(1), logs={**LOGS, "history.jsonl": first})
    log.append(b"two\n")
    write(tmp_path / "checkpoints", small_state(2), logs={**LOGS, "history.jsonl": log.mark})
    log.close()
    path = tmp_path / "history.jsonl"
    for text in (b"one\ntwo\nthree", b"one\ntwo\n"):
        path.write_bytes(text)
        assert latest(tmp_path)[1] == []
    for text in (b"one\ntwo", b"one\ntwi\n", b"one\n"):
        path.write_bytes(text)
        found, problems = latest(tmp_path)
        assert found is not None
        assert found.state.generation == 1
        assert "history.jsonl is damaged" in problems[0]
    path.unlink()
    found, problems = latest(tmp_path)
    assert found is not None
    assert found.state.generation == 2
    assert found.logs["history.jsonl"].length == 0
    assert "history.jsonl is gone" in problems[0]


def test_going_back_behind_a_damaged_one_replaces_it(run: Path) -> None:
    (run / "checkpoints" / "00000002" / "state.json").write_bytes(b"")
    write(run / "checkpoints", small_state(2))
    assert latest(run)[1] == []
