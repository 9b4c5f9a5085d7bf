"""The report in a browser: nothing is loaded, everything is there, every plot shows what the files say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from epicortex import report
from epicortex.families.layered.genome import Genome
from epicortex.report.sections import NAMES
from tests.report.browser import Page, chromium
from tests.report.world import pretended_run

PLOTS = ("fitness", "species", "sizes", "shapes", "attempts", "effects", "seconds")
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = pretended_run(
        tmp_path_factory.mktemp("runs") / "run", failing=0.03, command="epicortex evolve …"
    )
    report.write(folder)
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(run / "report.html")
        yield opened


@pytest.fixture
def fresh(page: Page, run: Path) -> Page:
    page.open(run / "report.html")
    return page


@pytest.fixture(scope="module")
def lines(run: Path) -> Lines:
    return [json.loads(line) for line in (run / "networks.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def history(run: Path) -> Lines:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def percent(values: Sequence[float | None]) -> list[Any]:
    return [None if value is None else pytest.approx(100 * value, abs=1e-5) for value in values]


def quantile(values: Sequence[float], share: float) -> float:
    """By hand: between the two values nearest to that place."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def by_generation(lines: Lines) -> list[Lines]:
    last = max(line["generation"] for line in lines)
    return [[line for line in lines if line["generation"] == at] for at in range(1, last + 1)]


def genomes(lines: Lines) -> list[Genome]:
    """The genome of each line."""
    known: dict[int, Genome] = {}
    found = []
    for line in lines:
        if isinstance(line["genome"], dict):
            known[line["id"]] = Genome.from_dict(line["genome"])
        found.append(known[line["id"]])
    return found


# -- what opens -----------------------------------------------------------------------------------------


def test_it_opens_without_a_complaint_and_without_a_request(fresh: Page, run: Path) -> None:
    fresh.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    fresh.run("scrollTo(0, document.body.scrollHeight)")
    fresh.point("sizes", 1, 0)
    fresh.wait("return document.querySelector('.hoverlayer .hovertext') !== null")
    assert fresh.complaints() == []
    assert fresh.requests() == {(run / "report.html").as_uri()}


def test_a_script_that_got_into_the_page_would_not_run_and_nothing_could_be_loaded(fresh: Page) -> None:
    fresh.run(
        """
        const script = document.createElement("script");
        script.textContent = "window.intruder = true";
        document.body.append(script);
        const image = new Image();
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(image);
        """
    )
    assert fresh.run("return window.intruder") is None
    assert any("Content Security Policy" in text for text in fresh.complaints())


def test_every_section_is_there_with_its_heading_and_in_the_contents(page: Page) -> None:
    sections = page.run("return [...document.querySelectorAll('main section')].map((one) => one.id)")
    assert sections == [name for name in NAMES if name != "models"]
    links = page.run("return [...document.querySelectorAll('nav a')].map((one) => one.hash)")
    assert links == [f"#{name}" for name in sections]
    for name in sections:
        assert page.run("return document.getElementById(arguments[0]).innerText.length", name) > 15


def test_every_plot_is_drawn(page: Page) -> None:
    for plot in PLOTS:
        marks = page.run(
            "return document.querySelectorAll(`#plot-${arguments[0]} .cartesianlayer path`).length", plot
        )
        assert marks > 2, plot


# -- what is plotted ------------------------------------------------------------------------------------


def test_the_curves_are_those_of_the_history_and_the_bands_those_of_the_networks(
    page: Page, history: Lines, lines: Lines
) -> None:
    low, high, inner_low, inner_high, best, mean, offspring = page.traces("fitness")
    generations = [line["generation"] for line in history]
    for trace, key in ((best, "highest"), (mean, "average"), (offspring, "offspring")):
        assert trace["x"] == generations
        assert trace["y"] == percent([line[f"{key}_fitness"] for line in history])
    assert offspring["y"][0] is None
    for trace, share in ((low, 0.05), (inner_low, 0.25), (inner_high, 0.75), (high, 0.95)):
        scores = [[line["fitness"] for line in group if line["fitness"]] for group in by_generation(lines)]
        assert trace["y"] == percent([quantile(values, share) for values in scores])


def test_the_areas_are_the_members_of_each_species_and_the_bars_births_and_extinctions(
    page: Page, history: Lines, lines: Lines
) -> None:
    traces = {trace["name"]: trace for trace in page.traces("species")}
    groups = [Counter(line["species"] for line in group) for group in by_generation(lines)]
    shown = [int(name.split()[1]) for name in traces if name.startswith("species ")]
    for id in shown:
        assert traces[f"species {id}"]["y"] == [group[id] for group in groups]
    others = [sum(n for id, n in group.items() if id not in shown) for group in groups]
    rest = [trace["y"] for name, trace in traces.items() if "smaller" in name]
    assert (rest or [[0] * len(groups)]) == [others]
    assert traces["founded"]["y"] == [line["species_founded"] for line in history]
    assert traces["extinct"]["y"] == [-line["species_extinct"] for line in history]


