"""The champion's family tree as a drawing: a line a network from birth to its last child on the way.

The youngest is on top; where a line begins, it is tied to its parents' lines below. Mutations are marks on
the lines. Which networks belong to it is left to `lineage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from epicortex.ecosystem.state import Event
from epicortex.pages.units import Unit
from epicortex.report.legend import largest_species, species_colour
from epicortex.report.summary import RunSummary
from epicortex.run.lineage import Ancestor
from epicortex.text import count, directed, listed, one_line

MOST_ROWS: Final = 60
_ROW: Final = 24
_TOP: Final = 34
_LEFT: Final = 24
_RIGHT: Final = 190
_WIDTH: Final = 680
#: Ticks of the axis are at least so far apart, and at round generations.
_TICK: Final = 44
_STEPS: Final = [digit * 10**power for power in range(20) for digit in (1, 2, 5)]
#: The marks of the operators we have; those of others share the last.
_MARKS: Final = {"kernel": "circle", "node": "triangle", "layer": "square", "stride": "diamond"}


@dataclass(frozen=True, slots=True)
class Mark:
    """A mutation on a line."""

    x: float
    kind: str
    grows: bool
    title: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A network's line."""

    network: int
    y: float
    x0: float
    x1: float
    colour: str
    text: str
    title: str
    birth: str
    """founder, clone or crossover."""
    ties: list[float]
    """How far down each parent's line is; parents that are not drawn lie below the drawing."""
    marks: list[Mark]
    champion: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """The drawing."""

    width: float
    height: float
    top: float
    rows: list[Branch]
    ticks: list[tuple[float, int]]
    """Where on the axis, and which generation."""
    left_out: int
    kinds: frozenset[str]
    """The marks in it: of mutations and of births."""


def draw(ancestors: Sequence[Ancestor], summary: RunSummary, unit: Unit) -> Tree:
    """The family of the first of the ancestors."""
    drawn = ancestors[:MOST_ROWS]
    first = min(one.birth for one in drawn)
    last = max(one.until for one in drawn)
    scale = min(48.0, (_WIDTH - _LEFT) / max(1, last - first))

    def x(generation: float) -> float:
        return round(_LEFT + scale * (generation - first), 1)

    ys = {one.id: _TOP + _ROW * place + _ROW / 2 for place, one in enumerate(drawn)}
    bottom = _TOP + _ROW * len(drawn)
    shown = largest_species(summary)
    rows = []
    for one in drawn:
        events = [event for event in summary.events.get(one.id, ()) if event[0] < one.until]
        rows.append(
            Branch(
                network=one.id,
                y=ys[one.id],
                x0=x(one.birth),
                x1=max(x(one.until), x(one.birth) + 4),
                colour=species_colour(one.species, shown),
                text=f"{one.id} · {unit.text(one.fitness)}",
                title=_title(one, unit),
                birth=("founder", "clone")[len(one.parents)] if len(one.parents) < 2 else "crossover",
                ties=[ys.get(parent, bottom) for parent in one.parents],
                marks=[_mark(x(generation), event) for generation, event in events],
                champion=one is ancestors[0],
            )
        )
    step = next(size for size in _STEPS if scale * size >= _TICK)
    ticks = [(x(at), at) for at in range(first + -first % step, last + 1, step)]
    return Tree(
        width=x(last) + _RIGHT,
        height=bottom + 14,
        top=_TOP,
        rows=rows,
        ticks=ticks,
        left_out=len(ancestors) - len(drawn),
        kinds=frozenset(
            {mark.kind for row in rows for mark in row.marks}
            | {row.birth for row in rows}
            | {"shrinks" for row in rows for mark in row.marks if not mark.grows}
        ),
    )


def origin(one: Ancestor) -> str:
    """Where a network comes from."""
    if not one.parents:
        return "founder"
    if len(one.parents) == 1:
        return f"clone of {one.parents[0]}"
    return f"child of {listed(map(str, one.parents))}"


def mutations(events: Sequence[Event]) -> str:
    """Mutations by type and direction, such as "3 kernel +, 1 layer −"."""
    groups = Counter(_event(event) for event in events)
    return ", ".join(f"{number} {name}" for name, number in groups.most_common())


def _event(event: Event) -> str:
    return directed(one_line(event.type), event.direction)


def _mark(x: float, event: Event) -> Mark:
    layer = "" if event.layer is None else f" in layer {event.layer}"
    return Mark(x, _MARKS.get(event.type, "cross"), event.direction != "shrink", f"{_event(event)}{layer}")


def _title(one: Ancestor, unit: Unit) -> str:
    born = f", born in generation {one.birth}" if one.parents else ""
    own = f"; {mutations(one.mutations)}" if one.mutations else ""
    species = "" if one.species is None else f"; species {one.species}"
    fit = f"{unit.text(one.fitness)} in generation {one.until} with {count(one.parameters)} parameters"
    return f"network {one.id}: {origin(one)}{born}; {fit}{species}{own}"
