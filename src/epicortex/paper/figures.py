"""The plots of an experiment, as the plain figures that `report` draws: means over runs, and what they span.

Bands reach from the lowest run to the highest, in each generation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np

from epicortex.ecosystem.history import History
from epicortex.pages.plots import Figure, axis, fitness_axis, generation_axis
from epicortex.pages.units import Unit
from epicortex.paper.controls import CONTROLS
from epicortex.paper.plan import Experiment
from epicortex.paper.results import Figures, Results

_ACCURACY: Final = Unit.of("accuracy")
_CURVES: Final = (
    ("highest_fitness", "highest", "best"),
    ("average_fitness", "average", "mean"),
    ("offspring_fitness", "offspring before training", "offspring"),
)
_BANDS: Final = {"best": "best-band", "mean": "band", "offspring": "offspring-band"}
_MODES: Final = ((True, "with speciation", "mean"), (False, "without", "best"))
#: Points of a curve over trainings.
_STEPS: Final = 101


def draw(results: Results) -> dict[str, Figure]:
    """All plots that there is something to plot for, by name; the names serve as names of files too."""
    drawn: dict[str, Figure] = {}
    plain = [one for one in results.experiments if one.control is None]
    for experiment in plain:
        if runs := results.of(experiment):
            drawn[f"fitness-{slug(experiment)}"] = fitness(runs)
    for data in dict.fromkeys(one.data for one in plain):
        modes = {mode: results.of(Experiment(data, mode)) for mode, _, _ in _MODES}
        if any(modes.values()):
            drawn[f"parameters-{data}"] = over_generations(modes, _parameters, axis("mean parameters"))
            drawn[f"refused-{data}"] = over_generations(modes, _refused, axis("refused mutations, %"))
    for experiment in plain:
        if results.of(experiment) and any(results.of(one) for one in controls_of(experiment)):
            drawn[f"controls-{slug(experiment)}"] = controls(results, experiment)
    return drawn


def slug(experiment: Experiment) -> str:
    """An experiment's folder as one word.

    >>> slug(Experiment("mnist", True))
    'mnist-speciation-on'
    """
    return "-".join(experiment.folder.parts)


def controls_of(experiment: Experiment) -> list[Experiment]:
    """The controls of an experiment, whether they were run or not."""
    return [Experiment(experiment.data, experiment.speciation, name) for name in CONTROLS]


def fitness(runs: Sequence[Figures]) -> Figure:
    """The paper's figure: highest, average and offspring fitness."""
    traces: list[Figure] = []
    for key, name, role in _CURVES:
        series = [[_ACCURACY.value(getattr(line, key)) for line in run.history] for run in runs]
        traces += _spread(series, name, role, "%{y:.2f} %", dash="dot" if role == "offspring" else "solid")
    return _figure(traces, fitness_axis(_ACCURACY))


def over_generations(
    modes: dict[bool, tuple[Figures, ...]],
    series: Callable[[History], list[float | None]],
    y_axis: Figure,
) -> Figure:
    """One curve with speciation and one without."""
    traces: list[Figure] = []
    for mode, name, role in _MODES:
        if modes[mode]:
            traces += _spread([series(run.history) for run in modes[mode]], name, role, "%{y:,.4~g}")
    return _figure(traces, {**y_axis, "rangemode": "tozero"})


def controls(results: Results, experiment: Experiment) -> Figure:
    """The highest fitness so far over the trainings spent, of an experiment and its controls."""
    traces: list[Figure] = []
    for place, one in enumerate([experiment, *controls_of(experiment)]):
        if runs := results.of(one):
            name = CONTROLS[one.control].title if one.control else "evolution"
            steps = np.linspace(0, min(run.trainings for run in runs), _STEPS)
            mean = np.mean([_over_trainings(run, steps) for run in runs], axis=0)
            known = [
                (round(float(x)), round(float(y), 6))
                for x, y in zip(steps, mean, strict=True)
                if np.isfinite(y)
            ]
            role = f"var(--c{place + 1})" if one.control else "var(--ink)"
            line = {"color": role, "width": 2, "dash": "solid" if one.control is None else "dash"}
            traces.append(
                {
                    "x": [x for x, _ in known],
                    "y": [y for _, y in known],
                    "name": name,
                    "mode": "lines",
                    "line": line,
                    "hovertemplate": f"{name} %{{y:.2f}} %<extra></extra>",
                }
            )
    title = {**axis("trainings of a network"), "unifiedhovertitle": {"text": "%{x:,} trainings"}}
    layout = {"hovermode": "x unified", "xaxis": title, "yaxis": axis("highest fitness so far, %")}
    return {"data": traces, "layout": layout}


def _over_trainings(run: Figures, steps: Any) -> Any:
    """The highest fitness so far, in percent, after so many trainings; no number before there is one."""
    known = np.array([_ACCURACY.value(line.highest_fitness) for line in run.history], dtype=float)
    best = np.fmax.accumulate(known)
    return np.concatenate([[np.nan], best])[np.searchsorted(run.spent, steps, side="right")]


def _parameters(history: History) -> list[float | None]:
    return [line.mean_parameters for line in history]


def _refused(history: History) -> list[float | None]:
    """The share of attempts at a mutation that were refused, in percent."""
    shares: list[float | None] = []
    for line in history:
        tried = line.mutations_tried
        shares.append(100 * line.mutations_refused / tried if tried else None)
    return shares


def _spread(
    series: Sequence[Sequence[float | None]], name: str, role: str, hover: str, dash: str = "solid"
) -> list[Figure]:
    """A band from the lowest run to the highest, where there are several, and the mean over it."""
    length = max(map(len, series))
    x = list(range(1, length + 1))
    columns = [
        [value for one in series if place < len(one) and (value := one[place]) is not None]
        for place in range(length)
    ]

    def along(figure: Callable[[list[float]], float]) -> list[float | None]:
        return [round(figure(column), 6) if column else None for column in columns]

    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    band: list[Figure] = []
    if len(series) > 1:
        fill = {"fill": "tonexty", "fillcolor": f"var(--{_BANDS[role]})"}
        band = [{**edge, "y": along(min)}, {**edge, **fill, "y": along(max)}]
    means = along(fmean)
    line = {"color": f"var(--{role})", "width": 2.5, "dash": dash}
    mode = "lines+markers" if length < 3 else "lines"
    label = f"{name} {hover}<extra></extra>"
    return [*band, {"x": x, "y": means, "name": name, "mode": mode, "line": line, "hovertemplate": label}]


def _figure(traces: list[Figure], y_axis: Figure) -> Figure:
    return {"data": traces, "layout": {"hovermode": "x unified", "xaxis": generation_axis(), "yaxis": y_axis}}
