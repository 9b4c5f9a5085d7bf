"""Validation accuracy over time, all arms of one data set in one picture: the means of their seeds."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.arms import ARMS
from benchmarks.ledger import Run

_POINTS: Final = 120
_SIZE: Final = (9.0, 4.6)
#: The same bytes for the same runs.
_FIXED: Final[dict[Any, Any]] = {"svg.hashsalt": "epicortex", "svg.fonttype": "none"}


def mean_curve(curves: Sequence[Sequence[Sequence[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of several curves, from the time when all have begun to when the first has ended.

    >>> mean_curve([[[0.0, 0.2], [2.0, 0.4]], [[1.0, 0.6], [3.0, 0.8]]])[1][[0, -1]].round(3).tolist()
    [0.45, 0.55]
    """
    arrays = [np.asarray(curve, float) for curve in curves]
    first, last = max(curve[0, 0] for curve in arrays), min(curve[-1, 0] for curve in arrays)
    times = np.linspace(first, max(first, last), _POINTS)
    return times, np.mean([np.interp(times, curve[:, 0], curve[:, 1]) for curve in arrays], axis=0)


def picture(runs: Sequence[Run], title: str) -> str:
    """SVG text; empty where no run has a curve."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = [(arm, [run.figures["curve"] for run in runs if run.key.arm == arm]) for arm in ARMS]
    drawn = [(arm, [curve for curve in curves if curve]) for arm, curves in drawn]
    drawn = [(arm, curves) for arm, curves in drawn if curves]
    if not drawn:
        return ""
    with mpl.rc_context(_FIXED):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        lows, highs = [], []
        for place, (arm, curves) in enumerate(drawn):
            times, values = mean_curve(curves)
            style = "-" if place < 10 else "--"
            width = 2.6 if arm == "ours" else 1.3
            axes.plot(times / 60, 100 * values, style, color=f"C{place % 10}", lw=width, label=arm)
            lows.append(100 * np.quantile(values, 0.25))
            highs.append(100 * values.max())
        low, high = float(np.median(lows)), max(highs)
        axes.set_ylim(low - 0.02, high + 0.05 * (high - low) + 0.02)
        axes.set(xlabel="minutes", ylabel="validation accuracy, %", title=title)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
