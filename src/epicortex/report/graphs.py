"""The champion as a graph, of families that have one, and the animation of it at its task."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from epicortex.champion.file import Champion
from epicortex.errors import StorageError
from epicortex.families.family import Graph, HasGraph
from epicortex.storage import atomic
from epicortex.text import one_line

MOST_NODES: Final = 200
MOST_WIRES: Final = 2000
MOST_FILM: Final = 8_000_000
#: What a film may be called, its kind, and where which bytes say so.
_FILMS: Final = (("play.mp4", "video/mp4", 4, b"ftyp"), ("play.gif", "image/gif", 0, b"GIF8"))
_ACROSS, _UP, _MARGIN = 64, 84, 40
_RADIUS: Final = 13


@dataclass(frozen=True, slots=True)
class Spot:
    """A node on the page."""

    x: float
    y: float
    label: str
    name: str
    """What an output stands for."""
    aside: int


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection on the page."""

    path: str
    positive: bool
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A graph on the page."""

    width: int
    height: int
    nodes: list[Spot]
    wires: list[Wire]


def draw(champion: Champion) -> Drawing | None:
    """The champion's graph; None where its family has none, or it is too large to be read."""
    if not isinstance(champion.family, HasGraph):
        return None
    graph = champion.family.graph(champion.phenotype)
    if len(graph.nodes) > MOST_NODES or len(graph.edges) > MOST_WIRES:
        return None
    return _drawn(graph, champion.classes)


def film(run: Path) -> str | None:
    """The film that `epicortex play` left in the run's folder, for the page itself; None without one."""
    for name, kind, place, mark in _FILMS:
        try:
            data = atomic.read_file(run / name, limit=MOST_FILM)
        except (StorageError, OSError):
            continue
        if data[place : place + len(mark)] == mark:
            return f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return None


def _drawn(graph: Graph, names: tuple[str, ...]) -> Drawing:
    counts = Counter(node.level for node in graph.nodes)
    width = 2 * _MARGIN + _ACROSS * max(counts.values())
    height = 2 * _MARGIN + _UP * max(counts)
    placed: Counter[int] = Counter()
    spots: dict[int, tuple[float, float]] = {}
    nodes = []
    answers = iter(names)
    for node in graph.nodes:
        gap = (width - 2 * _MARGIN) / counts[node.level]
        x, y = _MARGIN + gap * (placed[node.level] + 0.5), height - _MARGIN - _UP * node.level
        placed[node.level] += 1
        spots[node.id] = x, y
        name = one_line(next(answers, ""), 20) if node.kind == "output" else ""
        nodes.append(Spot(round(x, 1), round(y, 1), node.label, name, -20))
    largest = max((abs(weight) for *_, weight in graph.edges), default=1.0) or 1.0
    wires = [
        Wire(
            _path(spots[source], spots[target], same=source == target),
            weight >= 0,
            round(0.6 + 4.4 * abs(weight) / largest, 2),
            f"from {source or 'the bias'} to {target}: {weight:.3g}",
        )
        for source, target, weight in graph.edges
    ]
    return Drawing(width, height, nodes, wires)


def _path(start: tuple[float, float], end: tuple[float, float], *, same: bool) -> str:
    """A line upwards; a bow where it runs back, and a loop from a node to itself."""
    (x0, y0), (x1, y1) = start, end
    if same:
        return (
            f"M{x0 + 9:.1f} {y0 - 9:.1f}C{x0 + 44:.1f} {y0 - 34:.1f} {x0 + 44:.1f} {y0 + 34:.1f} "
            f"{x0 + 9:.1f} {y0 + 9:.1f}"
        )
    if y1 < y0:
        return f"M{x0:.1f} {y0 - _RADIUS:.1f}L{x1:.1f} {y1 + _RADIUS:.1f}"
    bow = max(x0, x1) + _ACROSS / 2
    return f"M{x0 + _RADIUS:.1f} {y0:.1f}C{bow:.1f} {y0:.1f} {bow:.1f} {y1:.1f} {x1 + _RADIUS:.1f} {y1:.1f}"
