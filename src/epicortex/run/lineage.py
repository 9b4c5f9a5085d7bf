"""Where a network comes from: its ancestors back to the founders, read from the lines of networks.jsonl.

An ancestor counts as it was when its last child on the way was born; what happened to it later is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from epicortex.errors import StorageError

if TYPE_CHECKING:
    from epicortex.ecosystem.state import Event
    from epicortex.storage.lines import NetworkLine


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A network on the way from the founders to the one asked about, which is itself the first."""

    id: int
    parents: tuple[int, ...]
    """None for a founder, one for a clone, two for a child."""
    birth: int
    until: int
    """The generation in which it passed on its genes, or was last seen."""
    species: int | None
    fitness: float | None
    """Its fitness in that generation."""
    parameters: int
    mutations: tuple[Event, ...]
    """The mutations that were applied to it up to then."""


@dataclass(slots=True)
class _Record:
    """What the lines say about one network."""

    parents: tuple[int, ...]
    birth: int
    seen: list[tuple[int, int | None, float | None, int]] = field(default_factory=list)
    """Generation, species, fitness and parameters, line by line."""
    events: list[tuple[int, Event]] = field(default_factory=list)


def trace(lines: Iterable[NetworkLine], network: int, *, until: int) -> tuple[Ancestor, ...]:
    """A network as it was in generation `until`, and all its ancestors, the youngest first.

    Ancestors from before a log that begins late, since the one before it was removed, are left out.
    """
    records = _records(lines, until)
    begins = min((record.seen[0][0] for record in records.values()), default=None)
    ends = {network: until}
    # Parents are born before their children, and so have lower ids: one pass from the top meets each
    # network after all of its children.
    found = []
    waiting = {network}
    while waiting:
        current = max(waiting)
        waiting.remove(current)
        record = records.get(current)
        if record is None and begins != 1:
            continue
        if record is None:
            raise StorageError(
                f"networks.jsonl has no line about network {current}, an ancestor of {network}"
            )
        found.append(_ancestor(current, record, ends[current]))
        for parent in record.parents:
            if parent >= current:
                raise StorageError(f"networks.jsonl says that network {current} descends from {parent}")
            ends[parent] = max(ends.get(parent, 0), record.birth)
            waiting.add(parent)
    return tuple(found)


def _records(lines: Iterable[NetworkLine], until: int) -> dict[int, _Record]:
    records: dict[int, _Record] = {}
    for line in lines:
        if line.generation > until:
            break
        record = records.setdefault(line.id, _Record(tuple(dict.fromkeys(line.parents)), line.birth))
        record.seen.append((line.generation, line.species, line.fitness, line.parameters))
        record.events += [(line.generation, event) for event in line.events if event.outcome == "applied"]
    return records


def _ancestor(network: int, record: _Record, until: int) -> Ancestor:
    seen = [entry for entry in record.seen if entry[0] <= until] or record.seen[:1]
    generation, species, fitness, parameters = seen[-1]
    return Ancestor(
        id=network,
        parents=record.parents,
        birth=record.birth,
        until=generation,
        species=species,
        fitness=fitness,
        parameters=parameters,
        mutations=tuple(event for when, event in record.events if when <= until),
    )
