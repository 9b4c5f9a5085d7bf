"""A folder in a zip or tar file: its pictures and tables, unpacked where nobody else looks, and for a while.

Only plain files below the folder are taken, under names that cannot lead out of it. Links, devices and
hidden files are left. How much is unpacked is counted while it is, whatever the archive claims.
"""

from __future__ import annotations

import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from epicortex.data.options import DataOptions
from epicortex.data.readers.pictures import ENDINGS
from epicortex.data.scanning import is_hidden
from epicortex.data.wording import shown
from epicortex.errors import DataError, EpiCortexError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_WANTED = ENDINGS | {".csv"}
_MAX_FILES = 2_000_000
_CHUNK = 1 << 20
_LONGEST = 200


def is_archive(path: Path) -> bool:
    """Whether a file is called like an archive.

    >>> is_archive(Path("cats.tar.gz")), is_archive(Path("cats.npz"))
    (True, False)
    """
    return path.name.lower().endswith(ARCHIVES)


@contextmanager
def unpacked(path: Path, options: DataOptions, spool: Path | None) -> Iterator[Path]:
    """The folder that an archive holds; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="epicortex-", dir=spool) as place:
        root = Path(place)
        try:
            members = _zipped(path) if path.name.lower().endswith(".zip") else _tarred(path)
            _unpack(members, root, path, options.max_bytes)
        except EpiCortexError:
            raise
        except OSError as error:
            raise DataError(f"{path} cannot be unpacked: {error.strerror or error}") from None
        except Exception as error:  # what damaged archives provoke has no end
            raise DataError(f"{path} is no sound archive: {shown(error) or type(error).__name__}") from None
        yield _inner(root)


def _zipped(path: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir() or stat.S_ISLNK(member.external_attr >> 16):
                continue
            if member.flag_bits & 1:
                raise DataError(f"{path} is encrypted; unpack it yourself, and give the folder")
            yield member.filename, lambda member=member: archive.open(member)  # type: ignore[misc]


def _tarred(path: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if member.isfile():
                yield member.name, lambda member=member: archive.extractfile(member)  # type: ignore[misc]


def _unpack(
    members: Iterator[tuple[str, Callable[[], IO[bytes] | None]]], root: Path, path: Path, limit: int
) -> None:
    left, taken = limit, 0
    for name, opened in members:
        parts = _parts(name, path)
        if parts is None:
            continue
        target = root.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = opened()
        if stream is None:
            continue
        with stream, target.open("xb") as out:
            while chunk := stream.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise DataError(f"{path} holds more than {limit >> 20} MB (--data.max-bytes)")
                out.write(chunk)
        taken += 1
        if taken > _MAX_FILES:
            raise DataError(f"{path} holds more than {_MAX_FILES} files")
    if not taken:
        raise DataError(f"{path} holds no pictures ({', '.join(sorted(ENDINGS))})")


def _parts(name: str, path: Path) -> tuple[str, ...] | None:
    """The folders and the name of a member, None if it is not wanted; one that leads out is refused."""
    plain = PurePosixPath(name.replace("\\", "/"))
    parts = plain.parts
    if plain.suffix.lower() not in _WANTED:
        return None
    if plain.is_absolute() or ".." in parts or any("\0" in part or len(part) > _LONGEST for part in parts):
        raise DataError(f"{path} holds {shown(name)!r}, a name that leads out of it")
    return None if any(map(is_hidden, parts)) else parts


def _inner(root: Path) -> Path:
    """The folder with the classes: archives often hold a single folder with everything in it."""
    while True:
        entries = list(root.iterdir())
        if len(entries) != 1 or not entries[0].is_dir():
            return root
        if not any(one.is_dir() or one.suffix.lower() == ".csv" for one in entries[0].iterdir()):
            return root
        root = entries[0]
