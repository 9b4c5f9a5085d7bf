"""`epicortex evaluate`: a champion on labelled data, beside what `predict` answers for the same files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from epicortex.champion.evaluating import Evaluation, evaluate
from epicortex.champion.exporting import export
from epicortex.champion.judging import Quantities, judged
from epicortex.champion.module import load
from epicortex.cli import main
from epicortex.cli.judged import quantities_rows
from epicortex.data import Scaling
from epicortex.errors import DataError
from tests.champions import make_champion
from tests.cli.conftest import Here
from tests.report.world import pretended_run

CLASSES = ("cat", "dog", "Zürich")
TARGETS = Scaling(1.0, (2.0, 1.0), (1.0, 3.0))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return export(make_champion((3, 9, 7)), tmp_path / "model.safetensors")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Labelled pictures of several sizes; one does not open."""
    rng = np.random.default_rng(5)
    for name, count in zip(CLASSES, (9, 5, 2), strict=True):
        (tmp_path / "held" / name).mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 256, (9 + number, 12, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "held" / name / f"{number}.png")
    return tmp_path / "held"


def test_the_figures_are_those_of_predict(here: Here, model: Path, pictures: Path) -> None:
    story = json.loads(here("evaluate", str(model), str(pictures), "--json", "--worst", "99"))
    answers = json.loads(here("predict", str(model), str(pictures), "--json"))["predictions"]
    truth = {one["file"]: Path(one["file"]).parent.name for one in answers}
    right = [one for one in answers if one["class"] == truth[one["file"]]]
    assert story["samples"] == len(answers) == 16
    assert story["accuracy"] == pytest.approx(len(right) / 16)
    assert story["interval"][0] < story["accuracy"] < story["interval"][1]
    assert story["baseline"] == {"class": "cat", "accuracy": 9 / 16}
    for row, name in enumerate(CLASSES):
        for column, other in enumerate(CLASSES):
            times = sum(one["class"] == other and truth[one["file"]] == name for one in answers)
            assert story["confusion"][row][column] == times
    wrong = sorted((one for one in answers if one not in right), key=lambda one: -one["probability"])
    assert [one["file"] for one in story["mistakes"]] == [one["file"] for one in wrong]
    assert story["mistakes"][0]["probability"] == pytest.approx(wrong[0]["probability"])


def test_people_see_figures_classes_matrix_and_mistakes(here: Here, model: Path, pictures: Path) -> None:
    text = here("evaluate", str(model), str(pictures), "--worst", "2")
    for part in ("95 % interval", "always answering cat", "calibration error", "recall", "mostly taken for"):
        assert part in text
    assert text.count(".png") == 2
    rows = list(csv.DictReader(io.StringIO(here("evaluate", str(model), str(pictures), "--csv"))))
    assert len(rows) == 16
    assert {row["class"] for row in rows} == set(CLASSES)


def test_samples_that_were_learnt_from_are_told(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(RuntimeWarning):
        run = pretended_run(tmp_path / "run", data=str(pictures), evolution__generations=1)
    told = "the champion has learnt from most of these samples, so its figures here flatter"
    assert main(["evaluate", str(run), str(pictures), "--json"]) == 0
    assert told in capsys.readouterr().err
    pictures.rename(tmp_path / "others")
    assert main(["evaluate", str(run), str(tmp_path / "others")]) == 0
    assert told not in capsys.readouterr().err
    digits = pretended_run(tmp_path / "digits", evolution__generations=1)
    assert main(["evaluate", str(digits), "digits"]) == 0
    assert told not in capsys.readouterr().err


def test_mistakes_of_numbers_stand_in_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged(
        replace(make_champion((4,)).facts, task="regression", classes=("cm", "kg"), targets=TARGETS),
        ["a", "b"],
        np.array([[1.0, -2.0], [3.0, 5.0]]),
        np.array([[1.5, -2.0], [9.0, 4.0]]),
        [],
    )
    assert isinstance(found, Quantities)
    _, tables = quantities_rows(found, 1)
    assert tables[-1] == (
        "the one that is furthest off",
        [("file", "cm", "answer", "kg", "answer"), ("b", "3", "9", "5", "4")],
    )


def test_what_cannot_be_evaluated_is_one_line(
    here: Here, model: Path, pictures: Path, tmp_path: Path
) -> None:
    (pictures / "cat" / "broken.png").write_bytes(b"?")
    assert "broken.png does not open" in here("evaluate", str(model), str(pictures), code=2)
    (pictures / "cat" / "broken.png").unlink()
    (pictures / "cat").rename(pictures / "lion")
    said = here("evaluate", str(model), str(pictures), code=2)
    assert "the class lion, which the champion does not know; it knows cat, dog" in said
    assert "--part is 'half'" in here("evaluate", str(model), str(pictures), "--part", "half", code=2)
    with pytest.raises(DataError, match=r"samples of \(1, 8, 8\)"):
        evaluate(model, "digits", data_dir=tmp_path / "data")


def test_rows_of_a_table_and_arrays(tmp_path: Path) -> None:
    champion = load(export(make_champion((4,), divisor=1.0), tmp_path / "m.safetensors"))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    y = np.array(CLASSES)[rng.integers(0, 3, 30)]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("a", "b", "label", "c", "d"), *((*r[:2], n, *r[2:]) for r, n in zip(x, y, strict=True))]
        )
    found = evaluate(champion, tmp_path / "t.csv")
    assert isinstance(found, Evaluation)
    assert found.tested.accuracy == np.mean(np.array(champion.predict(x)) == y)
    assert found.answers[0].name == f"{tmp_path / 't.csv'}:2"
    again = evaluate(champion, (x, y), data_dir=tmp_path / "data")
    assert isinstance(again, Evaluation)
    assert np.array_equal(again.confusion, found.confusion)


def test_the_calibration_error_is_told_with_and_without_the_temperature(
    here: Here, pictures: Path, tmp_path: Path
) -> None:
    plain = make_champion((3, 9, 7))
    warm = replace(plain, facts=replace(plain.facts, temperature=2.5))
    errors = []
    for number, champion in enumerate((plain, warm)):
        file = export(champion, tmp_path / f"{number}.safetensors")
        story = json.loads(here("evaluate", str(file), str(pictures), "--json"))["calibration"]
        errors.append((story["error"], story["error_without_temperature"]))
    assert errors[0][1] is None
    assert errors[1][1] == pytest.approx(errors[0][0])
    assert errors[1][0] != pytest.approx(errors[0][0])
    text = here("evaluate", str(tmp_path / "1.safetensors"), str(pictures))
    assert f"({100 * errors[0][0]:.2f} % without its temperature)" in text
