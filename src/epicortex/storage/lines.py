"""The lines of history.jsonl and networks.jsonl: what is in them, and how they are read back.

Nothing from the clock is in them but the fields of history that end in `seconds`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.state import EcosystemState, Event, Individual, Tally
from epicortex.errors import StorageError
from epicortex.families.family import Family
from epicortex.storage import atomic, codec, strict
from epicortex.storage.atomic import LogMark

T = TypeVar("T")

MAX_LINE: Final = 100_000_000
_MAX_ITEMS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class NetworkLine:
    """A network in a generation, as in networks.jsonl."""

    generation: int
    id: int
    parents: tuple[int, ...]
    birth: int
    species: int | None
    """The id of its species; None without speciation."""
    genome: Any
    """The genome (an object) in the network's first line and after a mutation, else its hash (a text)."""
    fitness: float | None
    fitness_before_training: float | None
    f_r: float | None
    c_r: float | None
    age: int
    parameters: int
    failed: str | None
    events: tuple[Event, ...]


def history_line(generation: Generation) -> bytes:
    """A generation's line in history.jsonl."""
    return strict.dump(strict.plain(generation)) + b"\n"


def network_lines(evaluated: EcosystemState, family: Family[Any]) -> bytes:
    """The lines of a generation: every network as it was evaluated, in the order of ids."""
    speciation = bool(evaluated.species)
    lines = (
        _network_line(individual, evaluated.generation, speciation, family)
        for individual in evaluated.networks
    )
    return b"".join(strict.dump(line) + b"\n" for line in lines)


def _network_line(
    individual: Individual, generation: int, speciation: bool, family: Family[Any]
) -> dict[str, Any]:
    description, _ = family.encode(individual.phenotype)
    # From the state alone, so that a resumed run writes the same: born just now, or mutated since.
    new = individual.birth == generation - 1 or any(e.outcome == "applied" for e in individual.events)
    return {
        "generation": generation,
        "id": individual.id,
        "parents": list(individual.parents),
        "birth": individual.birth,
        "species": individual.species if speciation else None,
        "genome": description if new else codec.digest(description),
        "fitness": individual.fitness,
        "fitness_before_training": individual.fitness_before,
        "f_r": individual.relative_fitness,
        "c_r": individual.relative_complexity,
        "age": individual.age,
        "parameters": family.parameters(individual.phenotype),
        "failed": individual.failed,
        "events": strict.plain(individual.events),
    }


def read_history(path: Path, mark: LogMark | None = None) -> list[Generation]:
    """All lines of history.jsonl, checked; one that a running process has not finished is left out."""
    history = list(_lines(path, partial(strict.build, Generation), mark))
    # A log that was removed begins anew with the generation that its run went on from.
    for number, (before, line) in enumerate(pairwise(history), 2):
        if line.generation != before.generation + 1:
            raise StorageError(f"{path}, line {number}: this is generation {line.generation}")
    return history


def remembered(tally: Tally | None) -> list[Generation]:
    """What a state's tally alone still knows of a run's history: its own generation, without its times."""
    return [] if tally is None else [Generation.timed(tally, train_seconds=0.0, seconds=0.0)]


def is_gone(path: Path, mark: LogMark | None) -> bool:
    """Whether a log that should hold something is not there at all."""
    return mark is not None and mark.length > 0 and not os.path.lexists(path)


def gone(path: Path) -> str:
    """What is said of such a log."""
    return f"{path} is gone, and what it told of earlier generations with it"


def read_networks(path: Path, mark: LogMark | None = None) -> Iterator[NetworkLine]:
    """The lines of networks.jsonl, one by one, checked; up to the mark also against its checksum."""

    def checked(value: Any, where: str) -> NetworkLine:
        genome = value.get("genome") if isinstance(value, dict) else None
        if not isinstance(genome, str | dict):
            raise StorageError(f"{where}: genome must be an object or a hash")
        return strict.build(NetworkLine, value, where, given={"genome": genome})

    return _lines(path, checked, mark)


def damaged(path: Path) -> StorageError:
    """What is said of a log that is not as a checkpoint vouches for it."""
    return StorageError(
        f"{path} is damaged: it is not as it was written; epicortex resume goes back to a sound state"
    )


def _lines(path: Path, checked: Callable[[Any, str], T], mark: LogMark | None = None) -> Iterator[T]:
    digest, length, due = hashlib.sha256(), 0, mark is not None and mark.length > 0
    if os.path.lexists(path):
        with atomic.explained(path, "read"), os.fdopen(atomic.open_regular(path), "rb") as stream:
            number = 1
            while (line := stream.readline(MAX_LINE)).endswith(b"\n"):
                where = f"{path}, line {number}"
                yield checked(strict.parse(line, where, max_items=_MAX_ITEMS), where)
                number += 1
                digest.update(line)
                length += len(line)
                if mark and due and length >= mark.length:
                    if mark != LogMark(length, digest.hexdigest()):
                        break
                    due = False
            if len(line) == MAX_LINE:
                raise StorageError(f"{path}, line {number} is too long")
    if due:
        raise damaged(path)
