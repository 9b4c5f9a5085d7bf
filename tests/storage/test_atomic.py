"""Files are whole or not there, and what goes wrong with a disk is one clear line."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from epicortex.errors import StorageError
from epicortex.storage import atomic
from epicortex.storage.atomic import Log, LogMark


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for content in (b"one", b"another", b""):
        digest = atomic.replace_file(path, [content[:2], memoryview(content[2:])])
        assert path.read_bytes() == content
        assert len(digest) == 64
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    atomic.replace_file(path, [b"old"])

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic.replace_file(path, pieces())
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_link_in_the_place_of_a_file_is_replaced_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    link = tmp_path / "f"
    link.symlink_to(outside)
    atomic.replace_file(link, [b"new"])
    assert outside.read_bytes() == b"precious"
    assert link.read_bytes() == b"new"
    assert not link.is_symlink()


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.rmtree(folder)
    with pytest.raises(StorageError, match=r"f cannot be written: its folder is gone"):
        atomic.replace_file(folder / "f", [b"x"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="permission denied"):
        atomic.replace_file(tmp_path / "f", [b"x"])


LIMITED = """
import resource, sys
from pathlib import Path
from epicortex.errors import StorageError
from epicortex.storage import atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
path = Path(sys.argv[1])
log = atomic.Log(path.with_name("log"))
log.append(b"x" * 900)
for action in (lambda: atomic.replace_file(path, [b"y" * 2000]), lambda: log.append(b"z" * 900)):
    try:
        action()
    except StorageError as error:
        print(error)
"""


def test_past_a_file_size_limit_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("cannot be written: the file would pass the size limit" in line for line in lines)
    assert path.read_bytes() == b"old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["f", "log"]
    assert (tmp_path / "log").read_bytes().startswith(b"x" * 900)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device", "missing", "large"])
def test_only_small_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    if kind == "link":
        (tmp_path / "g").write_bytes(b"x")
        path.symlink_to(tmp_path / "g")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "large":
        with path.open("wb") as stream:
            stream.truncate(10**12)
    with pytest.raises(StorageError):
        atomic.read_file(path, limit=1000)


def test_a_log_knows_its_mark_and_can_be_cut_back_to_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path)
    assert atomic.matches(path, log.mark)
    log.append(b"one\n")
    mark = log.mark
    log.append(b"two\n")
    log.close()
    assert atomic.matches(path, mark)
    atomic.cut(path, mark.length)
    again = Log(path)
    assert again.mark == mark
    again.append(b"zwei\n")
    again.close()
    assert path.read_bytes() == b"one\nzwei\n"


def test_a_log_that_is_shorter_or_other_than_its_mark_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = Log(path)
    log.append(b"one\ntwo\n")
    log.close()
    mark = log.mark
    path.write_bytes(b"one\ntwo")
    assert not atomic.matches(path, mark)
    path.write_bytes(b"one\ntwO\n")
    assert not atomic.matches(path, mark)
    assert not atomic.matches(path, LogMark(10**15, mark.sha256))


def test_sweeping_removes_what_unfinished_writes_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".f.tmp").write_bytes(b"half")
    (tmp_path / ".00000003.tmp").mkdir()
    (tmp_path / ".00000003.tmp" / "state.json").write_bytes(b"half")
    (tmp_path / "mine.tmp").write_bytes(b"x")
    (tmp_path / ".hidden").write_bytes(b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    (tmp_path / ".link.tmp").symlink_to(outside)
    atomic.sweep(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".hidden", "mine.tmp", "outside"]
    assert (outside / "precious").exists()


def test_pieces_are_all_written_also_where_the_system_takes_only_a_part(tmp_path: Path) -> None:
    path = tmp_path / "f"
    pieces: list[atomic.Bytes] = [bytes([n % 256]) * (n % 7) for n in range(5000)]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    atomic.write_pieces(descriptor, pieces)
    os.close(descriptor)
    assert path.read_bytes() == b"".join(pieces)


def test_the_limit_of_open_files_is_one_line(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(StorageError, match="Too many open files"):
            atomic.replace_file(tmp_path / "f", [b"x"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "link to a device", "folder"])
def test_nothing_but_a_regular_file_is_replaced(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "device":
            try:
                os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("only root makes devices")
        elif kind == "socket":
            listener.bind(str(place))
        elif kind == "link to a device":
            place.symlink_to("/dev/null")
        else:
            place.mkdir()
        before = place.lstat()
        with pytest.raises(StorageError, match=r"cannot be written: it is a "):
            atomic.replace_file(place, [b"x"])
        assert os.path.samestat(before, place.lstat())
