"""The analysis of kernels as an article: `kernels.md` with tables, and a picture for each experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from epicortex.families.family import Shape
from epicortex.pages.tables import Table, markdown
from epicortex.paper import kernels
from epicortex.paper.kernels import Compared, Kernels
from epicortex.paper.output import PLOTS
from epicortex.paper.plan import Experiment
from epicortex.paper.statistics import SIGNIFICANT
from epicortex.storage import atomic
from epicortex.text import NOTHING, plural

_CELL: Final = 46
_MARGIN: Final = 64
#: A shape that is this many times as common as under drift, or as rare, has the full colour.
_FULL: Final = 4.0
_MORE, _LESS = (178, 60, 23), (32, 88, 168)


def write(out: Path) -> Path:
    """Analyse the kernels of all runs below a folder, and write the article beside them."""
    found = kernels.counted(out)
    atomic.make_folder(out)
    atomic.make_folder(out / PLOTS)
    for experiment in _experiments(found):
        own, neutral = _both(found, experiment)
        picture = heat_map(kernels.mean_shares(own), kernels.mean_shares(neutral), experiment.title)
        atomic.replace_text(out / PLOTS / f"{_name(experiment)}.svg", picture)
    atomic.replace_text(out / "kernels.md", "\n".join(_article(found)))
    return out / "kernels.md"


def _article(found: Sequence[Kernels]) -> Iterator[str]:
    yield "# The shapes of evolved kernels\n"
    yield (
        "Kernels of all networks in the last generation. Evolution is set against drift, where whatever "
        "mutation does is kept regardless of fitness: what differs is the work of selection. Shapes are "
        "height × width; every run weighs the same. p is that of the two-sided Mann-Whitney test between "
        "runs, p (Holm) takes into account how many rows the table has.\n"
    )
    experiments = _experiments(found)
    if not experiments:
        yield "There is no run with kernels."
        return
    yield "## In short\n"
    for experiment in experiments:
        yield f"- {experiment.title}: {sentence(found, experiment)}"
    yield ""
    for experiment in experiments:
        own, neutral = _both(found, experiment)
        yield f"## {experiment.title}\n"
        yield f"![{experiment.title}: shapes of kernels]({PLOTS}/{_name(experiment)}.svg)\n"
        if compared := kernels.against_drift(own, neutral):
            yield f"{markdown(_table(compared, len(own), len(neutral)))}\n"
        yield f"{markdown(_layers(own, neutral))}\n"


def sentence(found: Sequence[Kernels], experiment: Experiment) -> str:
    """What can be said of one experiment."""
    own, neutral = _both(found, experiment)
    if not neutral:
        return f"{plural(len(own), 'run')}, none with drift only: nothing tells selection from chance."
    compared = kernels.against_drift(own, neutral)
    clear = [one for one in compared if one.adjusted < SIGNIFICANT]
    if not clear:
        return (
            f"nothing differs from drift beyond chance ({len(own)} and {plural(len(neutral), 'run')}, "
            f"least p (Holm) {min(one.adjusted for one in compared):.2g})."
        )
    more = [one.name for one in clear if one.found.difference > 0]
    less = [one.name for one in clear if one.found.difference < 0]
    parts = [f"more than by drift: {', '.join(more)}"] if more else []
    parts += [f"less: {', '.join(less)}"] if less else []
    return "; ".join(parts) + "."


def _table(compared: Sequence[Compared], runs: int, neutral: int) -> Table:
    cells = [
        (
            one.name,
            _value(one.name, one.found.first.mean),
            _value(one.name, one.found.second.mean),
            NOTHING if one.ratio is None else f"{one.ratio:.2f}",
            f"{one.found.a:.2f} ({one.found.effect})",
            f"{one.found.p:.2g}",
            f"{one.adjusted:.2g}",
        )
        for one in compared
    ]
    head = ("kernels", f"evolution ({runs})", f"drift ({neutral})", "times", "A", "p", "p (Holm)")
    return Table("", head, cells)


def _layers(own: Sequence[Kernels], neutral: Sequence[Kernels]) -> Table:
    cells = []
    drifted = kernels.by_layer(neutral)
    for place, (area, lying, runs) in kernels.by_layer(own).items():
        beside = drifted.get(place)
        cells.append(
            (
                str(place),
                str(runs),
                f"{area:.2f}",
                f"{beside[0]:.2f}" if beside else NOTHING,
                *(
                    f"{100 * lying[name]:.0f} %" + (f" ({100 * beside[1][name]:.0f})" if beside else "")
                    for name in kernels.ORIENTATIONS
                ),
            )
        )
    head = (
        "layer",
        "runs",
        "mean area",
        "under drift",
        *(f"{name} (drift)" for name in kernels.ORIENTATIONS),
    )
    return Table("", head, cells)


def heat_map(own: Mapping[Shape, float], neutral: Mapping[Shape, float], title: str) -> str:
    """Shapes by height and width: the share of each, coloured by how it compares with drift, as SVG text."""
    flat = {shape: share for shape, share in own.items() if len(shape) == 2 and share > 0}
    side = max((max(shape) for shape in flat), default=1)
    sizes = list(range(1, side + 1, 2))
    extent = _MARGIN + _CELL * len(sizes) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {extent} {extent}" width="{extent}" '
        f'height="{extent}" font-family="system-ui, sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(title)}: shapes of kernels">',
        f"<title>{escape(title)}: shapes in percent; red is more, blue less than by drift</title>",
        f'<rect width="{extent}" height="{extent}" rx="8" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="22">width →</text><text x="8" y="{_MARGIN - 8}">height ↓</text>',
    ]
    for place, size in enumerate(sizes):
        middle = _MARGIN + _CELL * place + _CELL // 2
        parts.append(f'<text x="{middle}" y="{_MARGIN - 8}" text-anchor="middle">{size}</text>')
        parts.append(f'<text x="{_MARGIN - 12}" y="{middle + 4}" text-anchor="end">{size}</text>')
    parts += [
        _square(
            (row, column), flat.get((tall, wide), 0.0), neutral.get((tall, wide), 0.0) if neutral else None
        )
        for row, tall in enumerate(sizes)
        for column, wide in enumerate(sizes)
    ]
    return "\n".join([*parts, "</svg>\n"])


def _square(place: tuple[int, int], share: float, drift: float | None) -> str:
    """One shape: its share, over a colour."""
    y, x = (_MARGIN + _CELL * one for one in place)
    colour, size = _colour(share, drift), _CELL - 2
    text = "" if share == 0 else f"{100 * share:.1f}" if share >= 0.0005 else "·"
    return (
        f'<rect x="{x}" y="{y}" width="{size}" height="{size}" rx="4" fill="{colour}"/>'
        f'<text x="{x + size / 2}" y="{y + size / 2 + 4}" text-anchor="middle">{text}</text>'
    )


def _colour(share: float, drift: float | None) -> str:
    """White where there is nothing to tell, red for more and blue for less than by drift.

    >>> _colour(0.1, 0.1), _colour(0.4, 0.1), _colour(0.0, 0.1), _colour(0.2, None)
    ('#ffffff', '#c9765d', '#638ac2', '#f1f1f1')
    """
    if drift is None:
        return "#f1f1f1" if share else "#fbfbfb"
    if share == drift:
        return "#ffffff"
    least = 1e-4
    ratio = math.log(max(share, least) / max(drift, least)) / math.log(_FULL)
    strength = 0.7 * min(1.0, abs(ratio))
    base = _MORE if ratio > 0 else _LESS
    return "#" + "".join(f"{round(255 + (one - 255) * strength):02x}" for one in base)


def _value(name: str, value: float) -> str:
    return f"{value:.2f}" if name == "mean area" else f"{100 * value:.1f} %"


def _experiments(found: Sequence[Kernels]) -> list[Experiment]:
    own = {one.run.experiment for one in found if one.run.experiment.control is None}
    return sorted(own, key=lambda one: one.place)


def _both(found: Sequence[Kernels], experiment: Experiment) -> tuple[list[Kernels], list[Kernels]]:
    neutral = Experiment(experiment.data, experiment.speciation, kernels.NEUTRAL)
    return kernels.of(found, experiment), kernels.of(found, neutral)


def _name(experiment: Experiment) -> str:
    return "kernels-" + "-".join(experiment.folder.parts)
