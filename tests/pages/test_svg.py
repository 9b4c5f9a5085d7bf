"""The plots as pictures: well-formed, with every point where it belongs."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.pages import svg
from epicortex.paper import figures
from epicortex.paper.plan import Experiment
from tests.paper.world import figures as run
from tests.paper.world import history, level, results, slope

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(figure: Any) -> ElementTree.Element:
    return ElementTree.fromstring(svg.picture(figure, "A <title> & more"))


def line(figure_svg: ElementTree.Element, width: str = "2.5") -> list[list[tuple[float, float]]]:
    """The points of every curve."""
    curves = []
    for path in figure_svg.iter(f"{SPACE}path"):
        if path.get("stroke-width") == width:
            pairs = re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d") or "")
            curves.append([(float(x), float(y)) for x, y in pairs])
    return curves


def test_points_lie_in_proportion_and_higher_is_up() -> None:
    (curve,) = line(
        drawn(
            {
                "data": [
                    {
                        **{"x": [0, 1, 4], "y": [10.0, 20.0, 30.0], "name": "a", "mode": "lines"},
                        "line": {"color": "var(--best)", "width": 2.5},
                    }
                ],
                "layout": {"xaxis": {"title": {"text": "x"}}, "yaxis": {"title": {"text": "y"}}},
            }
        )
    )
    (x0, y0), (x1, y1), (x2, y2) = curve
    assert x1 - x0 == pytest.approx((x2 - x0) / 4, abs=0.02)
    assert y0 > y1 > y2
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.02)


def test_a_missing_figure_breaks_the_line() -> None:
    gap = history(offspring=lambda generation: None if generation == 10 else 0.5)
    text = svg.picture(figures.fitness([run(gap)]), "gap")
    offspring = [path for path in re.findall(r'<path d="([^"]+)" fill="none"', text) if path.count("M") == 2]
    assert len(offspring) == 1


def test_a_band_spans_the_runs_and_the_mean_lies_in_it() -> None:
    runs = [run(history(highest=level(value))) for value in (0.5, 0.6, 0.9)]
    figure = figures.fitness(runs)
    low, high, mean = figure["data"][:3]
    assert set(low["y"]) == {50.0}
    assert set(high["y"]) == {90.0}
    assert mean["y"] == pytest.approx([200 / 3] * 20, abs=1e-5)
    assert high["fill"] == "tonexty"
    assert "fill-opacity" in svg.picture(figure, "band")
    single = figures.fitness(runs[:1])["data"]
    assert [trace["name"] for trace in single] == ["highest", "average", "offspring before training"]


def test_every_plot_of_an_experiment_is_a_picture() -> None:
    experiments = {
        Experiment("mnist", True): [run(), run(history(highest=slope(0.5, 0.01)))],
        Experiment("mnist", False): [run()],
        Experiment("mnist", True, "founders"): [run(history(highest=level(0.7)))],
    }
    plots = figures.draw(results(experiments))
    assert list(plots) == [
        "fitness-mnist-speciation-on",
        "fitness-mnist-speciation-off",
        "parameters-mnist",
        "refused-mnist",
        "controls-mnist-speciation-on",
    ]
    for figure in plots.values():
        root = drawn(figure)
        title = root.find(f"{SPACE}title")
        assert title is not None
        assert title.text == "A <title> & more"
        names = [trace["name"] for trace in figure["data"] if trace.get("name")]
        texts = [text.text for text in root.iter(f"{SPACE}text")]
        assert set(names) <= set(texts)
        for curve in line(root):
            assert all(0 <= x <= 760 and 0 <= y <= 400 for x, y in curve)


def test_refused_mutations_are_a_share_of_the_attempts() -> None:
    plots = figures.draw(results({Experiment("mnist", True): [run(history(refused=15))]}))
    (trace,) = plots["refused-mnist"]["data"]
    assert set(trace["y"]) == {75.0}


def test_controls_are_drawn_over_trainings_by_the_highest_fitness_so_far() -> None:
    falling = run(history(generations=4, highest=lambda generation: (0.5, 0.7, 0.6, 0.8)[generation - 1]))
    other = {Experiment("mnist", True): [falling], Experiment("mnist", True, "random"): [falling]}
    (plain, _) = figures.draw(results(other))["controls-mnist-speciation-on"]["data"]
    # Ten networks a generation: 50 % after ten trainings, 70 % from twenty on, 80 % at the end.
    found = dict(zip(plain["x"], plain["y"], strict=True))
    assert (found[10], found[20], found[30], found[40]) == (50.0, 70.0, 70.0, 80.0)
    assert min(found) >= 10


def test_trainings_are_those_spent_and_a_mean_needs_all_runs() -> None:
    """One run has its first generation after 30 trainings, the other after 10: below 30 there is no mean."""
    lines = history(generations=2, highest=lambda generation: (0.5, 0.7)[generation - 1])
    runs = [run(lines, spent=[30, 40]), run(lines, spent=[10, 40])]
    other = {Experiment("mnist", True): runs, Experiment("mnist", True, "random"): runs}
    (plain, _) = figures.draw(results(other))["controls-mnist-speciation-on"]["data"]
    found = dict(zip(plain["x"], plain["y"], strict=True))
    assert min(found) == 30
    assert (found[30], found[40]) == (50.0, 70.0)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_round_and_within(low: float, span: float) -> None:
    high = low + span
    found = svg.ticks(low, high)
    assert 2 <= len(found) <= 8
    steps = {round((b - a) / span, 6) for a, b in pairwise(found)}
    assert max(steps) - min(steps) < 1e-3
    assert low - 1e-6 * span - 1e-9 <= found[0]
    assert found[-1] <= high + 1e-6 * span + 1e-9
