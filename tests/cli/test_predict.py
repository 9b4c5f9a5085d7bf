"""`epicortex predict`: files and folders in, classes out, whatever the pictures are like."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from epicortex.champion.exporting import export
from epicortex.champion.module import Classifier, load
from epicortex.cli import main
from epicortex.data import read_image
from tests.champions import make_champion, raw_values


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return export(make_champion((3, 9, 7)), tmp_path / "model.safetensors")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder with pictures of every kind and size, a broken one, and a file that is none."""
    folder = tmp_path / "pictures"
    (folder / "deep").mkdir(parents=True)
    rng = np.random.default_rng(1)
    colours = Image.fromarray(rng.integers(0, 256, (30, 20, 3), np.uint8))
    colours.save(folder / "b.png")
    colours.convert("L").save(folder / "a.jpg")
    colours.convert("RGBA").resize((7, 9)).save(folder / "deep" / "c.webp")
    (folder / "broken.png").write_bytes((folder / "b.png").read_bytes()[:100])
    (folder / "notes.txt").write_text("not a picture")
    (folder / ".hidden.png").write_bytes(b"")
    return folder


READABLE = ["a.jpg", "b.png", "deep/c.webp"]


def test_json_tells_every_probability_and_lists_what_does_not_open(
    model: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(pictures), "--json"]) == 2
    said = capsys.readouterr()
    story = json.loads(said.out)
    assert story["classes"] == ["cat", "dog", "Zürich"]
    assert [one["file"] for one in story["predictions"]] == [str(pictures / name) for name in READABLE]
    (broken,) = story["unreadable"]
    assert broken["file"] == str(pictures / "broken.png")
    assert said.err.startswith(f"epicortex: {pictures / 'broken.png'} does not open as a picture")
    assert said.err.count("\n") == 1
    module = load(model)
    for one in story["predictions"]:
        pixels = read_image(one["file"], (3, 9, 7))
        assert one["class"] == module.predict(pixels[None])[0]
        assert one["probabilities"][one["class"]] == one["probability"] == max(one["probabilities"].values())
        assert sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_csv_has_a_row_for_every_file(
    model: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "broken.png").unlink()
    assert main(["predict", str(model), str(pictures), str(pictures / "b.png"), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["file"] for row in rows] == [str(pictures / name) for name in [*READABLE, "b.png"]]
    module = load(model)
    for row in rows:
        values = module.read(row["file"])
        assert [row["class"]] == module.predict(values)
        assert float(row["probability"]) == pytest.approx(module.predict_proba(values).max(), abs=1e-5)


def test_the_table_is_for_people(model: Path, pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(model), str(pictures / "a.jpg")]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["file", "class", "sure", "next"]
    file, name, sure, unit, *_ = line.split()
    assert (file, unit) == (str(pictures / "a.jpg"), "%")
    assert [name] == load(model).predict(load(model).read(pictures / "a.jpg"))
    assert 100 / 3 < float(sure) <= 100


def test_more_pictures_than_a_batch_keep_their_order(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(150):
        colour = (number, 255 - number, 3 * number % 256)
        Image.new("RGB", (7, 9), colour).save(folder / f"{number:03}.png")
    (folder / "070.png").write_bytes(b"broken")
    assert main(["predict", str(model), str(folder), "--json"]) == 2
    story = json.loads(capsys.readouterr().out)
    module = load(model)
    assert len(story["predictions"]) == 149
    for one in story["predictions"]:
        assert [one["class"]] == module.predict(module.read(one["file"])), one["file"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "FILE is missing"),
        (["a.png", "--json", "--csv"], "cannot be had together"),
        (["nowhere.png"], "nowhere.png is not there"),
        (["."], ". holds no pictures"),
        (["new.zip"], "new.zip is an archive: unpack it and give the folder"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", str(model), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_champion_of_tables_says_that_it_takes_no_pictures(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = export(make_champion((4,)), tmp_path / "table.safetensors")
    assert main(["predict", str(table), str(pictures)]) == 2
    assert "takes 4 columns, not pictures" in capsys.readouterr().err


def test_white_is_white_whatever_the_data_called_it(tmp_path: Path) -> None:
    """scikit-learn's digits go up to 16: a picture's 255 becomes 16."""
    Image.new("L", (8, 8), 255).save(tmp_path / "white.png")
    assert (Classifier(make_champion(divisor=16.0)).read(tmp_path / "white.png") == 16).all()
    assert (Classifier(make_champion()).read(tmp_path / "white.png") == 255).all()


def test_names_cannot_steer_a_terminal(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = tmp_path / "\x1b[31m.png"
    Image.new("RGB", (7, 9)).save(evil)
    assert main(["predict", str(model), str(evil)]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_picture_that_claims_to_be_huge_is_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = tmp_path / "huge.bmp"
    Image.new("1", (1, 1)).save(huge)
    data = bytearray(huge.read_bytes())
    data[18:26] = (10_000).to_bytes(4, "little") * 2
    huge.write_bytes(data)
    assert main(["predict", str(model), str(huge)]) == 2
    err = capsys.readouterr().err
    assert "claims 10000 × 10000 pixels" in err
    assert err.count("\n") == 1


def test_hidden_folders_are_left_alone_as_evolve_leaves_them(
    model: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures / "broken.png").unlink()
    (pictures / ".thumbnails").mkdir()
    (pictures / ".thumbnails" / "x.png").write_bytes((pictures / "b.png").read_bytes())
    assert main(["predict", str(model), str(pictures), "--csv"]) == 0
    assert ".thumbnails" not in capsys.readouterr().out


def test_rows_of_a_table_are_found_by_the_names_of_their_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    champion = make_champion((4,), divisor=1.0)
    named = replace(champion, facts=replace(champion.facts, columns=("a", "b", "c", "d")))
    model = export(named, tmp_path / "m.safetensors")
    x = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = [(f"{r[3]!r}", "?", *(f"{v!r}" for v in r[:3])) for r in x.astype(float).tolist()]
        csv.writer(file).writerows([("d", "label", "a", "b", "c"), *rows])
    assert main(["predict", str(model), str(tmp_path / "t.csv"), "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert [one["class"] for one in story["predictions"]] == load(model).predict(x)
    assert [one["file"] for one in story["predictions"]] == [f"{tmp_path / 't.csv'}:{n}" for n in range(2, 7)]
    (tmp_path / "u.csv").write_text("a,b,c\n1,2,3\n")
    assert main(["predict", str(model), str(tmp_path / "u.csv")]) == 2
    assert "u.csv lacks the column d" in capsys.readouterr().err


def test_an_onnx_file_answers_like_the_model_it_was_made_of(
    model: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    (pictures / "broken.png").unlink()
    stories = []
    for source in (model, export(load(model), tmp_path / "m.onnx", pixels=True)):
        assert main(["predict", str(source), str(pictures), "--json"]) == 0
        stories.append(json.loads(capsys.readouterr().out)["predictions"])
    for one, other in zip(*stories, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    (tmp_path / "no.onnx").write_bytes(b"rubbish")
    assert main(["predict", str(tmp_path / "no.onnx"), str(pictures)]) == 2
    assert "is no ONNX file that epicortex export wrote" in capsys.readouterr().err


def test_a_champion_of_arrays_answers_with_their_labels_and_takes_their_shape(tmp_path: Path) -> None:
    champion = make_champion((1, 8, 8), ("0", "1", "7"))
    numbers = Classifier(replace(champion, facts=replace(champion.facts, label_kind="integer")))
    x = raw_values(champion, 6)
    assert numbers.predict(x[:, 0]) == numbers.predict(x)
    assert {type(one) for one in numbers.predict(x)} == {int}
    assert Classifier(champion).predict(x) == [str(one) for one in numbers.predict(x)]


def test_a_temperature_makes_probabilities_even_and_changes_no_answer() -> None:
    champion = make_champion((1, 8, 8))
    hot = Classifier(replace(champion, facts=replace(champion.facts, temperature=3.0)))
    x = raw_values(champion, 20)
    logits = hot(torch.from_numpy(x)).detach().double()
    np.testing.assert_allclose(hot.predict_proba(x), (logits / 3).softmax(1).numpy(), atol=1e-6)
    assert hot.predict(x) == Classifier(champion).predict(x)