def test_every_network_is_a_dot_with_its_genome(page: Page, lines: Lines) -> None:
    dots, front = page.traces("sizes")
    scored = [(line, genome) for line, genome in zip(lines, genomes(lines), strict=True) if line["fitness"]]
    assert dots["x"] == [line["parameters"] for line, _ in scored]
    assert dots["y"] == percent([line["fitness"] for line, _ in scored])
    assert dots["customdata"] == [[line["id"], line["generation"]] for line, _ in scored]
    for text, (_, genome) in zip(dots["text"], scored, strict=True):
        layers = text.split("<br>")
        assert [layer.split(":")[0] for layer in layers] == [
            f"{layer.type} {layer.nodes}" for layer in genome.layers
        ]
    best: list[tuple[int, float]] = []
    for line in sorted((line for line, _ in scored), key=lambda one: (one["parameters"], -one["fitness"])):
        if not best or line["fitness"] > best[-1][1]:
            best.append((line["parameters"], line["fitness"]))
    assert front["x"] == [size for size, _ in best]
    assert front["y"] == percent([fitness for _, fitness in best])


def test_the_shares_of_kernel_shapes_are_those_of_all_networks(page: Page, lines: Lines) -> None:
    counts: list[Counter[str]] = [Counter() for _ in by_generation(lines)]
    for line, genome in zip(lines, genomes(lines), strict=True):
        for layer in genome.hidden:
            if layer.type == "conv":
                counts[line["generation"] - 1].update("×".join(map(str, kernel)) for kernel in layer.kernels)
    traces = page.traces("shapes")
    assert {trace["name"] for trace in traces} == {name for count in counts for name in count}
    for trace in traces:
        assert trace["y"] == percent([count[trace["name"]] / count.total() for count in counts])


def test_mutations_are_counted_and_their_effect_is_the_change_of_fitness(page: Page, lines: Lines) -> None:
    signs = {"grow": "+", "shrink": "−"}
    tried: Counter[tuple[str, str]] = Counter()
    changes: dict[str, list[float]] = {}
    fitness = {(line["generation"], line["id"]): line["fitness"] for line in lines}
    for line in lines:
        before = fitness.get((line["generation"] - 1, line["id"]))
        for event in line["events"]:
            name = f"{event['type']} {signs[event['direction']]}"
            tried[event["outcome"], name] += 1
            if event["outcome"] == "applied" and before and line["fitness"]:
                changes.setdefault(name, []).append(line["fitness"] - before)
    plotted = {
        (trace["name"], name): number
        for trace in page.traces("attempts")
        for name, number in zip(trace["y"], trace["x"], strict=True)
        if number
    }
    assert plotted == dict(tried)
    (effects,) = page.traces("effects")
    means = {name: 100 * sum(values) / len(values) for name, values in changes.items()}
    found = dict(zip(effects["y"], effects["x"], strict=True))
    assert found == {name: pytest.approx(value, abs=1e-5) for name, value in means.items()}
    assert dict(zip(effects["y"], effects["customdata"], strict=True)) == {
        name: len(values) for name, values in changes.items()
    }


def test_the_seconds_are_those_of_the_history(page: Page, history: Lines) -> None:
    training, rest = page.traces("seconds")
    assert training["y"] == [line["train_seconds"] for line in history]
    assert rest["y"] == [line["evolve_seconds"] for line in history]


# -- what a person does ---------------------------------------------------------------------------------


def test_pointing_at_a_dot_shows_the_genome(fresh: Page) -> None:
    front = fresh.traces("sizes")[1]
    fresh.point("sizes", 1, len(front["x"]) - 1)
    shown = fresh.wait("return document.querySelector('#plot-sizes .hoverlayer .hovertext')?.textContent")
    network, generation = front["customdata"][-1]
    assert f"network {network}, generation {generation}" in shown
    assert front["text"][-1].replace("<br>", "") in shown


def test_pointing_at_a_curve_shows_the_figures_of_that_generation(fresh: Page, history: Lines) -> None:
    fresh.point("fitness", 4, 5)
    shown = fresh.wait("return document.querySelector('#plot-fitness .hoverlayer .legend')?.textContent")
    assert f"best {100 * history[5]['highest_fitness']:.2f} %" in shown
    assert f"mean {100 * history[5]['average_fitness']:.2f} %" in shown


