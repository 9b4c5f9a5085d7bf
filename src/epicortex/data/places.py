"""Where data lives: the data directory, and the cache of prepared data sets below it.

Nothing here reads a data set.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

from epicortex.errors import DataError


def user_cache_dir() -> Path:
    """The platform's folder for files that can be made again, with `epicortex` at its end."""
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    if sys.platform != "darwin" and Path(xdg).is_absolute():
        return Path(xdg) / "epicortex"
    try:
        home = Path.home()
    except RuntimeError:
        raise DataError(
            "this user has no home folder; name a folder for data with --data-dir or EPICORTEX_DATA"
        ) from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "epicortex"


def data_dir(explicit: Path | None = None) -> Path:
    """The folder of the built-in data sets: `explicit`, else EPICORTEX_DATA, else the user's cache folder.

    >>> data_dir(Path("somewhere"))
    PosixPath('somewhere')
    """
    if explicit is not None:
        return Path(explicit)
    named = os.environ.get("EPICORTEX_DATA", "")
    if not named:
        return user_cache_dir() / "data"
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        raise DataError(f"EPICORTEX_DATA is {named!r}: {error}") from None


def cache_dir(data: Path) -> Path | None:
    """A writable folder for prepared data: below `data`, else in the user's cache folder, else None."""
    if _writable(data / "cache"):
        return data / "cache"
    try:
        users = user_cache_dir() / "cache"
    except DataError:
        return None
    return users if _writable(users) else None


def cache_path(folder: Path, name: str, key: str) -> Path:
    """The cache file of a data set: one per source and settings, so that a changed source replaces it.

    >>> cache_path(Path("c"), "my pets!", "k").name
    'my-pets-8254c329.safetensors'
    """
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:60] or "data"
    return folder / f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.safetensors"


def _writable(folder: Path) -> bool:
    # Trying is the only honest test: access rights lie as root, on read-only mounts and on network drives.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
