"""A data set that lives in memory, made readable for workers: a file that is gone when this process is.

Data sets that have a file need none of this; workers map that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epicortex.data import DataSet


@dataclass(frozen=True, slots=True)
class SharedFile:
    """Where this process's children can open a data set."""

    path: Path
    orphans_remove: bool = False
    """Whether workers must remove the file when their parent dies without doing so."""


@contextmanager
def shared(data: DataSet, *, nameless: bool = Path("/proc/self/fd").is_dir()) -> Iterator[SharedFile]:
    """Write the data set to a temporary file, and remove that at the end.

    Where there is /proc the file has no name, so that the system frees it whatever ends this process.
    """
    make = tempfile.TemporaryFile if nameless else tempfile.NamedTemporaryFile
    with make(prefix="epicortex-") as stream:
        data.write_to(stream)
        stream.flush()
        if nameless:
            yield SharedFile(Path(f"/proc/{os.getpid()}/fd/{stream.fileno()}"))
        else:
            yield SharedFile(Path(stream.name), orphans_remove=True)
