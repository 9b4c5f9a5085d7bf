"""TensorBoard's event file: every figure of history.jsonl as a curve, a generation written at once.

TensorBoard's own writer is used, without TensorFlow. A resumed run writes the file anew from its history.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from epicortex.ecosystem.history import Generation
from epicortex.storage import atomic

_PATTERN: Final = "events.out.tfevents.*.epicortex"
_FITNESS: Final = {
    "highest_fitness": "fitness/highest",
    "average_fitness": "fitness/average",
    "offspring_fitness": "fitness/offspring before training",
}
_ECOSYSTEM: Final = (
    "networks",
    "species",
    "offspring",
    "species_founded",
    "species_extinct",
    "culled",
    "failed",
)
_MUTATIONS: Final = ("mutations", "mutations_refused", "mutations_failed")
_SIZES: Final = ("champion_parameters", "mean_parameters")
_SECONDS: Final = ("train_seconds", "evolve_seconds", "seconds")
#: TensorBoard opens on the first group by its name, which is fitness.
TAGS: Final[Mapping[str, str]] = {
    **_FITNESS,
    **{name: f"networks/{name}" for name in _ECOSYSTEM},
    **{name: f"mutations/{name}" for name in _MUTATIONS},
    **{name: f"parameters/{name}" for name in _SIZES},
    **{name: f"time/{name}" for name in _SECONDS},
}


class Scalars:
    """The event file of one process; those of earlier processes are replaced."""

    def __init__(self, folder: Path, history: Iterable[Generation]) -> None:
        """Start a file with what the run's history holds so far."""
        atomic.make_folder(folder)
        with atomic.explained(folder):
            earlier = list(folder.glob(_PATTERN))
            self._path = folder / f"events.out.tfevents.{int(time.time())}.{os.getpid()}.epicortex"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o666)
            atomic.write_all(self._descriptor, _records([None, *history]))
            for path in earlier:
                if path != self._path:
                    path.unlink()

    def add(self, generation: Generation) -> None:
        """Add a generation."""
        with atomic.explained(self._path):
            atomic.write_all(self._descriptor, _records([generation]))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _records(history: Iterable[Generation | None]) -> bytes:
    """The generations as event records; None gives the record that opens a file."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    stream = io.BytesIO()
    writer = RecordWriter(stream)
    for generation in history:
        if generation is not None:
            pairs = ((tag, getattr(generation, name)) for name, tag in TAGS.items())
            values = [Summary.Value(tag=tag, simple_value=value) for tag, value in pairs if value is not None]
            event = Event(wall_time=time.time(), step=generation.generation, summary=Summary(value=values))
        else:
            event = Event(wall_time=time.time(), file_version="brain.Event:2")
        writer.write(event.SerializeToString())
    return stream.getvalue()
