"""Files that are whole or not there: atomic replacement, append-only logs, bounded reading.

Everything that storage does to a disk goes through here, so that each failure (disk full, read-only, folder
gone) becomes one clear line. What the bytes mean is left to the modules beside this one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from epicortex.errors import StorageError, UnwritableError

_REASONS: Final = {
    errno.ENOSPC: "the disk is full; make space, then resume",
    errno.EDQUOT: "the disk quota is used up; make space, then resume",
    errno.EFBIG: "the file would pass the size limit of this process; raise the limit, then resume",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of this path is not a folder",
    errno.EISDIR: "this is a folder, not a file",
    errno.ELOOP: "this is a symbolic link, which is not followed here",
    errno.EIO: "the disk reports an error",
}
_TEMPORARY: Final = ".tmp"
_MOST_PIECES: Final = 1000
_SMALL: Final = 1 << 24

Bytes: TypeAlias = bytes | memoryview


@contextmanager
def explained(path: Path, doing: str = "written") -> Iterator[None]:
    """Turn an OSError about `path` into a StorageError of one line."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        if error.errno == errno.ENOENT and doing == "written":
            reason = "its folder is gone"
        kind = UnwritableError if doing in ("written", "removed") else StorageError
        raise kind(f"{path} cannot be {doing}: {reason}") from None


def replace_file(path: Path, chunks: Iterable[Bytes]) -> str:
    """Write a whole file in the place of `path`, durable and in one step; gives its SHA-256.

    A reader, or a crash at any moment, sees the old file or the new one, never a part. A link
    is replaced, not followed; a device or a pipe, or a link to one, is refused.
    """
    refuse_irregular(path)
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    with explained(path):
        try:
            digest = _write_new(temporary, chunks)
            os.replace(temporary, path)  # noqa: PTH105  the fault tests count calls of the os module
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    return digest


def replace_text(path: Path, text: str) -> None:
    """The same for a text that people read; half a surrogate pair, which is no UTF-8, becomes a "?"."""
    replace_file(path, [text.encode("utf-8", "replace")])


def write_file(path: Path, chunks: Iterable[Bytes]) -> str:
    """Write a new durable file and give its SHA-256; the name itself lasts when its folder is synced."""
    with explained(path):
        return _write_new(path, chunks)


def _write_new(path: Path, chunks: Iterable[Bytes]) -> str:
    digest = hashlib.sha256()
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        for chunk in chunks:
            digest.update(chunk)
            write_all(descriptor, chunk)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def write_all(descriptor: int, data: Bytes) -> None:
    """Write every byte: a nearly full disk takes a part before it refuses."""
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(descriptor, view) :]


def write_pieces(descriptor: int, pieces: list[Bytes]) -> None:
    """Write all pieces, in one call where the system takes them: without joining them in memory."""
    for start in range(0, len(pieces), _MOST_PIECES):
        some = pieces[start : start + _MOST_PIECES]
        written = os.writev(descriptor, some)
        for piece in some:
            if written < len(piece):
                write_all(descriptor, memoryview(piece)[written:])
            written = max(0, written - len(piece))


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)


def read_file(path: Path, *, limit: int) -> bytes:
    """All bytes of a regular file of at most `limit` bytes; links, pipes and devices are refused."""
    with explained(path, "read"):
        descriptor = open_regular(path)
        with os.fdopen(descriptor, "rb") as stream:
            size = os.fstat(descriptor).st_size
            if size > limit:
                raise StorageError(f"{path} is {size} bytes long, more than the {limit} such a file may have")
            _refuse_hollow(descriptor, size, path)
            try:
                return stream.read(size)
            except MemoryError:
                raise StorageError(f"{path} is {size} bytes long, more than there is memory for") from None


