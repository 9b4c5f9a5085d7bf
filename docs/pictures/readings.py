"""Draws the picture of two readings of the paper in docs/results from the runs that are kept there.

python docs/pictures/readings.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from epicortex.reproduction import keeping, svg
from epicortex.reproduction.plan import Experiment
from epicortex.reproduction.published import MEASURES, published

RESULTS = Path(__file__).parents[1] / "results"
ROLES = {"highest_fitness": "best", "average_fitness": "mean", "offspring_fitness": "offspring"}
WORDS = {"highest_fitness": "highest", "average_fitness": "average", "offspring_fitness": "offspring"}
READINGS = {"paper": "full", "published": "mnist-published"}
#: Where the paper's own figures stand: behind its last generation.
BEHIND = 103


def curves(reading: str, dash: str) -> list[dict[str, Any]]:
    """Highest, average and offspring fitness of a run without speciation."""
    kept = keeping.read(RESULTS / READINGS[reading] / keeping.NAME)
    lines = next(one.figures.history for one in kept if one.run.experiment == Experiment("mnist", False))
    return [
        {
            "x": [line["generation"] for line in lines],
            "y": [None if line[key] is None else 100 * line[key] for line in lines],
            "name": WORDS[key] if dash == "solid" else f"dotted: preset {reading}",
            "showlegend": dash == "solid" or key == "average_fitness",
            "mode": "lines",
            "line": {"color": f"var(--{role})", "width": 2, "dash": dash},
        }
        for key, role in ROLES.items()
    ]


def bands() -> list[dict[str, Any]]:
    """The paper's means with two of its deviations."""
    drawn: list[dict[str, Any]] = []
    for place, measure in enumerate(MEASURES):
        paper = published("mnist", False, measure)
        assert paper is not None
        colour = {"color": f"var(--{ROLES[measure]})", "width": 3}
        at = BEHIND + 2 * place
        ends = [paper.low, min(100.0, paper.high)]
        drawn.append({"x": [at, at], "y": ends, "mode": "lines", "line": colour})
        drawn.append({"x": [at], "y": [paper.mean], "mode": "markers", "marker": colour})
    return [{**trace, "showlegend": False} for trace in drawn]


def main() -> None:
    """Draw it."""
    layout = {
        "xaxis": {"title": {"text": "generation; behind it the paper's mean ± 2 of its deviations"}},
        "yaxis": {"title": {"text": "fitness, %"}},
    }
    figure = {"data": [*curves("paper", "solid"), *curves("published", "dot"), *bands()], "layout": layout}
    target = RESULTS / "mnist-published" / "readings.svg"
    target.write_text(svg.picture(figure, "MNIST without speciation in two readings"))
    print(target)


if __name__ == "__main__":
    main()
