"""The page's own network: what is chosen or drawn there gets the answer that `predict` gives."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import epicortex
from epicortex import report
from epicortex.champion.browser import MOST_PARAMETERS, payload
from epicortex.champion.file import Champion
from epicortex.champion.module import Classifier
from epicortex.data import Scaling, load
from epicortex.data.readers.pictures import read_image
from epicortex.errors import ConfigError
from epicortex.families.activations import NAMES, Activations
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from tests.champions import make_champion, make_residual, raw_values
from tests.report.browser import Page, chromium
from tests.report.world import pretended_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = pretended_run(tmp_path_factory.mktemp("runs") / "run", evolution__generations=3)
    report.write(folder)
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(run / "report.html")
        opened.wait("return document.getElementById('try').dataset.ready !== undefined")
        yield opened


def odds(page: Page, champion: Champion, x: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the page's JavaScript makes of samples, for any champion."""
    page.run("window.model = new Champion.Model(arguments[0])", payload(champion))
    return np.array([page.run("return model.answer(arguments[0])", one.reshape(-1).tolist()) for one in x])


def shown(page: Page) -> list[float]:
    text = page.wait("return document.getElementById('try').dataset.answer")
    answer: list[float] = json.loads(text)
    return answer


def choose(page: Page, path: Path) -> list[float]:
    page.run("delete document.getElementById('try').dataset.answer")
    page.driver.find_element("css selector", "#try input[type=file]").send_keys(str(path))
    return shown(page)


@pytest.mark.parametrize("make", [make_champion, make_residual])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 7), (2, 16), (4,)])
def test_javascript_answers_as_the_champion(page: Page, make: Any, shape: tuple[int, ...]) -> None:
    champion = make(shape)
    x = raw_values(champion, 8)
    np.testing.assert_allclose(odds(page, champion, x), Classifier(champion).predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_javascript_says_numbers_and_labels_as_the_champion_does(page: Page, task: str) -> None:
    champion = make_residual((1, 8, 8))
    targets = Scaling(1.0, (50.0, 0.0, -1.0), (10.0, 2.0, 0.1)) if task == "regression" else None
    facts = replace(champion.facts, task=task, targets=targets)  # type: ignore[arg-type]
    champion = replace(champion, facts=facts)
    x = raw_values(champion, 8)
    np.testing.assert_allclose(odds(page, champion, x), Classifier(champion).answer(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_activation_is_that_of_the_champion(page: Page, name: str) -> None:
    family = LayeredFamily(Problem((1, 8, 8), 3), activations=Activations(name, name))
    champion = replace(make_champion(), family=family)
    x = raw_values(champion, 4)
    np.testing.assert_allclose(odds(page, champion, x), Classifier(champion).predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(8, 8), (5, 13), (31, 8), (64, 50), (3, 3)])
def test_pictures_are_resized_to_the_very_bytes_of_training(
    page: Page, tmp_path: Path, channels: int, size: tuple[int, int]
) -> None:
    pixels = np.random.default_rng(size[0]).integers(0, 256, (*size, 4), np.uint8)
    pixels[..., 3] = np.where(pixels[..., 3] < 60, 0, 255)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    planes = page.run(
        "return Champion.prepared(...arguments).map((plane) => Array.from(plane))",
        *(pixels.reshape(-1).tolist(), *size, [channels, 8, 8]),
    )
    expected = read_image(tmp_path / "a.png", (channels, 8, 8))
    assert np.array_equal(np.array(planes, np.uint8).reshape(channels, 8, 8), expected)


def test_a_chosen_file_gets_the_answer_of_predict(page: Page, run: Path, tmp_path: Path) -> None:
    model = epicortex.load(run)
    for place, image in enumerate(load("digits").x_test[:3, 0]):
        path = tmp_path / f"{place}.png"
        Image.fromarray((image.astype(float) * 255 / 16).astype(np.uint8)).resize((40, 30)).save(path)
        expected = model.predict_proba(model.read(path))[0]
        np.testing.assert_allclose(choose(page, path), expected, atol=1e-5)
        likeliest = page.run("return document.querySelector('.answers li span').textContent")
        assert likeliest == model.predict(model.read(path))[0]
    assert page.complaints() == []


def test_a_photograph_is_turned_as_its_camera_says(page: Page, run: Path, tmp_path: Path) -> None:
    pixels = np.zeros((64, 48), np.uint8)
    pixels[:24] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    model = epicortex.load(run)
    expected = model.predict_proba(model.read(tmp_path / "turned.jpg"))[0]
    Image.fromarray(pixels).save(tmp_path / "upright.jpg", quality=95)
    other = model.predict_proba(model.read(tmp_path / "upright.jpg"))[0]
    answer = choose(page, tmp_path / "turned.jpg")
    # decoders of JPEG may differ in the last bit of a pixel
    assert np.abs(answer - expected).max() < 0.1 * np.abs(other - expected).max()


def test_what_is_drawn_gets_the_answer_of_predict(page: Page, run: Path, tmp_path: Path) -> None:
    page.run("document.querySelector('#try .clear').click()")
    box = page.run(
        """
        const pad = document.querySelector("#try .pad");
        pad.scrollIntoView({block: "center", behavior: "instant"});
        const box = pad.getBoundingClientRect();
        return [box.left, box.top, box.width, box.height];
        """
    )
    for step, (right, down) in enumerate([(0.3, 0.2), (0.5, 0.25), (0.6, 0.5), (0.4, 0.8)]):
        at = {"x": box[0] + right * box[2], "y": box[1] + down * box[3], "button": "left", "buttons": 1}
        page.tell(
            "Input.dispatchMouseEvent", type="mouseMoved" if step else "mousePressed", clickCount=1, **at
        )
    page.tell("Input.dispatchMouseEvent", type="mouseReleased", clickCount=1, **{**at, "buttons": 0})
    answer = shown(page)
    url = page.run("return document.querySelector('#try .pad').toDataURL()")
    picture = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    picture.save(tmp_path / "drawn.png")
    assert 0.01 < np.asarray(picture.convert("L")).mean() / 255 < 0.5
    model = epicortex.load(run)
    np.testing.assert_allclose(answer, model.predict_proba(model.read(tmp_path / "drawn.png"))[0], atol=1e-5)
    page.run("document.querySelector('#try .clear').click()")
    assert page.run("return document.querySelectorAll('.answers li').length") == 0


def test_what_is_no_picture_is_said_so(page: Page, tmp_path: Path) -> None:
    (tmp_path / "no.png").write_text("no picture")
    page.driver.find_element("css selector", "#try input[type=file]").send_keys(str(tmp_path / "no.png"))
    assert page.wait("return !document.querySelector('#try .trouble').hidden")


def test_a_champion_that_is_too_large_for_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert payload(make_champion())["classes"] == ["cat", "dog", "Zürich"]
    monkeypatch.setattr("epicortex.champion.browser.MOST_PARAMETERS", 10)
    with pytest.raises(ConfigError, match="at most 10 parameters"):
        payload(make_champion())
    assert MOST_PARAMETERS == 1_000_000
