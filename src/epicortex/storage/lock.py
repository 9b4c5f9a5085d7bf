"""One process at a time on a folder, by a lock of the operating system: a crash leaves none behind."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType

from epicortex.errors import StorageError
from epicortex.storage import atomic

NAME = "lock"
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


class Lock:
    """The lock of a folder, held from creation to `close`.

    The file stays, the lock goes with the process. Workers do not inherit it.
    """

    def __init__(self, folder: Path, *, wait: bool = False) -> None:
        """Take the lock, or refuse at once with a `StorageError` that names who has it; or `wait` for it."""
        path = folder / NAME
        with atomic.explained(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor: int | None = os.open(path, flags, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            holder = os.read(self._descriptor, 100).decode("ascii", "replace").strip()
            self.close()
            if error.errno not in _TAKEN:
                raise StorageError(f"{path} cannot be locked: {error.strerror}") from None
            by = f" (process {holder})" if holder.isdecimal() else ""
            raise StorageError(
                f"{folder} is in use by another process{by}; wait for it, or stop it"
            ) from None
        try:
            with atomic.explained(path):
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, f"{os.getpid()}\n".encode())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
