"""Gets one file over HTTP: from the first mirror that has it right, resumable, whole or not at all.

Bytes go to a `.part` file that a later call continues; it takes the file's name only once length and checksum
are right. Which files a data set needs is left to `catalog`.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from epicortex.data.checksums import hasher_like
from epicortex.data.options import Progress
from epicortex.data.readers.builtin import Remote
from epicortex.errors import DataError

TIMEOUT = 30.0
_CHUNK = 2**18
_TRIES = 4


class _MirrorError(Exception):
    """This mirror will not do; the next one may."""


class _CutError(Exception):
    """The connection broke; the same mirror may go on from there."""


def download(
    remote: Remote,
    folder: Path,
    *,
    mirrors: Sequence[str] | None = None,
    progress: Progress | None = None,
    timeout: float = TIMEOUT,
) -> Path:
    """Get `remote` into `folder`; addresses in `mirrors` replace its own. A file that is right is kept."""
    target = folder / remote.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if is_right(target, remote):
            return target
        with _part_file(folder / f"{remote.name}.part") as part:
            _fill(part, remote, mirrors or remote.mirrors, progress, timeout)
            part.flush()
            os.fsync(part.fileno())
            (folder / f"{remote.name}.part").replace(target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def is_right(path: Path, remote: Remote) -> bool:
    """Whether `path` is that file, byte for byte."""
    if not path.is_file() or path.stat().st_size != remote.size:
        return False
    with path.open("rb") as stream:
        return _checksum(stream, remote) == remote.checksum


def _fill(
    part: IO[bytes], remote: Remote, mirrors: Sequence[str], progress: Progress | None, timeout: float
) -> None:
    """Bring the open `.part` file to its full and right content, from whichever mirror can."""
    failures = []
    for address in mirrors:
        try:
            _from_mirror(part, remote, address, progress, timeout)
        except _MirrorError as error:
            failures.append(f"{address}: {error}")
        else:
            return
    raise DataError(
        f"{remote.name} could not be fetched ({'; '.join(failures)}); try later, or set EPICORTEX_MIRROR"
    )


def _from_mirror(
    part: IO[bytes], remote: Remote, address: str, progress: Progress | None, timeout: float
) -> None:
    cuts = 0
    while True:
        start = part.seek(0, os.SEEK_END)
        if start > remote.size:
            start = _restart(part)
        try:
            if start < remote.size:
                _transfer(part, start, remote, address, progress, timeout)
        except _CutError as error:
            cuts += 1
            if cuts >= _TRIES:
                raise _MirrorError(str(error)) from None
            continue
        part.seek(0)
        if _checksum(part, remote) == remote.checksum:
            return
        _restart(part)
        # What was there before may be to blame, not this mirror: then it gets a second chance.
        if start == 0:
            raise _MirrorError("it has other content (wrong checksum)")


def _transfer(
    part: IO[bytes], start: int, remote: Remote, address: str, progress: Progress | None, timeout: float
) -> None:
    """Append what is missing; returns when the length is right."""
    with _connect(address, start, timeout) as response:
        if start and not _resumes_at(response, start):
            start = _restart(part)
        done = start
        while True:
            try:
                chunk = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise _CutError(f"the connection broke ({error or type(error).__name__})") from None
            if not chunk:
                break
            done += len(chunk)
            if done > remote.size:
                _restart(part)
                raise _MirrorError(f"it sends more than the {remote.size} bytes expected")
            part.write(chunk)
            if progress:
                progress(remote.name, done, remote.size)
        part.flush()
    if done < remote.size:
        raise _CutError(f"it ended after {done} of {remote.size} bytes")


def _connect(address: str, start: int, timeout: float) -> http.client.HTTPResponse:
    if urlsplit(address).scheme not in ("http", "https"):
        raise _MirrorError("only http and https addresses are fetched")
    headers = {"User-Agent": "epicortex", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        response: http.client.HTTPResponse = _opener().open(
            urllib.request.Request(address, headers=headers), timeout=timeout
        )
    except urllib.error.HTTPError as error:
        error.close()
        raise _MirrorError(f"it answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _MirrorError(str(error.reason)) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _MirrorError(str(error) or type(error).__name__) from None
    return response


def _opener() -> urllib.request.OpenerDirector:
    # Put together by hand: urllib's own set would open file: and ftp: addresses as well.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPRedirectHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _resumes_at(response: http.client.HTTPResponse, start: int) -> bool:
    said = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return response.status == http.HTTPStatus.PARTIAL_CONTENT and said is not None and int(said[1]) == start


def _restart(part: IO[bytes]) -> int:
    part.seek(0)
    part.truncate()
    return 0


def _checksum(stream: IO[bytes], remote: Remote) -> str:
    digest = hasher_like(remote.checksum)
    while chunk := stream.read(2**20):
        digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _part_file(path: Path) -> Iterator[IO[bytes]]:
    """The half-done file, open for one process at a time; the lock goes with the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "r+b") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(
                f"{path} is being fetched by another process; wait until it has finished"
            ) from None
        yield part
