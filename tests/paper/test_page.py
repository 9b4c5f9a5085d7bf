"""The page of an experiment in a browser: it opens alone, and its plots show what the files say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from epicortex.cli import main
from tests.report.browser import Page, chromium

SECTIONS = ["summary", "table", "curves", "sizes", "refusals", "claims", "controls", "runs"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, experiment: Path) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(experiment / "page.html")
        yield opened


def test_it_opens_without_a_complaint_and_without_a_request(page: Page, experiment: Path) -> None:
    page.open(experiment / "page.html")
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.complaints() == []
    assert page.requests() == {(experiment / "page.html").as_uri()}
    assert page.run("return [...document.querySelectorAll('main section')].map((one) => one.id)") == SECTIONS


@pytest.mark.parametrize("mode", ["on", "off"])
def test_the_curves_are_means_over_the_runs_and_the_bands_their_range(
    mode: str, page: Page, experiment: Path
) -> None:
    folder = experiment / "digits" / f"speciation-{mode}"
    histories = [
        [json.loads(line) for line in (folder / f"seed-{seed}" / "history.jsonl").read_text().splitlines()]
        for seed in (1, 2)
    ]
    traces = page.traces(f"fitness-digits-speciation-{mode}")
    assert len(traces) == 9
    for place, key in enumerate(("highest_fitness", "average_fitness", "offspring_fitness")):
        low, high, mean = traces[3 * place : 3 * place + 3]
        for generation, lines in enumerate(zip(*histories, strict=True)):
            known = [100 * line[key] for line in lines if line[key] is not None]
            drawn = [trace["y"][generation] for trace in (low, high, mean)]
            if known:
                assert drawn == pytest.approx([min(known), max(known), fmean(known)], abs=1e-5)
            else:
                assert drawn == [None] * 3


def test_every_plot_is_drawn_and_every_run_is_listed(page: Page, experiment: Path) -> None:
    drawn = page.run(
        "return [...document.querySelectorAll('.canvas')].filter((e) => e.querySelector('.main-svg')).length"
    )
    assert drawn == len(list((experiment / "figures").glob("*.svg"))) == 6
    text = page.run("return document.querySelector('#runs').innerText")
    for path in experiment.rglob("config.toml"):
        assert str(path.parent.relative_to(experiment)) in text
    assert "Complete: 20 runs" in page.run("return document.querySelector('#summary').innerText")


def test_a_comparison_has_a_dot_for_every_run(page: Page, experiment: Path, tmp_path: Path) -> None:
    sets = [str(experiment / "digits" / f"speciation-{mode}") for mode in ("on", "off")]
    out = tmp_path / "comparison.html"
    assert main(["compare", sets[0], "--with", sets[1], "--out", str(out)]) == 0
    page.open(out)
    assert page.complaints() == []
    assert page.requests() == {out.as_uri()}
    dots = {trace["name"]: trace["y"] for trace in page.traces("fitness") if trace["name"]}
    for name, folder in zip("AB", sets, strict=True):
        lines = [
            json.loads((Path(folder) / f"seed-{seed}" / "history.jsonl").read_text().splitlines()[-1])
            for seed in (1, 2)
        ]
        assert dots[name][:2] == pytest.approx([100 * line["highest_fitness"] for line in lines], abs=1e-5)
        assert len(dots[name]) == 8
