"""The journal of a generation: its finished outcomes with their weights, appended as they come.

After a crash the outcomes are replayed instead of repeated, clock decisions (a network over its time limit)
included. Records are checksummed; what follows the first unsound one is ignored. The journal says which state
it continues, and is removed when the checkpoint after it is durable.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from epicortex.ecosystem.jobs import Outcome
from epicortex.errors import StorageError
from epicortex.families.family import Family
from epicortex.storage import atomic, codec, strict, tensors
from epicortex.storage.atomic import Bytes

FORMAT: Final = 1
_MAX_JOURNAL: Final = 1 << 40
_HEAD: Final = 8 + 32


@dataclass(frozen=True, slots=True)
class Heading:
    """What a journal continues: a run's state, by its digest, on the way to a generation."""

    run: str
    generation: int
    state: str
    format: int = FORMAT


class Journal:
    """An open journal."""

    def __init__(
        self, path: Path, heading: Heading, *, family: Family[Any], sync_seconds: float = 1.0
    ) -> None:
        """Open a journal: `outcomes` is what it already holds for this heading, `problems` what was wrong."""
        self.path = path
        self.outcomes: dict[int, Outcome] = {}
        self.problems: list[str] = []
        self._family = family
        self._sync_seconds = sync_seconds
        self._synced = time.monotonic()
        self._unsynced = False
        self._lock = threading.Lock()
        self._takes = True
        sound = self._read(heading)
        atomic.cut(path, sound)
        with atomic.explained(path):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)
            atomic.sync_folder(path.parent)
        try:
            if not sound:
                self._write([strict.dump(strict.plain(heading))])
        except BaseException:
            self.close()
            raise

    def append(self, outcome: Outcome) -> None:
        """Add a finished outcome; may be called from any thread. It survives this process from then on.

        One that comes after the journal was closed, from a worker of a run that was stopped, is let go.
        """
        values, arrays = codec.encode_outcome(outcome, self._family)
        self._write(tensors.serialise(arrays, {"outcome": strict.dump(values).decode()}))

    def sync(self) -> None:
        """Make all that was appended durable. Only the thread that closes the journal may call this."""
        self._unsynced = False  # before: what is appended meanwhile may not be in it
        with atomic.explained(self.path):
            os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def sync_now_and_then(self) -> None:
        """Sync what is new if the last time is long ago: that is all that a power cut can cost."""
        if self._unsynced and time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def close(self) -> None:
        """Close the file; it stays until `remove`."""
        with self._lock:
            self._takes = False
            os.close(self._descriptor)

    def _write(self, pieces: Iterable[Bytes]) -> None:
        digest, length, parts = hashlib.sha256(), 0, []
        for piece in pieces:
            digest.update(piece)
            length += len(piece)
            parts.append(piece)
        head = length.to_bytes(8, "little") + digest.digest()
        with self._lock, atomic.explained(self.path):
            if self._takes:
                self._takes = False  # nothing may follow a record that was written in part
                atomic.write_pieces(self._descriptor, [head, *parts])
                self._takes = self._unsynced = True

    def _read(self, heading: Heading) -> int:
        """Take in the sound records; gives how many bytes of the file are of use."""
        if not os.path.lexists(self.path):
            return 0
        data = atomic.read_file(self.path, limit=_MAX_JOURNAL)
        sound = 0
        try:
            for number, (payload, end) in enumerate(_records(data, str(self.path))):
                if number == 0:
                    self._check(payload, heading)
                else:
                    self._replay(payload, heading, f"{self.path}, record {number}")
                sound = end
        except StorageError as error:
            self.problems.append(f"{error}; what it held from there on is trained again")
        return sound

    def _check(self, payload: bytes, heading: Heading) -> None:
        values = strict.parse(payload, str(self.path))
        found = strict.build(Heading, values, str(self.path))
        strict.check_format(found.format, FORMAT, str(self.path))
        if found != heading:
            raise StorageError(f"{self.path} does not continue this state")

    def _replay(self, payload: bytes, heading: Heading, where: str) -> None:
        arrays, metadata = tensors.parse(payload, where)
        values = strict.parse(strict.encoded(metadata.get("outcome", "")), where)
        outcome = codec.decode_outcome(values, arrays, where, self._family)
        if outcome.generation != heading.generation:
            raise StorageError(f"{where} is of generation {outcome.generation}")
        self.outcomes[outcome.network] = outcome


def place(run_folder: Path, generation: int) -> Path:
    """Where the journal of a generation is kept."""
    return run_folder / "checkpoints" / f"{generation:08d}.journal"


def remove(run_folder: Path, *, up_to: int) -> None:
    """Remove the journals of all generations up to one whose checkpoint is durable."""
    folder = run_folder / "checkpoints"
    with atomic.explained(folder, "removed"):
        for path in folder.glob("*.journal"):
            if path.stem.isdecimal() and int(path.stem) <= up_to:
                path.unlink(missing_ok=True)


def _records(data: bytes, where: str) -> Iterator[tuple[bytes, int]]:
    """Each sound record with the place where it ends; an unfinished one at the end is what a crash leaves."""
    start = 0
    while start + _HEAD <= len(data):
        length = int.from_bytes(data[start : start + 8], "little")
        end = start + _HEAD + length
        if end > len(data):
            return
        payload = data[start + _HEAD : end]
        if hashlib.sha256(payload).digest() != data[start + 8 : start + _HEAD]:
            raise StorageError(f"{where} is damaged {start} bytes from its beginning")
        yield payload, end
        start = end
