"""Pages about numbers and sets of labels: the figures are right, and they open at every width."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import epicortex
from epicortex import report
from epicortex.report import amounts
from epicortex.report.material import read
from tests.report.browser import Page, chromium
from tests.report.world import pretended_run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits as arrays, with two numbers and with three labels each."""
    folder, digits = tmp_path_factory.mktemp("data"), load_digits()
    images, t = digits.images[:240], digits.target[:240]
    numbers = np.stack([images[:, :4].mean((1, 2)), 1000 * images.std((1, 2))], axis=1)
    sets = np.stack([t % 2 == 0, t > 4, np.isin(t, (2, 3, 5, 7))], axis=1)
    np.savez(folder / "numbers.npz", x_train=images, y_train=numbers, classes=np.array(["ink", "spread"]))
    names = np.array(["even", "<b>big</b>", "a prime number, which only itself divides"])
    np.savez(folder / "sets.npz", x_train=images, y_train=sets.astype(np.int64), classes=names)
    return folder


@pytest.fixture(scope="module", params=["numbers", "sets"])
def run(request: Any, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp(request.param) / "run"
    changes: dict[str, Any] = {"evolution__generations": 2, "training__fitness_on": "validation"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pretended_run(place, data=str(files / f"{request.param}.npz"), **changes)
    report.write(place)
    return place


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def test_the_page_says_what_the_champion_says_of_the_test_set(run: Path) -> None:
    material = read(run)
    tested = material.tested
    assert isinstance(tested, amounts.Judged)
    assert material.champion is not None
    facts = material.champion.facts
    assert tested.samples == 48
    assert tested.accuracy == pytest.approx(facts.test_accuracy, rel=1e-5)
    data = epicortex.load_data(material.run.config.data.source)
    expected = epicortex.load(run).answer(data.x_test)
    given = tested.found.found if facts.task == "regression" else tested.found.chances  # type: ignore[union-attr]
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    table = amounts.table(tested)
    assert len(table.rows) == len(facts.classes)
    assert all(len(row) == len(table.head) for row in table.rows)


@pytest.mark.parametrize("width", [390, 1600])
def test_it_opens_without_a_complaint_at_every_width(page: Page, run: Path, width: int) -> None:
    page.open(run / "report.html", width=width)
    assert page.complaints() == []
    assert page.run("return document.documentElement.scrollWidth") <= width
    inner = "[...document.querySelectorAll('.plot')]"
    assert page.run(f"return {inner}.filter((one) => one.scrollWidth > one.clientWidth + 1).length") == 0
    plots = page.run("return document.querySelectorAll('#mistakes .plot').length")
    assert plots == (2 if "numbers" in str(run) else 0)


def test_try_it_answers_with_numbers_or_labels(page: Page, run: Path, tmp_path: Path) -> None:
    page.open(run / "report.html")
    page.wait("return document.getElementById('try').dataset.ready !== undefined")
    picture = tmp_path / "three.png"
    Image.fromarray((load_digits().images[3] * 15.9).astype(np.uint8)).save(picture)
    page.run("delete document.getElementById('try').dataset.answer")
    page.driver.find_element("css selector", "#try input[type=file]").send_keys(str(picture))
    shown = json.loads(page.wait("return document.getElementById('try').dataset.answer"))
    model = epicortex.load(run)
    np.testing.assert_allclose(shown, model.answer(model.read(picture))[0], rtol=1e-3, atol=1e-5)
    texts = page.run("return [...document.querySelectorAll('#try .answers b')].map((one) => one.textContent)")
    assert len(texts) == len(model.classes)
    assert all(("%" in text) == (model.facts.task == "multilabel") for text in texts)