def test_arrow_keys_walk_through_a_plot_and_read_it_out(fresh: Page, history: Lines) -> None:
    from selenium.webdriver.common.keys import Keys

    plot = fresh.driver.find_element("id", "plot-fitness")
    plot.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    said = fresh.run("return document.getElementById('live').textContent")
    best = round(100 * history[1]["highest_fitness"], 3)
    assert said == f"best, 2: {best:g}"
    plot.send_keys(Keys.ARROW_DOWN)
    assert fresh.run("return document.getElementById('live').textContent").startswith("mean, 2:")
    assert fresh.wait("return document.querySelector('#plot-fitness .hoverlayer .legend') !== null")


def test_the_legend_hides_and_shows_a_series(fresh: Page) -> None:
    find = "[...document.querySelectorAll('#fitness .legend button')].find((one) => one.innerText === 'mean')"
    drawn = "return document.querySelectorAll('#plot-fitness .scatterlayer .trace').length"
    before = fresh.run(drawn)
    fresh.run(f"{find}.click()")
    assert fresh.run(f"return {find}.ariaPressed") == "false"
    assert fresh.run(drawn) == before - 1
    fresh.run(f"{find}.click()")
    assert fresh.run(drawn) == before


@pytest.mark.parametrize("system", ["light", "dark"])
def test_colours_follow_the_system_and_the_switch(page: Page, run: Path, system: str) -> None:
    page.open(run / "report.html", scheme=system)
    background = "return getComputedStyle(document.body).backgroundColor"
    letters = "return getComputedStyle(document.querySelector('#plot-fitness .xtick text')).fill"
    dark = {"light": "rgb(246, 245, 241)", "dark": "rgb(14, 19, 24)"}
    ink = {"light": "rgb(28, 36, 48)", "dark": "rgb(232, 236, 240)"}
    assert (page.run(background), page.run(letters)) == (dark[system], ink[system])
    for choice in ("dark", "light"):
        page.driver.find_element("css selector", f".theme input[value={choice}]").click()
        page.wait(f"{letters} === '{ink[choice]}'")
        assert page.run(background) == dark[choice]
    page.driver.find_element("css selector", ".theme input[value=system]").click()
    page.wait(f"{letters} === '{ink[system]}'")
    assert page.complaints() == []


@pytest.mark.parametrize("width", [320, 390, 768, 1600])
def test_nothing_sticks_out_of_the_window(page: Page, run: Path, width: int) -> None:
    page.open(run / "report.html", width=width)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.run("return document.documentElement.scrollWidth") <= width
    inner = "[...document.querySelectorAll('.figures dd, section > p, h1, h2:not(.sr)')]"
    assert page.run(f"return {inner}.filter((one) => one.scrollWidth > one.clientWidth + 1).length") == 0


def test_it_can_be_used_by_keyboard_and_screen_reader(page: Page) -> None:
    def count(selector: str) -> int:
        return int(page.run("return document.querySelectorAll(arguments[0]).length", selector))

    assert [count(one) for one in ("main", "nav[aria-label]", "header", "h1", "a.skip[href='#main']")] == [
        1
    ] * 5
    assert count("html[lang]") == 1
    assert count("section:not([aria-labelledby])") == 0
    assert (
        count("img:not([alt])")
        + count("svg:not([aria-hidden]):not([role=img]):not(.main-svg):not(#js-plotly-tester)")
        == 0
    )
    assert count("table:not(:has(caption))") + count("th:not([scope])") == 0
    assert count(".scroll:not([tabindex])") == 0
    assert count(".canvas[tabindex][aria-label]") == len(PLOTS)
    assert count("#fitness details table") == count("#species details table") == 1
    ids = page.run("return [...document.querySelectorAll('main [id]')].map((one) => one.id)")
    own = [id for id in ids if "-" not in id or id.startswith(("h-", "plot-"))]
    assert len(own) == len(set(own))
    levels = page.run("return [...document.querySelectorAll('h1, h2, h3')].map((one) => +one.tagName[1])")
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_without_javascript_the_tables_hold_the_figures(page: Page, run: Path, history: Lines) -> None:
    page.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.driver.get((run / "report.html").as_uri())
        html = page.driver.page_source
        notice = page.driver.find_element("tag name", "noscript")
        assert "the tables behind them hold the same figures" in notice.text
        assert f"<td>{100 * history[-1]['highest_fitness']:.2f}&nbsp;%</td>" in html
    finally:
        page.tell("Emulation.setScriptExecutionDisabled", value=False)
