"""One process at a time on a folder, by a lock of the operating system: a crash leaves none behind.

The folder itself is locked, which nobody can remove and keep; a file in it says who holds the lock. Where a
file system cannot lock folders, as some network ones, the file is all there is, and `check` watches over it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType

from epicortex.errors import StorageError, UnwritableError
from epicortex.storage import atomic

NAME = "lock"
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)
#: What a file system answers that locks only files open for writing, or nothing at all.
_NO_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP)


class Lock:
    """The lock of a folder, held from creation to `close`.

    The file stays, the lock goes with the process. Workers do not inherit it.
    """

    def __init__(self, folder: Path, *, wait: bool = False) -> None:
        """Take the lock, or refuse at once with a `StorageError` that names who has it; or `wait` for it."""
        self._path = folder / NAME
        self._descriptors: list[int] = []
        try:
            with atomic.explained(self._path):
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                self._file = self._opened(self._path, flags)
                whole = self._opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            how = fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
            self._folder_locked = self._lock(whole, how, _NO_FOLDERS)
            self._lock(self._file, how)
            with atomic.explained(self._path):
                os.ftruncate(self._file, 0)
                os.write(self._file, f"{os.getpid()}\n".encode())
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise `UnwritableError` if the folder may no longer be ours alone, because its lock was removed."""
        if not self._folder_locked and not atomic.is_at(self._file, self._path):
            raise UnwritableError(
                f"{self._path} was removed, so that another process may be at work there; resume to go on"
            )

    def close(self) -> None:
        """Give the lock back."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _opened(self, path: Path, flags: int) -> int:
        self._descriptors.append(os.open(path, flags, 0o666))
        return self._descriptors[-1]

    def _lock(self, descriptor: int, how: int, unable: tuple[int, ...] = ()) -> bool:
        """Lock it; False if that cannot be done here."""
        try:
            fcntl.flock(descriptor, how)
        except OSError as error:
            if error.errno in unable:
                return False
            if error.errno not in _TAKEN:
                raise StorageError(f"{self._path} cannot be locked: {error.strerror}") from None
            holder = os.read(self._file, 100).decode("ascii", "replace").strip()
            by = f" (process {holder})" if holder.isdecimal() else ""
            raise StorageError(
                f"{self._path.parent} is in use by another process{by}; wait for it, or stop it"
            ) from None
        return True

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_held(folder: Path) -> bool:
    """Whether some process holds the lock of a folder, or of the file in it, at this moment."""
    for path in (folder, folder / NAME):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                return True
        finally:
            os.close(descriptor)
    return False