def _refuse_hollow(descriptor: int, size: int, path: Path) -> None:
    """Refuse a large file that is mostly holes: it takes no space on a disk, and all of it in memory."""
    if size < _SMALL or not hasattr(os, "SEEK_DATA"):
        return
    place = held = 0
    while place < size and held <= size // 2:
        try:
            start = os.lseek(descriptor, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on
                break
            return  # a file system that cannot tell
        place = os.lseek(descriptor, start, os.SEEK_HOLE)
        held += place - start
    os.lseek(descriptor, 0, os.SEEK_SET)
    if held <= size // 2:
        raise StorageError(f"{path} is mostly holes; this was not written by EpiCortex")


def open_regular(path: Path) -> int:
    """A descriptor for reading a regular file; never waits for the other end of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path} is not a regular file")
    return descriptor


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at its path: not removed, moved or replaced.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     is_at(file.fileno(), Path(file.name)), is_at(file.fileno(), Path(tempfile.gettempdir()))
    (True, False)
    """
    try:
        there = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(os.fstat(descriptor), there)


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link where a folder of ours should be: writing through it could land anywhere."""
    with explained(path, "read"):
        if path.is_symlink():
            raise StorageError(f"{path} is a symbolic link; give the folder it leads to: {path.readlink()}")


def refuse_irregular(path: Path) -> None:
    """Refuse to write a file where there is something else; a link is taken for what it leads to."""
    with explained(path, "looked at"):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return  # nothing there, or what the write itself will say better
    if stat.S_ISDIR(mode):
        raise StorageError(f"{path} cannot be written: it is a folder")
    if not stat.S_ISREG(mode):
        raise StorageError(f"{path} cannot be written: it is a device, a pipe or a socket")


def make_folder(path: Path) -> None:
    """A folder of ours, created durably where it is missing; a link or a file in its place is refused."""
    refuse_link(path)
    with explained(path):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def remove_tree(path: Path) -> None:
    """Remove a folder with all it holds; links in it are removed, not followed."""
    with explained(path, "removed"):
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)


def sweep(folder: Path) -> None:
    """Remove what interrupted writes left in a folder; only for whoever holds the lock of the run."""
    with explained(folder, "read"):
        leftovers = [entry for entry in folder.iterdir() if is_temporary(entry.name)]
    for entry in leftovers:
        remove_tree(entry)


def is_temporary(name: str) -> bool:
    """Whether a name is one that only an unfinished write has."""
    return name.startswith(".") and name.endswith(_TEMPORARY)


@dataclass(frozen=True, slots=True)
class LogMark:
    """How far a log goes and what it says up to there."""

    length: int
    sha256: str


class Log:
    """An append-only file. It knows its mark, so that a later process can cut it back and trust the rest."""

    def __init__(self, path: Path) -> None:
        """Open a log where it ends; `cut` first if a part of it is to go."""
        self.path = path
        self._digest = hashlib.sha256()
        self._length = 0
        with explained(path):
            self._descriptor = self._open()
            sync_folder(path.parent)
            for block in iter(lambda: os.read(self._descriptor, 1 << 20), b""):
                self._digest.update(block)
                self._length += len(block)

    @property
    def mark(self) -> LogMark:
        """Length and hash of all that was appended."""
        return LogMark(self._length, self._digest.hexdigest())

    def restore(self) -> bool:
        """Put the file back where somebody removed or replaced it; True if that was needed.

        What was written is still there behind the open file. A file that somebody cut off is another matter,
        and an `UnwritableError`: a run must not go on as if its lines were there.
        """
        with explained(self.path):
            if os.fstat(self._descriptor).st_size < self._length:
                raise UnwritableError(f"{self.path} was cut off by somebody else; resume to go on")
            if is_at(self._descriptor, self.path):
                return False
            replace_file(self.path, self._blocks())
            os.close(self._descriptor)
            self._descriptor = self._open()
        return True

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self.path, flags, 0o666)

    def _blocks(self) -> Iterator[bytes]:
        place = 0
        while place < self._length:
            block = os.pread(self._descriptor, min(1 << 20, self._length - place), place)
            yield block
            place += len(block)

    def append(self, data: bytes) -> None:
        """Add bytes at the end; they survive this process at once, a power cut after `sync`."""
        with explained(self.path):
            write_all(self._descriptor, data)
        self._digest.update(data)
        self._length += len(data)

    def sync(self) -> None:
        """Make all that was appended durable."""
        with explained(self.path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def matches(path: Path, mark: LogMark, *, exactly: bool = False) -> bool:
    """Whether a log still begins with what it said when the mark was taken, or is exactly that."""
    if mark.length == 0 and not path.exists():
        return True
    digest, left = hashlib.sha256(), mark.length
    with explained(path, "read"), os.fdopen(open_regular(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < mark.length or (exactly and size > mark.length):
            return False
        _refuse_hollow(stream.fileno(), size, path)
        while left and (block := stream.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return not left and digest.hexdigest() == mark.sha256


#: The mark of a log that has nothing in it.
EMPTY: Final = LogMark(0, hashlib.sha256().hexdigest())


def cut(path: Path, length: int) -> None:
    """Cut a log back to a length, durably."""
    if length == 0 and not path.exists():
        return
    with explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size != length:
                os.ftruncate(descriptor, length)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
