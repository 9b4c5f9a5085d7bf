"""Plots of fitness against size: every network of a run, and the models that it kept.

As in `figures`, colours are roles, and whatever comes from a file goes through `label`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epicortex.champion.file import Champion
from epicortex.families.family import Outline
from epicortex.measures import USUAL
from epicortex.pages.plots import Figure, axis, fitness_axis, label, whole
from epicortex.pages.units import Unit
from epicortex.report.figures import number_text
from epicortex.report.legend import structure_lines
from epicortex.report.summary import Dot, RunSummary


def sizes(summary: RunSummary, unit: Unit) -> Figure:
    """Fitness over parameters: every network, coloured by generation, and the Pareto front.

    The genomes are listed once; `genome` gives each dot's place in that list, the page puts them together.
    """
    places: dict[int, int] = {}
    texts: list[str] = []

    def place(genome: Outline) -> int:
        # Equal genomes are one object here, and asking for its identity is quicker than comparing.
        if id(genome) not in places:
            places[id(genome)] = len(texts)
            texts.append("<br>".join(structure_lines(genome)))
        return places[id(genome)]

    def dots(points: Sequence[Dot], **more: Any) -> Figure:
        return {
            "x": [point.parameters for point in points],
            "y": [unit.value(point.fitness) for point in points],
            "customdata": [[point.network, point.generation] for point in points],
            "genome": [place(point.genome) for point in points],
            "hovertemplate": "<b>network %{customdata[0]}</b>, generation %{customdata[1]}<br>"
            f"{number_text('y', unit)} with %{{x:,}} parameters<br>%{{text}}<extra></extra>",
            **more,
        }

    shades = {
        "color": [point.generation for point in summary.points],
        "colorscale": "generations",
        "colorbar": {
            "title": {"text": "generation"},
            **whole([point.generation for point in summary.points]),
        },
        "size": 5,
        "opacity": 0.75,
    }
    line = {"shape": "hv", "color": "var(--best)", "width": 2}
    own = {"color": "var(--best)", "size": 9}
    return {
        "data": [
            dots(summary.points, name="networks", mode="markers", marker=shades, showlegend=False),
            dots(summary.front, name="Pareto front", mode="lines+markers", line=line, marker=own),
        ],
        "genomes": texts,
        "layout": {
            "hovermode": "closest",
            "xaxis": {
                **axis("parameters"),
                "type": "log",
                **_log_ticks([point.parameters for point in summary.points]),
            },
            "yaxis": fitness_axis(unit),
        },
    }


def models(members: Sequence[Champion], unit: Unit, size: str) -> Figure | None:
    """The models of a run: fitness and test accuracy over their size. None where there is only one."""
    if len(members) < 2:
        return None
    x = [one.outline.parameters if size == "parameters" else one.outline.cost for one in members]

    def curve(values: Sequence[float | None], name: str, role: str) -> Figure:
        return {
            "x": x,
            "y": values,
            "name": name,
            "mode": "lines+markers",
            "line": {"color": role, "width": 2},
            "marker": {"color": role, "size": 10},
            "hovertemplate": f"{name} {number_text('y', unit)}<br>%{{x:,}} {size}<extra></extra>",
        }

    fit = [unit.value(one.facts.fitness) for one in members]
    tested = [unit.value(one.facts.test_accuracy) for one in members]
    traces = [curve(fit, f"on the {label(members[-1].facts.fitness_on)} set", "var(--best)")]
    usual = any(Unit.of(name) == unit for name in USUAL.values())
    if usual and any(value is not None for value in tested):
        traces.append(curve(tested, "on the test set", "var(--mean)"))
    return {
        "data": traces,
        "layout": {
            "hovermode": "closest",
            "xaxis": {**axis(size), "type": "log", **_log_ticks(x)},
            "yaxis": fitness_axis(unit),
        },
    }


def _log_ticks(values: Sequence[int]) -> Figure:
    """Ticks at 1, 2 and 5 times the powers of ten: plotly would name every digit."""
    steps = [step * 10**power for power in range(16) for step in (1, 2, 5)]
    if not values:
        return {}
    low, high = min(values), max(values)
    ticks = [step for step in steps if low / 2 <= step <= 2 * high]
    if sum(low <= tick <= high for tick in ticks) < 2:
        ticks = sorted({low, high})  # all are about as large: the ends say more than round numbers
    return {"tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]}
