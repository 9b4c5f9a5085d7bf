"""A data set that has no file here, made readable for other processes: a file that is gone when this one is.

Data sets that have a file need none of this; workers map that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from epicortex.errors import EngineError


@dataclass(frozen=True, slots=True)
class SharedFile:
    """Where other processes of this machine can open a data set."""

    path: Path
    orphans_remove: bool = False
    """Whether workers must remove the file when their parent dies without doing so."""


@contextmanager
def shared(
    write: Callable[[IO[bytes]], None], *, nameless: bool = Path("/proc/self/fd").is_dir()
) -> Iterator[SharedFile]:
    """Write a data set to a temporary file, and remove that at the end.

    Where there is /proc the file has no name, so that the system frees it whatever ends this process.
    """
    make = tempfile.TemporaryFile if nameless else tempfile.NamedTemporaryFile
    with make(prefix="epicortex-") as stream:
        try:
            write(stream)
            stream.flush()
        except OSError as error:
            raise EngineError(
                f"the data cannot be written to {tempfile.gettempdir()} for the workers: {error.strerror}; "
                "make space, set TMPDIR to another folder, or training.engine to serial"
            ) from error
        if nameless:
            yield SharedFile(Path(f"/proc/{os.getpid()}/fd/{stream.fileno()}"))
        else:
            yield SharedFile(Path(stream.name), orphans_remove=True)
