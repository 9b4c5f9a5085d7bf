"""The answer comes first: the model beside a baseline, the files in which it errs, the labels to check."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from epicortex import report
from epicortex.champion import front
from epicortex.champion.file import Champion
from epicortex.champion.module import Classifier
from epicortex.config import Config
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import Tally
from epicortex.evaluation.figures import counted, wilson
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import Genome
from epicortex.pages.units import Unit
from epicortex.report import figures, mistakes, scatter, tables, usage
from epicortex.report.answer import answer
from epicortex.report.material import Material, read
from epicortex.report.mistakes import examine, suspected
from epicortex.report.summary import RunSummary
from epicortex.run.record import RunRecord, load_champion
from epicortex.storage import RunInfo, plans
from tests.champions import make_champion, raw_values
from tests.report.world import pretended_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of digits, wider than they are high, in folders."""
    root = tmp_path_factory.mktemp("pictures")
    digits = load_digits()
    for place, (image, label) in enumerate(zip(digits.images[:400], digits.target, strict=False)):
        (root / f"digit {label}").mkdir(exist_ok=True)
        pixels = Image.fromarray((image * 255 / 16).astype(np.uint8))
        pixels.resize((24, 12)).save(root / f"digit {label}" / f"scan-{place:04}.png")
    return root


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    with pytest.warns(RuntimeWarning):
        return pretended_run(
            tmp_path_factory.mktemp("runs") / "run",
            data=str(folder),
            evolution__generations=2,
            data__image_size=[12, 12],
        )


@pytest.fixture(scope="module")
def material(run: Path) -> Material:
    return read(run)


def material_of(y: list[int], guesses: list[int], taught: list[int]) -> Material:
    """A report about a champion that gives these answers, beside a training set with these classes."""
    classes = ("cat", "dog", "owl")
    tested = _tested(np.array(y), np.array(guesses), classes, taught)
    tally = Tally(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)
    lines = [Generation.timed(tally, train_seconds=1.5, seconds=1.75)]
    record = RunRecord(Path("run"), Config(), RunInfo.now(data="drawn", data_digest="0"), lines)
    champion = make_champion(classes=classes)
    return Material(record, Unit.of("accuracy"), champion, (), RunSummary(), tested)


def _tested(
    y: np.ndarray, guesses: np.ndarray, classes: tuple[str, ...], taught: list[int]
) -> mistakes.Tested:
    number = len(classes)
    confusion = np.bincount(y * number + guesses, minlength=number**2).reshape(number, number)
    return mistakes.Tested(counted(guesses, y, number), list(classes), confusion, [], [], taught, (), None)


def said(material: Material) -> dict[str, Any]:
    assert material.champion is not None
    return answer(material, material.champion)


def test_the_accuracy_stands_with_its_interval_and_the_baseline(material: Material) -> None:
    tested = material.tested
    assert isinstance(tested, mistakes.Tested)
    right = round(tested.accuracy * tested.samples)
    low, high = wilson(right, tested.samples)
    found = said(material)
    assert found["answer"] == f"{100 * tested.accuracy:.2f}\xa0%"
    assert (found["gauge"].low, found["gauge"].high) == (round(100 * low, 2), round(100 * high, 2))
    counts = np.bincount(load_counts(tested), minlength=10)
    assert found["gauge"].baseline == round(100 * counts.max() / counts.sum(), 2)
    assert f"gets {right} right" in found["sentences"][0]
    assert f"from {100 * low:.2f}\xa0% to {100 * high:.2f}\xa0%" in found["sentences"][0]


def load_counts(tested: mistakes.Tested) -> list[int]:
    return [label for label, number in enumerate(tested.confusion.sum(1)) for _ in range(number)]


