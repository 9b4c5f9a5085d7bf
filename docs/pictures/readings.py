"""Draws the pictures of two readings of the paper in docs/results from the runs that are kept there.

python docs/pictures/readings.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epicortex.pages import svg
from epicortex.paper import results_file
from epicortex.paper.plan import Experiment
from epicortex.paper.published import MEASURES, published

RESULTS = Path(__file__).parents[1] / "results"
ROLES = {"highest_fitness": "best", "average_fitness": "mean", "offspring_fitness": "offspring"}
WORDS = {"highest_fitness": "highest", "average_fitness": "average", "offspring_fitness": "offspring"}
READINGS = {"paper": "full", "published": "mnist-published"}
#: Where the paper's own figures stand: behind its last generation.
BEHIND = 103


def curves(reading: str, dash: str, *, speciation: bool) -> list[dict[str, Any]]:
    """Highest, average and offspring fitness of a run."""
    kept = results_file.read(RESULTS / READINGS[reading] / results_file.NAME)
    experiment = Experiment("mnist", speciation)
    lines = next(one.figures.history for one in kept if one.run.experiment == experiment)
    return [
        {
            "x": [line.generation for line in lines],
            "y": [None if (own := getattr(line, key)) is None else 100 * own for line in lines],
            "name": WORDS[key] if dash == "solid" else f"dotted: preset {reading}",
            "showlegend": dash == "solid" or key == "average_fitness",
            "mode": "lines",
            "line": {"color": f"var(--{role})", "width": 2, "dash": dash},
        }
        for key, role in ROLES.items()
    ]


def bands(*, speciation: bool) -> list[dict[str, Any]]:
    """The paper's means with two of its deviations."""
    drawn: list[dict[str, Any]] = []
    for place, measure in enumerate(MEASURES):
        paper = published("mnist", speciation, measure)
        assert paper is not None
        colour = {"color": f"var(--{ROLES[measure]})", "width": 3}
        at = BEHIND + 2 * place
        ends = [paper.low, min(100.0, paper.high)]
        drawn.append({"x": [at, at], "y": ends, "mode": "lines", "line": colour})
        drawn.append({"x": [at], "y": [paper.mean], "mode": "markers", "marker": colour})
    return [{**trace, "showlegend": False} for trace in drawn]


def main() -> None:
    """Draw them."""
    layout = {
        "xaxis": {"title": {"text": "generation; behind it the paper's mean ± 2 of its deviations"}},
        "yaxis": {"title": {"text": "fitness, %"}},
    }
    for speciation, mode in ((True, "on"), (False, "off")):
        ours = (curves(*one, speciation=speciation) for one in (("paper", "solid"), ("published", "dot")))
        traces = [trace for drawn in (*ours, bands(speciation=speciation)) for trace in drawn]
        target = RESULTS / "mnist-published" / f"readings-speciation-{mode}.svg"
        words = f"MNIST {'with' if speciation else 'without'} speciation in two readings"
        target.write_text(svg.picture({"data": traces, "layout": layout}, words))
        print(target)


if __name__ == "__main__":
    main()
