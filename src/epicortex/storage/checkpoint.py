"""Checkpoints: whole states of a run, each in a folder of its own that appears in one step.

A checkpoint holds the state (JSON), the weights (safetensors) and a manifest with the checksums of both and
the marks of the logs. Reading falls back to the one before where the newest is damaged, and says so.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from epicortex.ecosystem.state import EcosystemState, Tally
from epicortex.errors import StorageError
from epicortex.families.family import Arrays, Family
from epicortex.storage import atomic, codec, lines, strict, tensors
from epicortex.storage.atomic import LogMark

FORMAT: Final = 1
MAX_STATE: Final = 1_000_000_000
MAX_WEIGHTS: Final = 1 << 40
_MAX_MANIFEST: Final = 100_000
_NAME: Final = re.compile(r"\d{8}")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A state taken apart, ready to be written."""

    generation: int
    text: bytes
    arrays: Arrays
    digest: str
    """The SHA-256 of the text. It names this state: a journal says which state it continues."""


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A whole state read back, with the marks of the logs that belong to it."""

    state: EcosystemState
    logs: Mapping[str, LogMark]
    digest: str


@dataclass(frozen=True, slots=True)
class _Manifest:
    format: int
    run: str
    generation: int
    state_sha256: str
    weights_sha256: str
    history: LogMark
    networks: LogMark

    @property
    def marks(self) -> dict[str, LogMark]:
        return {"history.jsonl": self.history, "networks.jsonl": self.networks}


def take(state: EcosystemState, family: Family[Any]) -> Snapshot:
    """Take a state apart. The arrays are not copied: nobody writes into them."""
    whole, arrays = codec.encode(state, family)
    text = strict.dump({"format": FORMAT, "state": whole}) + b"\n"
    return Snapshot(state.generation, text, arrays, hashlib.sha256(text).hexdigest())


def write(folder: Path, snapshot: Snapshot, *, run: str, logs: Mapping[str, LogMark], keep: int) -> None:
    """Write a checkpoint; when this returns it is durable, and only the last `keep` are left."""
    place = _place(folder, snapshot.generation)
    unfinished = place.with_name(f".{place.name}.tmp")
    atomic.remove_tree(unfinished)
    with atomic.explained(unfinished):
        unfinished.mkdir()
    try:
        state = atomic.write_file(unfinished / "state.json", [snapshot.text])
        pieces = tensors.serialise(snapshot.arrays, {"format": str(FORMAT)})
        weights = atomic.write_file(unfinished / "weights.safetensors", pieces)
        manifest = _Manifest(
            FORMAT, run, snapshot.generation, state, weights, logs["history.jsonl"], logs["networks.jsonl"]
        )
        atomic.write_file(unfinished / "manifest.json", [strict.sealed(strict.plain(manifest))])
        with atomic.explained(place):
            atomic.sync_folder(unfinished)
            atomic.remove_tree(place)  # only a damaged one, or one that this run has just gone back behind
            os.rename(unfinished, place)  # noqa: PTH104  the fault tests count calls of the os module
            atomic.sync_folder(folder)
    except BaseException:
        atomic.remove_tree(unfinished)
        raise
    _prune(folder, keep)


def generations(folder: Path) -> list[int]:
    """The generations that have a checkpoint, sound or not, in order."""
    with atomic.explained(folder, "read"):
        return sorted(int(entry.name) for entry in folder.iterdir() if _NAME.fullmatch(entry.name))


def read(folder: Path, generation: int, *, family: Family[Any], run: str | None = None) -> Checkpoint:
    """One checkpoint; if anything about it is not as it was written, a `StorageError`."""
    place = _place(folder, generation)
    where = str(place)
    manifest = _manifest(place, run)
    whole = _whole(place, manifest)
    weights = _verified(place / "weights.safetensors", manifest.weights_sha256, MAX_WEIGHTS)
    arrays, _ = tensors.parse(weights, f"{where}/weights.safetensors")
    state = codec.decode(whole.get("state"), arrays, where, family)
    if not state.generation == manifest.generation == generation:
        raise StorageError(f"{where} holds generation {state.generation}")
    return Checkpoint(state, manifest.marks, manifest.state_sha256)


def read_latest(run_folder: Path, *, run: str, family: Family[Any]) -> tuple[Checkpoint | None, list[str]]:
    """The newest sound checkpoint whose logs are sound too, and what was wrong with those after it.

    None where there is no checkpoint at all; if there are some but none can be used, a `StorageError`.
    """
    folder = run_folder / "checkpoints"
    problems: list[str] = []
    for generation in reversed(generations(folder)):
        try:
            checkpoint = read(folder, generation, run=run, family=family)
            checkpoint = _without_what_is_gone(checkpoint, run_folder, problems)
            for name, mark in checkpoint.logs.items():
                if not atomic.matches(run_folder / name, mark):
                    raise StorageError(
                        f"{run_folder / name} is damaged before the end of generation {generation}"
                    )
        except StorageError as error:
            problems.append(f"the checkpoint of generation {generation} cannot be used: {error}")
            continue
        return checkpoint, problems
    if problems:
        raise StorageError(
            f"{run_folder} cannot be resumed: " + "; ".join(problems) + f". To start again, remove {folder}"
        )
    return None, problems


def _without_what_is_gone(checkpoint: Checkpoint, run_folder: Path, problems: list[str]) -> Checkpoint:
    """The checkpoint as it is used where somebody removed a log: that begins anew, and the run goes on."""
    marks = dict(checkpoint.logs)
    for name, mark in checkpoint.logs.items():
        if lines.is_gone(run_folder / name, mark):
            problems.append(lines.gone(run_folder / name))
            marks[name] = atomic.EMPTY
    return replace(checkpoint, logs=marks)


def read_tally(run_folder: Path, *, run: str) -> Tally | None:
    """The counts of the newest generation that has a sound checkpoint; None if there is none.

    No weights are read, so that no family is needed.
    """
    folder = run_folder / "checkpoints"
    for generation in reversed(generations(folder)):
        place = _place(folder, generation)
        try:
            whole = _whole(place, _manifest(place, run))
            values = whole["state"].get("tally") if isinstance(whole.get("state"), dict) else None
            return strict.build(Tally, values, f"{place}/state.json")
        except StorageError:
            continue
    return None


def read_marks(run_folder: Path, *, run: str) -> Mapping[str, LogMark]:
    """What the newest checkpoint says of the logs; nothing if there is none, or it cannot be read.

    Quick: only its manifest is read. Whether the rest of it is sound is for `read_latest` to say.
    """
    folder = run_folder / "checkpoints"
    try:
        newest = generations(folder)[-1:]
        return _manifest(_place(folder, newest[0]), run).marks if newest else {}
    except StorageError:
        return {}


def remove_after(folder: Path, generation: int) -> None:
    """Remove the checkpoints of later generations than this one."""
    for later in generations(folder):
        if later > generation:
            atomic.remove_tree(_place(folder, later))


def _manifest(place: Path, run: str | None) -> _Manifest:
    atomic.refuse_link(place)
    where = f"{place}/manifest.json"
    values = strict.unseal(atomic.read_file(place / "manifest.json", limit=_MAX_MANIFEST), where)
    strict.check_format(values.get("format"), FORMAT, str(place))
    manifest = strict.build(_Manifest, values, where)
    if run is not None and manifest.run != run:
        raise StorageError(f"{place} belongs to another run")
    return manifest


def _whole(place: Path, manifest: _Manifest) -> dict[str, Any]:
    """What state.json says."""
    text = _verified(place / "state.json", manifest.state_sha256, MAX_STATE)
    whole = strict.parse(text, f"{place}/state.json")
    strict.check_format(whole.get("format") if isinstance(whole, dict) else None, FORMAT, str(place))
    return dict(whole)


def _place(folder: Path, generation: int) -> Path:
    return folder / f"{generation:08d}"


def _verified(path: Path, sha256: str, limit: int) -> bytes:
    data = atomic.read_file(path, limit=limit)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StorageError(f"{path} is damaged: it does not match its checksum")
    return data


def _prune(folder: Path, keep: int) -> None:
    """Remove checkpoints before the last `keep`, the oldest first."""
    for generation in generations(folder)[:-keep]:
        atomic.remove_tree(_place(folder, generation))
