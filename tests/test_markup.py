"""What notebooks show of results, champions and histories: figures of the run, and text that stays text."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import epicortex
from epicortex import markup
from epicortex.run.lifecycle import Result, resume
from tests.champions import make_champion, make_residual
from tests.report.world import PretendEngine, few_digits, pretended_run


def parsed(html: str) -> ElementTree.Element:
    """The elements, all of them closed."""
    return ElementTree.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    run = pretended_run(tmp_path_factory.mktemp("runs") / "run", evolution__generations=12, data=few_digits())
    return resume(run, {"evolution.generations": 13}, data=few_digits(), engine=PretendEngine())


def test_a_result_shows_how_it_ended_and_its_champion(result: Result) -> None:
    text = "".join(parsed(result._repr_html_()).itertext())
    assert result.stop_reason in text
    assert str(result.folder) in text
    assert result.champion is not None
    assert f"{result.champion.outline.parameters:,}" in text
    assert len(result._repr_html_()) < 10_000


def test_a_history_shows_its_last_generations_and_a_curve(result: Result) -> None:
    html = result.history._repr_html_()  # type: ignore[attr-defined]
    page = parsed(html)
    rows = page.findall(".//tbody/tr")
    assert [row.findtext("th") for row in rows] == [str(number) for number in range(4, 14)]
    assert rows[-1].findtext("td") == f"{result.history[-1].highest_fitness:.4f}"
    assert "the last 10 of 13 generations" in html
    best, _ = (path.attrib["d"] for path in page.findall(".//path"))
    heights = [float(point.split()[1]) for point in re.split("[ML]", best)[1:]]
    fitness = [one.highest_fitness or 0.0 for one in result.history]
    assert heights.index(min(heights)) == fitness.index(max(fitness))
    assert isinstance(result.history, list)


@pytest.mark.parametrize("champion", [make_champion(), make_residual()], ids=["layered", "residual"])
def test_a_champion_shows_its_layers(champion: epicortex.Champion) -> None:
    text = "".join(parsed(champion._repr_html_()).itertext())
    assert all(part.text in text for part in champion.outline.parts)
    assert "Zürich" in text


def test_no_name_becomes_markup(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    html = make_champion(classes=(evil, "b", "c"))._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<b>" not in markup.table([("<b>", "<b>")], ("<b>",), "<b>") + markup.curves({"<b>": [1.0, 2.0]})
