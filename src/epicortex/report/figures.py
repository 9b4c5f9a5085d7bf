"""The plots of a report, as plain plotly figures: which series there are, and what hovering shows.

Colours are roles such as `var(--best)`, which the page fills in for light and dark; sizes and fonts are the
page's too. Whatever comes from a file goes through `label`, as plotly takes `<` for markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epicortex.ecosystem.history import History
from epicortex.ecosystem.plan import Plan
from epicortex.families.family import Shape
from epicortex.pages.plots import Figure, axis, fitness_axis, generation_axis, label, whole
from epicortex.pages.units import Unit
from epicortex.report.legend import (
    REST,
    attempt_name,
    colour,
    common_attempts,
    common_shapes,
    largest_species,
    species_colour,
)
from epicortex.report.summary import RunSummary
from epicortex.text import plural, times


def fitness(
    history: History, summary: RunSummary, unit: Unit, plans: Mapping[int, Plan] | None = None
) -> Figure:
    """Best, mean and offspring-before-training fitness, over the spread of all networks and the phases."""
    x = [line.generation for line in history]
    spread = [generation.quantiles for generation in summary.generations]

    def edge(at: int, **more: Any) -> Figure:
        y = [unit.value(row[at]) if row else None for row in spread]
        return {"x": x, "y": y, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", **more}

    def band(low: int, high: int, name: str, role: str) -> list[Figure]:
        return [edge(low, showlegend=False), edge(high, name=name, fill="tonexty", fillcolor=role)]

    def curve(key: str, name: str, role: str, dash: str = "solid") -> Figure:
        return {
            "x": x,
            "y": [unit.value(getattr(line, key)) for line in history],
            "name": name,
            "mode": "lines+markers" if len(x) < 3 else "lines",
            "line": {"color": role, "width": 2.5, "dash": dash},
            "hovertemplate": f"{name} {number_text('y', unit)}<extra></extra>",
        }

    return {
        "data": [
            *band(0, 4, "90 % of the networks", "var(--band)"),
            *band(1, 3, "the middle half", "var(--band-2)"),
            curve("highest_fitness", "best", "var(--best)"),
            curve("average_fitness", "mean", "var(--mean)"),
            curve(
                "offspring_fitness",
                "offspring before training" if unit.trained else "offspring",
                "var(--offspring)",
                "dot",
            ),
        ],
        "layout": {
            "hovermode": "x unified",
            "xaxis": generation_axis(x),
            "yaxis": fitness_axis(unit),
            **_phases(plans or {}),
        },
    }


def species(history: History, summary: RunSummary) -> Figure:
    """How many networks each species has, stacked, over the species founded and lost."""
    x = [generation.generation for generation in summary.generations]
    shown = largest_species(summary)
    traces = []
    for id in shown:
        y = [generation.species.get(id, 0) for generation in summary.generations]
        hover = f"<b>species {id}</b>, %{{y}} networks in generation %{{x}}<br>{label(summary.species[id])}"
        traces.append(_area(x, y, f"species {id}", species_colour(id, shown), hover))
    if len(shown) < len(summary.species):
        y = [
            sum(number for id, number in generation.species.items() if id not in shown)
            for generation in summary.generations
        ]
        name = f"{len(summary.species) - len(shown)} smaller ones"
        traces.append(_area(x, y, name, REST, f"<b>{name}</b>, %{{y}} networks in generation %{{x}}"))
    founded = [line.species_founded for line in history]
    extinct = [line.species_extinct for line in history]
    events = []
    if any(founded) or any(extinct):
        events.append(_events(history, founded, "founded", "var(--good)", 1))
        events.append(_events(history, extinct, "extinct", "var(--bad)", -1))
    ticks = whole([0, *founded, *(-number for number in extinct)])
    return {
        "data": [*traces, *events],
        "layout": {
            "hovermode": "closest",
            "barmode": "relative",
            "xaxis": {**generation_axis(x), **({"anchor": "y2"} if events else {})},
            "yaxis": {**axis("networks"), "domain": [0.32 if events else 0, 1], "rangemode": "tozero"},
            **({"yaxis2": {**axis("lost, new"), "domain": [0, 0.22], **ticks}} if events else {}),
        },
    }


def shapes(summary: RunSummary) -> Figure:
    """The share of each kernel shape among all kernels of all networks, over the generations."""
    x = [generation.generation for generation in summary.generations]
    shown = common_shapes(summary)

    def area(chosen: Sequence[Shape], name: str, role: str) -> Figure:
        y = []
        for generation in summary.generations:
            total = sum(generation.kernels.values())
            own = sum(generation.kernels.get(shape, 0) for shape in chosen)
            y.append(round(100 * own / total, 6) if total else None)
        return _area(x, y, name, role, f"<b>{name}</b>, %{{y:.1f}} % in generation %{{x}}")

    every = {shape for generation in summary.generations for shape in generation.kernels}
    others = sorted(every.difference(shown))
    traces = [area([shape], times(shape), colour(place)) for place, shape in enumerate(shown)]
    if others:
        traces.append(area(others, plural(len(others), "other shape"), REST))
    return {
        "data": traces,
        "layout": {
            "hovermode": "closest",
            "xaxis": generation_axis(x),
            "yaxis": {**axis("share of all kernels, %"), "range": [0, 100]},
        },
    }


def attempts(summary: RunSummary) -> Figure:
    """How many mutations of each type were applied, refused and failed."""
    rows = common_attempts(summary)[::-1]
    traces = []
    for outcome, role in (("failed", "var(--bad)"), ("refused", REST), ("applied", "var(--good)")):
        numbers = [row.outcomes[outcome] for row in rows]
        bars = {
            "type": "bar",
            "orientation": "h",
            "y": [label(attempt_name(row)) for row in rows],
            "x": numbers,
            "name": outcome,
            "marker": {"color": role},
            "text": [f"{number:,}" if number else "" for number in numbers],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertemplate": f"%{{y}}: %{{x:,}} {outcome}<extra></extra>",
        }
        traces += [bars] if any(numbers) else []
    return {
        "data": traces,
        "layout": {
            "barmode": "group",
            "hovermode": "closest",
            "bargap": 0.25,
            "legend": {"traceorder": "reversed"},
            "xaxis": {**axis("attempts"), "rangemode": "tozero"},
            "yaxis": {"ticksuffix": "  "},
        },
    }


def effects(summary: RunSummary, unit: Unit) -> Figure:
    """The mean change of fitness after each type of mutation, with its standard error."""
    rows = [row for row in common_attempts(summary) if row.effect.number][::-1]
    points = "points" if unit.percent else "fitness"
    changes = [unit.value(row.effect.mean) or 0 for row in rows]
    errors = [unit.value(row.effect.error) or 0 for row in rows]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [label(attempt_name(row)) for row in rows],
        "x": changes,
        "name": "mutated",
        "showlegend": False,
        "marker": {
            "color": [
                "var(--bad)" if (change > 0 if unit.error else change < 0) else "var(--good)"
                for change in changes
            ]
        },
        "customdata": [row.effect.number for row in rows],
        "error_x": {"type": "data", "array": errors, "color": "var(--ink)", "thickness": 1.5, "width": 4},
        "hovertemplate": f"%{{y}}: %{{x:+.2f}} {points}<br>mean of %{{customdata:,}}<extra></extra>",
    }
    base = unit.value(summary.unchanged.mean)
    dotted = {"color": "var(--ink)", "width": 1.5, "dash": "dot"}
    line = {"type": "line", "x0": base, "x1": base, "yref": "paper", "y0": 0, "y1": 1, "line": dotted}
    return {
        "data": [bars],
        "layout": {
            "hovermode": "closest",
            "bargap": 0.4,
            "shapes": [line] if base is not None else [],
            "xaxis": {**axis(f"mean change, {points}"), "zeroline": True},
            "yaxis": {"ticksuffix": "  "},
        },
    }


def seconds(history: History, unit: Unit) -> Figure:
    """The seconds of each generation: training and scoring, and everything else."""

    def bars(key: str, name: str, role: str) -> Figure:
        return {
            "type": "bar",
            "x": [line.generation for line in history],
            "y": [getattr(line, key) for line in history],
            "name": name,
            "marker": {"color": role},
            "hovertemplate": f"{name} %{{y:.3~f}} s<extra></extra>",
        }

    return {
        "data": [
            bars("train_seconds", unit.effort, "var(--mean)"),
            bars("evolve_seconds", "everything else", "var(--offspring)"),
        ],
        "layout": {
            "barmode": "stack",
            "hovermode": "x unified",
            "xaxis": generation_axis([line.generation for line in history]),
            "yaxis": {**axis("seconds"), "rangemode": "tozero"},
        },
    }


def number_text(axis: str, unit: Unit) -> str:
    """How hovering writes a figure of an axis."""
    return f"%{{{axis}:.2f}} %" if unit.percent else f"%{{{axis}:.4g}}"


def _area(x: Sequence[int], y: Sequence[float | None], name: str, role: str, hover: str) -> Figure:
    return {
        "x": x,
        "y": y,
        "name": name,
        "mode": "lines",
        "stackgroup": "one",
        "line": {"width": 0.8, "color": "var(--card)"},
        "fillcolor": role,
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _events(history: History, numbers: Sequence[int], name: str, role: str, sign: int) -> Figure:
    return {
        "type": "bar",
        "x": [line.generation for line in history],
        "y": [sign * number for number in numbers],
        "yaxis": "y2",
        "name": name,
        "marker": {"color": role},
        "customdata": numbers,
        "hovertemplate": f"%{{customdata}} {name} in generation %{{x}}<extra></extra>",
    }


def _phases(plans: Mapping[int, Plan]) -> Figure:
    """Where polish begins, in the background; nothing where the run has no phases."""
    polished = [at for at, plan in plans.items() if plan.phase == "polish"]
    if not polished or len(polished) == len(plans):
        return {}
    begin, end = min(polished) - 0.5, max(polished) + 0.5
    area = {"type": "rect", "xref": "x", "yref": "paper", "x0": begin, "x1": end, "y0": 0, "y1": 1}
    look = {"fillcolor": "var(--offspring-band)", "line": {"width": 0}, "layer": "below", "opacity": 0.5}
    word = {"xref": "x", "yref": "paper", "y": 1, "yanchor": "top", "showarrow": False}
    return {
        "shapes": [{**area, **look}],
        "annotations": [
            {**word, "x": begin, "xanchor": "right", "text": "search "},
            {**word, "x": begin, "xanchor": "left", "text": " polish"},
        ],
    }