def test_a_model_that_answers_one_class_is_called_no_better_than_that() -> None:
    found = said(material_of([0] * 50 + [1] * 4 + [2] * 4, [0] * 58, [500, 40, 40]))
    assert found["warnings"][0] == "This is no better than always answering cat."
    assert found["warnings"][1] == "Never recognised: dog, owl."
    assert "--training.class-weights balanced" in found["warnings"][2]


def test_a_good_model_gets_no_warning_and_even_classes_no_advice() -> None:
    right = [0, 1, 2] * 30
    assert said(material_of(right, right, [9, 9, 9]))["warnings"] == []
    found = said(material_of(right, [0, 1, 0] * 30, [9, 9, 9]))
    assert found["warnings"] == ["Never recognised: owl."]
    assert "takes owl for cat (30 times)" in found["sentences"][1]


def test_few_samples_prove_little() -> None:
    found = said(material_of([0, 0, 0, 1, 1], [0, 0, 0, 1, 0], [9, 9, 9]))
    assert found["warnings"][0] == "5 samples are too few to tell this from always answering cat."


def test_mistakes_have_the_names_of_their_files(material: Material, run: Path, folder: Path) -> None:
    tested = material.tested
    assert isinstance(tested, mistakes.Tested)
    assert len(tested.wrong) > 3
    model = Classifier(load_champion(run))
    for one in (*tested.wrong, *tested.suspects):
        assert one.file is not None
        path = folder / one.file
        assert path.parent.name == one.is_class
        odds = model.predict_proba(model.read(path))[0]
        assert odds[model.classes.index(one.taken_for)] == pytest.approx(one.confidence, abs=1e-6)
    html = report.write(run).read_text()
    assert all(str(one.file) in html for one in tested.wrong)


@pytest.mark.parametrize("kind", ["folder", "csv", "zip"])
def test_files_are_named_where_a_table_has_the_labels_and_in_archives(kind: str, tmp_path: Path) -> None:
    digits, root = load_digits(), tmp_path / "scans"
    (root / "sheets").mkdir(parents=True)
    rows = ["file,shows"]
    for place, (image, label) in enumerate(zip(digits.images[:150], digits.target, strict=False)):
        pixels = Image.fromarray((image * 255 / 16).astype(np.uint8))
        pixels.resize((24, 12)).save(root / "sheets" / f"scan-{place:04}.png")
        rows.append(f"scan-{place:04}.png,digit {label}")
    (root / "labels.csv").write_text("\n".join(rows))
    source = {"folder": root, "csv": root / "labels.csv", "zip": tmp_path / "scans.zip"}[kind]
    if kind == "zip":
        shutil.make_archive(str(root), "zip", tmp_path, "scans")
    changes: dict[str, Any] = {"evolution__generations": 1, "data__image_size": [8, 8]}
    with pytest.warns(RuntimeWarning):
        run = pretended_run(tmp_path / "run", data=str(source), **changes)
    tested = read(run).tested
    assert isinstance(tested, mistakes.Tested)
    assert tested.wrong
    model = Classifier(load_champion(run))
    for one in tested.wrong:
        assert one.file is not None
        assert f"{Path(one.file).name},{one.is_class}" in rows
        odds = model.predict_proba(model.read(root / one.file))[0]
        assert odds[model.classes.index(one.taken_for)] == pytest.approx(one.confidence, abs=1e-6)
        assert one.picture is not None
        assert (one.picture.width, one.picture.height) == (24, 12)


def test_pictures_are_shown_in_their_own_proportions(material: Material) -> None:
    assert isinstance(material.tested, mistakes.Tested)
    sizes = {(one.picture.width, one.picture.height) for one in material.tested.wrong if one.picture}
    assert sizes == {(24, 12)}


