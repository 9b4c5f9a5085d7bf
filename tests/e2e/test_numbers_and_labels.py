"""From files to numbers and sets of labels: every command, every export, both arithmetics and families."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_diabetes, load_digits, load_linnerud

import epicortex
from epicortex.cli import main
from epicortex.data import load
from epicortex.errors import ConfigError

SMALL = (
    *("--preset", "layered", "--generations", "2", "--evolution.initial-networks", "5", "--engine", "serial"),
    *("--evolution.max-networks", "5", "--evolution.initial-species", "2", "--evolution.max-species", "4"),
)
TINY: dict[str, Any] = {
    "evolution.generations": 1,
    "evolution.initial_networks": 3,
    "evolution.initial_species": 2,
    "evolution.max_networks": 4,
    "training.engine": "serial",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "data"))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr().out


def write_patients(path: Path) -> list[float]:
    """Diabetes with holes, a column of texts, an id and dates; what is to be predicted."""
    rng, real = np.random.default_rng(1), load_diabetes(scaled=False)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient_id", *real.feature_names, "visited", "progress"])
        for number, (row, target) in enumerate(zip(real.data, real.target, strict=True)):
            cells = ["" if rng.random() < 0.05 else f"{value:g}" for value in row]
            cells[1] = {"1": "female", "2": "male"}.get(cells[1], cells[1])
            writer.writerow([1000 + number, *cells, f"2024-03-{number % 28 + 1:02d}", f"{target:g}"])
    return [float(one) for one in real.target]


def test_a_table_with_holes_from_file_to_number(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = write_patients(place / "patients.csv")
    column = ("--data.label-column", "progress")
    assert main(["evolve", "patients.csv", *column, "--out", "run", *SMALL]) == 0
    told = capsys.readouterr()
    assert "the column 'visited' holds dates" in told.err
    assert "the column 'patient_id' has another number in every row" in told.err
    assert "is taken for a quantity" in told.err
    assert "always answering the mean" in told.out

    story = json.loads(said(capsys, "predict", "run", "patients.csv", "--json"))
    found = np.array([one["values"]["progress"] for one in story["predictions"]])
    judged = json.loads(said(capsys, "evaluate", "run", "patients.csv", *column, "--json"))
    rest, whole = ((np.array(targets) - found) ** 2).sum(), len(targets) * np.var(targets)
    assert judged["r2"] == pytest.approx(1 - rest / whole, rel=1e-6)
    assert judged["targets"][0]["mean_absolute_error"] == pytest.approx(
        np.abs(targets - found).mean(), rel=1e-6
    )
    assert "R² " in said(capsys, "show", "run")
    text = Path(said(capsys, "report", "run").strip()).read_text()
    assert "How far off it is" in text
    assert "against_0" in text

    said(capsys, "resume", "run", "--generations", "3")
    after = json.loads(said(capsys, "show", "run", "--json"))
    assert (after["champion"]["task"], after["champion"]["fitness_name"]) == ("regression", "r2")
    assert after["champion"]["regression"]["samples"] == 88


def test_onnx_and_c_of_a_table_say_the_same_numbers(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    write_patients(place / "patients.csv")
    main(["evolve", "patients.csv", "--data.label-column", "progress", "--out", "run", "--quiet", *SMALL])
    champion = epicortex.load_champion("run")
    data = load("patients.csv", options=epicortex.DataOptions(label_column="progress"))
    expected = np.asarray(epicortex.load("run").predict(data.x_test))
    out = said(capsys, "export", "run", "--to", "model.c")
    build = next(line.removeprefix("try it").split() for line in out.splitlines() if "try it" in line)
    subprocess.run(build, check=True)
    numbers = " ".join(map(str, data.x_test.reshape(-1)))
    lines = subprocess.run(["./model"], input=numbers, capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose([float(one) for one in lines.split()], expected, rtol=1e-4)
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    assert "values [batch, 1]" in said(capsys, "export", "run", "--to", "model.onnx")
    session = runtime.InferenceSession("model.onnx")
    assert session.get_outputs()[0].name == "values"
    np.testing.assert_allclose(session.run(None, {"x": data.x_test})[0][:, 0], expected, rtol=1e-4)
    plain = said(capsys, "predict", "run", "patients.csv", "--csv")
    assert [line.split(",")[0] for line in plain.splitlines()] == [
        line.split(",")[0]
        for line in said(capsys, "predict", "model.onnx", "patients.csv", "--csv").splitlines()
    ]
    about = {
        name: json.loads(v) for name, v in session.get_modelmeta().custom_metadata_map.items() if v[0] in "[{"
    }
    assert about["table"] == json.loads(json.dumps(champion.facts.table.to_json()))  # type: ignore[union-attr]
    eight = said(capsys, "export", "run", "--to", "small.onnx", "--int8")
    assert "R²  " in eight


def write_digits(folder: Path, count: int = 260) -> None:
    """Pictures of digits, with sets of labels and with a number."""
    digits = load_digits()
    folder.mkdir()
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "labels", "ink"])
        for number in range(count):
            image, digit = digits.images[number], int(digits.target[number])
            Image.fromarray((image * 15.9).astype(np.uint8)).save(folder / f"{number:03}.png")
            kinds = (("even", digit % 2 == 0), ("big", digit > 4), ("prime", digit in (2, 3, 5, 7)))
            writer.writerow(
                [f"{number:03}.png", ";".join(n for n, yes in kinds if yes), f"{image[:4].mean():.4f}"]
            )


def test_pictures_get_sets_of_labels(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_digits(place / "pictures")
    assert main(["evolve", "pictures", "--out", "run", *SMALL, "--data.label-column", "labels"]) == 0
    assert "is taken for sets of 3 labels (big, even, prime)" in capsys.readouterr().err
    story = json.loads(said(capsys, "predict", "run", "pictures", "--json"))
    judged = json.loads(
        said(capsys, "evaluate", "run", "pictures", "--data.label-column", "labels", "--json")
    )
    with (place / "pictures/labels.csv").open() as file:
        right = {row["file"]: set(filter(None, row["labels"].split(";"))) for row in csv.DictReader(file)}
    exact = np.mean([set(one["labels"]) == right[Path(one["file"]).name] for one in story["predictions"]])
    assert judged["exact"] == pytest.approx(exact)
    assert judged["f1"] > judged["baseline"]["f1"] - 0.2
    for one in story["predictions"]:
        assert set(one["labels"]) == {name for name, chance in one["probabilities"].items() if chance >= 0.5}
    assert "macro F1" in said(capsys, "show", "run")
    text = Path(said(capsys, "report", "run").strip()).read_text()
    assert "Every label, those that are found least first" in text


def test_pictures_get_a_number_and_begin_from_another_champion(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_digits(place / "pictures")
    main(["evolve", "pictures", "--out", "sets", "--quiet", *SMALL, "--data.label-column", "labels"])
    options = ("--data.label-column", "ink", "--training.fitness", "mean_absolute_error", "--from", "sets")
    assert main(["evolve", "pictures", "--out", "run", *SMALL, *options]) == 0
    told = capsys.readouterr()
    assert "a champion for 3 labels" in told.err
    assert "the outputs of 0 targets; 1 outputs are new" in told.err
    assert "mean absolute error" in told.out
    facts = epicortex.load_champion("run").facts
    assert facts.fitness < 0  # minus the error
    assert facts.regression is not None
    assert facts.regression.fitness == pytest.approx(-facts.regression.errors[0], rel=1e-5)
    assert "-" not in said(capsys, "show", "run").split("fitness")[1].split("test")[0]


@pytest.mark.parametrize("backend", ["native", "torch"])
def test_the_planned_search_works_with_numbers_and_goes_on_after_a_stop(place: Path, backend: str) -> None:
    exercise = load_linnerud()
    data = (exercise.data.astype(np.float32), exercise.target)
    changes = {
        "evolution.minutes": None,
        "evolution.generations": 2,
        "residual.start_parameters": 300,
        "training.engine": "serial",
        "training.backend": backend,
    }
    config, stop = epicortex.configure("default", changes=changes), threading.Event()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = epicortex.evolve(data, config, out="whole")
        if backend == "native":
            half = epicortex.evolve(data, config, out="half", stop=stop, on_generation=lambda _: stop.set())
            assert half.interrupted
            epicortex.resume("half", data=data)
            same = [Path(run, "champion/model.safetensors").read_bytes() for run in ("whole", "half")]
            assert same[0] == same[1]
    assert whole.champion is not None
    assert (whole.champion.facts.task, whole.champion.facts.fitness_name) == ("regression", "r2")
    assert whole.module.predict(data[0]).shape == (20, 3)
    assert whole.state.champion is not None
    assert whole.state.champion.losses is not None


@pytest.mark.parametrize(
    ("changes", "shape"),
    [
        ({"evaluator": "es", "es.steps": 3, "es.pairs": 2}, (1, 16)),
        ({"training.fitness": "mean_absolute_error"}, (1, 16)),
        ({"training.fitness": "f1_micro"}, (2, 12)),
        ({"evaluator": "es", "es.steps": 2, "es.pairs": 2}, (6,)),
    ],
)
def test_signals_and_evolution_strategies(changes: dict[str, Any], shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, *shape)).astype(np.float32)
    flat = x.reshape(80, -1)
    y: Any = flat[:, :3].sum(1) if "f1" not in str(changes) else (flat[:, :2] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = epicortex.evolve((x, y), epicortex.configure("layered", changes={**TINY, **changes}))
    assert result.test is not None
    answers = result.module.predict(x[:5])
    assert len(answers) == 5
    if "f1" in str(changes):
        assert all(isinstance(one, tuple) for one in answers)


def test_what_makes_no_sense_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_patients(place / "patients.csv")
    words = ("evolve", "patients.csv", "--data.label-column", "progress", "--out", "run", *SMALL)
    for option, says in (
        (("--training.fitness", "balanced_accuracy"), "it must be r2, mean_absolute_error"),
        (("--training.class-weights", "balanced"), "no classes to weigh"),
        (("--data.task", "classes"), "--data.task regression"),
        (("--data.task", "numbers"), "must be"),
    ):
        assert main([*words, *option]) == 2
        err = capsys.readouterr().err.strip().splitlines()[-1]
        assert says in err, err
    x = np.random.default_rng(1).normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = epicortex.evolve((x, x[:, 0]), epicortex.configure("layered", changes=TINY))
    with pytest.raises(ConfigError, match="have no probabilities"):
        result.module.predict_proba(x)
