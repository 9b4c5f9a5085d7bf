"""What a report says in words follows from the run's files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from epicortex.cli import show
from epicortex.config import changed
from epicortex.families.family import Outline, Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.paper.execution import is_finished
from epicortex.report import anatomy, narrative, tree
from epicortex.report.legend import kernel_words, structure_lines
from epicortex.report.material import Material, read
from epicortex.run.lifecycle import resume
from tests.report.world import pretended_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretended_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def material(folder: Path) -> Material:
    return read(folder)


def test_it_tells_what_was_reached_and_by_whom(material: Material, folder: Path) -> None:
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    champion = json.loads((folder / "champion" / "genome.json").read_text())
    text = " ".join(narrative.paragraphs(material))
    best = max(line["highest_fitness"] for line in history)
    assert f"network {champion['network']}, reached {100 * best:.2f}\xa0% on the validation set" in text
    assert f"in generation {champion['generation']}" in text
    assert f"it is right about {100 * champion['test_accuracy']:.2f}\xa0% of the samples" in text
    assert f"{sum(line['offspring'] for line in history)} networks were born" in text
    assert f"{sum(line['mutations'] for line in history)} mutations were applied" in text
    assert "No network failed." in text


def test_it_warns_where_networks_were_selected_by_the_test_set(tmp_path: Path) -> None:
    run = pretended_run(tmp_path / "run", evolution__generations=2, training__fitness_on="test")
    assert "selected by the test set itself" in " ".join(narrative.paragraphs(read(run)))


def test_offspring_are_compared_with_all(material: Material) -> None:
    lines = [line for line in material.history[-10:] if line.offspring_fitness is not None]
    newborn = sum(line.offspring_fitness or 0.0 for line in lines) / len(lines)
    everyone = sum(line.average_fitness or 0.0 for line in lines) / len(lines)
    text = " ".join(narrative.paragraphs(material))
    assert f"scored {100 * newborn:.2f}\xa0% on average, {100 * abs(everyone - newborn):.2f} points" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "complete"),
        ({"generations": 100}, "12 of 100 generations so far"),
        ({"target": 0.2}, "stopped at its target of 20.00\xa0%"),
        ({"generations": 100, "minutes": 1e-6}, "stopped after its 1e-06 minutes"),
    ],
)
def test_it_says_whether_the_run_is_over(material: Material, changes: dict[str, float], words: str) -> None:
    config = changed(material.run.config, evolution=changes)
    other = replace(material, run=replace(material.run, config=config))
    assert words in narrative.status(other)


def test_a_run_that_ended_on_a_plateau_is_over_though_ties_made_new_champions(tmp_path: Path) -> None:
    run = pretended_run(tmp_path / "run", ceiling=0.3, evolution__generations=100, evolution__plateau=3)
    material = read(run)
    assert material.champion is not None
    assert material.champion.facts.generation == len(material.history), "the last tie is the champion"
    assert narrative.status(material) == "stopped after 3 generations without a better network"
    assert show.status(show.read(run)) == "the highest fitness has not risen for 3 generations"
    assert is_finished(material.run)
    assert resume(run).stop_reason == show.status(show.read(run))


def test_a_run_on_no_plateau_yet_goes_on(tmp_path: Path) -> None:
    run = pretended_run(tmp_path / "run", ceiling=0.3, evolution__generations=3, evolution__plateau=3)
    material = read(run)
    longer = changed(material.run.config, evolution={"generations": 100})
    record = replace(material.run, config=longer)
    assert narrative.status(replace(material, run=record)) == "3 of 100 generations so far"
    assert "goes on" in show.status(replace(show.read(run), run=record))
    assert not is_finished(record)


def test_the_tree_ties_every_network_to_its_parents(material: Material) -> None:
    drawn = tree.draw(material.lineage, material.summary, material.unit)
    rows = {row.network: row for row in drawn.rows}
    assert len(rows) == len(material.lineage) > 3
    assert [row.champion for row in drawn.rows] == [True] + [False] * (len(rows) - 1)
    for one in material.lineage:
        row = rows[one.id]
        assert row.ties == [rows[parent].y for parent in one.parents]
        assert all(rows[parent].x0 <= row.x0 <= rows[parent].x1 for parent in one.parents)
        assert len(row.marks) == len(one.mutations)
        assert all(row.x0 <= mark.x <= row.x1 for mark in row.marks)


def test_kernels_are_pictures_of_their_own_shape(material: Material) -> None:
    assert material.champion is not None
    champion = material.champion
    convolutions = [part for part in champion.outline.parts if part.kind == "conv"]
    layers = anatomy.kernel_layers(champion)
    assert len(layers) == len(convolutions)
    below = champion.outline.input_shape
    for drawn, layer in zip(layers[:1], convolutions, strict=False):
        for picture, (rows, columns) in zip(drawn.kernels, layer.kernels, strict=True):
            assert picture.shape == f"{rows}×{columns}"
            if below[0] == 1:
                assert (picture.picture.height, picture.picture.width) == (rows, columns)


def outline(genome: Genome) -> Outline:
    return LayeredFamily(Problem(genome.input_shape, genome.classes)).outline(genome.to_dict())


def test_a_genome_in_short() -> None:
    kernels = tuple((1 + 2 * (n % 5), 1 + 2 * (n % 7)) for n in range(60))
    many = outline(Genome((1, 28, 28), (ConvLayer(kernels, (1, 1)),), 10)).parts[0]
    assert kernel_words(many).endswith(" others")
    assert len(kernel_words(many)) < 90
    deep = outline(Genome((1, 8, 8), (FullLayer(3),) * 40, 10))
    assert len(structure_lines(deep)) == 14
    assert structure_lines(deep)[-1] == "out 10"


def test_the_same_run_gives_the_same_page(folder: Path, tmp_path: Path) -> None:
    from epicortex import report

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    pages = [report.write(one).read_text().replace(str(one), "RUN") for one in (folder, copy)]
    assert pages[0] == pages[1]