def test_every_class_is_listed_with_its_samples_and_recall(material: Material) -> None:
    table, tested = tables.classes(material), material.tested
    assert table is not None
    assert isinstance(tested, mistakes.Tested)
    by_name = {row[0]: row for row in table.rows}
    for label, name in enumerate(tested.classes):
        row, own = by_name[name], tested.confusion[label]
        assert row[2] == str(own.sum())
        assert row[3] == f"{100 * own[label] / own.sum():.2f}\xa0%"
        assert int(row[1]) + own.sum() == len(
            list((Path(material.run.config.data.source or "") / name).iterdir())
        )
    recalls = [float(row[3].split("\xa0")[0]) for row in table.rows]
    assert recalls == sorted(recalls)


def test_only_swapped_labels_are_suspected_and_the_right_ones_are_named() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 10, 600)
    odds = rng.dirichlet(np.ones(10), len(y)) * 0.3
    odds[np.arange(len(y)), y] += 0.7
    swapped = rng.choice(len(y), 40, replace=False)
    noted = y.copy()
    noted[swapped] = (y[swapped] + 1 + rng.integers(0, 8, 40)) % 10
    found = suspected(odds, noted)
    assert len(found) > 10
    assert {place for place, _ in found} <= set(swapped.tolist())
    assert all(instead == y[place] for place, instead in found)
    assert suspected(odds, y) == []


def test_tables_have_no_files_and_no_card_to_try() -> None:
    champion = make_champion((4,))
    x = raw_values(champion, 40)
    y = (np.arange(40) % 3).astype(np.int64)
    data = DataSet("t", x, y, x, y, champion.classes, Scaling(1.0, (0.0,) * 4, (1.0,) * 4))
    tested = examine(champion, data, "nowhere.csv")
    assert {one.file for one in tested.wrong} == {None}
    assert tested.wrong[0].name == f"sample {tested.wrong[0].place}"
    assert usage.payload(champion) is None


def test_smaller_models_are_drawn_and_can_be_exported(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    champion = load_champion(copy)
    small = _smaller(champion)
    front.write(copy, [small])
    material = read(copy)
    assert [one.outline.parameters for one in material.models] == [
        small.outline.parameters,
        champion.outline.parameters,
    ]
    figure = scatter.models(material.models, material.unit, "parameters")
    assert figure is not None
    assert figure["data"][0]["x"] == [small.outline.parameters, champion.outline.parameters]
    html = report.write(copy).read_text()
    assert 'id="plot-models_cost"' in html
    assert f"--max-parameters {small.outline.parameters}" in html


def _smaller(champion: Champion) -> Champion:
    """A network of the same problem without hidden layers."""
    genome = Genome(champion.outline.input_shape, (), champion.outline.outputs)
    phenotype = draw_phenotype(genome, rng=np.random.default_rng(1))
    facts = replace(champion.facts, fitness=champion.facts.fitness / 2, weights_sha256="")
    return Champion(phenotype, champion.family, champion.scaling, facts)


def test_the_phases_of_a_planned_run_are_told_and_drawn(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    plan = Plan(1, "search", steps=100, start=0, rates=(0.1, 1.0), until=1.0)
    polish = replace(plan, generation=2, phase="polish", steps=250, rates=(0.5, 0.0), last=True)
    plans.write(copy, {1: plan, 2: polish})
    material = read(copy)
    table = tables.phases(material)
    assert table is not None
    assert [(row[0], row[1], row[3], row[4]) for row in table.rows] == [
        ("search", "1 to 1", "100", "0.10 to 1.00"),
        ("polish", "2 to 2", "250", "0.50 to 0.00"),
    ]
    figure = figures.fitness(material.history, material.summary, material.unit, material.plans)
    (area,) = figure["layout"]["shapes"]
    assert (area["x0"], area["x1"]) == (1.5, 2.5)
    assert tables.phases(read(run)) is None


def test_the_commands_name_the_run(material: Material, run: Path) -> None:
    html = report.write(run).read_text()
    section = re.search(r'<section id="use".*?</section>', html, re.DOTALL)
    assert section
    for words in (f"epicortex predict {run}", f"epicortex export {run} --to model.c", "of flash"):
        assert words in section[0]
