"""The user's own key: what is sealed with it was written by this user, and not sent by another.

It is made once, in the user's data folder, for the user's eyes only. It protects no secret: it tells a run
that may say where to read and write from one that somebody else made up.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_KEY: Final = re.compile(r"[0-9a-f]{64}\n")


def signature(content: bytes) -> str | None:
    """What only this user can write beneath a content; None where there is no place for a key."""
    try:
        key = _read() or _make()
    except (OSError, RuntimeError):  # the latter where a user has no home folder
        return None
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def is_signed(content: bytes, by: str) -> bool:
    """Whether a signature beneath a content is this user's."""
    own = signature(content)
    return own is not None and hmac.compare_digest(own, by)


def place() -> Path:
    """The file of the key."""
    xdg = os.environ.get("XDG_DATA_HOME", "")
    if sys.platform != "darwin" and Path(xdg).is_absolute():
        return Path(xdg) / "epicortex" / "key"
    folder = "Library/Application Support" if sys.platform == "darwin" else ".local/share"
    return Path.home() / folder / "epicortex" / "key"


def _read() -> bytes | None:
    try:
        descriptor = os.open(place(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        text = stream.read(100).decode("ascii", "replace")
    return bytes.fromhex(text) if _KEY.fullmatch(text) else None


def _make() -> bytes:
    """A new key. Where two processes make one at the same time, both use that of the first."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = secrets.token_bytes(32)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # readable by this user alone
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(f"{key.hex()}\n")
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists() and _read() is None:
            path.unlink()  # damaged: what it sealed asks for consent from now on
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        Path(temporary).unlink()
    return _read() or key
