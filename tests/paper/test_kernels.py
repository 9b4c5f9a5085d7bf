"""Kernels are counted layer by layer and set against drift; the runs are real, the statistics made up."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from epicortex.cli import main
from epicortex.families.family import Shape
from epicortex.paper import kernel_article, kernels
from epicortex.paper.kernels import Kernels
from epicortex.paper.plan import Experiment, PlannedRun
from epicortex.run.record import read_run
from tests.paper.world import SMALL

PLAIN, DRIFT = Experiment("digits", False), Experiment("digits", False, "drift")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs and their controls with drift only."""
    out = tmp_path_factory.mktemp("kernels") / "out"
    words = ["digits", "--runs", "2", "--speciation", "off", "--controls", "drift", "--kernels", "--quiet"]
    assert main(["reproduce", *words, *SMALL, "--out", str(out)]) == 0
    return out


def made_up(experiment: Experiment, seed: int, **shapes: int) -> Kernels:
    """A run with kernels such as k13=4: four that are 1 high and 3 wide."""
    counts: dict[Shape, int] = {(int(name[1]), int(name[2])): number for name, number in shapes.items()}
    return Kernels(PlannedRun(experiment, seed), {1: counts})


def test_kernels_are_those_of_the_last_generation_layer_by_layer(out: Path) -> None:
    found = kernels.counted(out)
    assert {one.run.experiment for one in found} == {PLAIN, DRIFT}
    for one in found:
        genomes = {}
        expected: dict[int, Counter[Shape]] = {}
        text = (out / one.run.folder / "networks.jsonl").read_text()
        last = max(json.loads(line)["generation"] for line in text.splitlines())
        for line in map(json.loads, text.splitlines()):
            if isinstance(line["genome"], dict):
                genomes[line["id"]] = line["genome"]
            if line["generation"] == last:
                for place, layer in enumerate(genomes[line["id"]]["layers"], 1):
                    for kernel in layer.get("kernels", []):
                        expected.setdefault(place, Counter())[tuple(kernel)] += 1
        assert one.layers == expected


def test_under_drift_nothing_that_selects_is_left(out: Path) -> None:
    record = read_run(out / PlannedRun(DRIFT, 1).folder)
    own = record.config
    assert (own.selection.parents, own.selection.parent_shares) == ("even", "even")
    assert (own.selection.champions, own.evolution.culling) == ("mutated", "age")
    assert any(line.parents for line in record.networks())


def test_the_article_has_a_table_and_a_sound_picture_for_each_experiment(out: Path) -> None:
    text = (out / "kernels.md").read_text()
    assert "## digits, no speciation" in text
    assert "| layer | runs | mean area | under drift |" in text
    assert "| mean area |" in text
    picture = out / "figures" / "kernels-digits-speciation-off.svg"
    assert picture.name in text
    ET.fromstring(picture.read_text())
    before = text, picture.read_bytes()
    kernel_article.write(out)
    assert ((out / "kernels.md").read_text(), picture.read_bytes()) == before


def test_a_shape_that_selection_favours_stands_out_and_one_that_it_does_not_care_for_does_not() -> None:
    evolved = [made_up(PLAIN, seed, k11=50 + seed, k13=30, k31=10 + seed % 3) for seed in range(1, 9)]
    neutral = [made_up(DRIFT, seed, k11=70 + seed, k13=10, k31=10 + seed % 3) for seed in range(1, 9)]
    found = {one.name: one for one in kernels.against_drift(evolved, neutral)}
    favoured = found["1×3"]
    assert favoured.adjusted < 0.05
    assert favoured.ratio == pytest.approx(favoured.found.first.mean / favoured.found.second.mean)
    assert favoured.found.first.mean > 2 * favoured.found.second.mean
    assert found["wide"].adjusted < 0.05
    assert found["3×1"].adjusted >= 0.05
    told = kernel_article.sentence([*evolved, *neutral], PLAIN)
    assert told == "more than by drift: 1×3, mean area, wide; less: 1×1, square."


def test_runs_weigh_the_same_however_many_kernels_they_have() -> None:
    runs = [made_up(PLAIN, 1, k11=1), made_up(PLAIN, 2, k33=1000)]
    assert kernels.mean_shares(runs) == {(1, 1): 0.5, (3, 3): 0.5}
    assert kernels.by_layer(runs)[1] == (5.0, {"square": 1.0, "wide": 0.0, "tall": 0.0}, 2)


def test_without_drift_it_says_that_nothing_can_be_told(tmp_path: Path) -> None:
    assert "nothing tells selection from chance" in kernel_article.sentence([made_up(PLAIN, 1, k11=1)], PLAIN)
    assert kernel_article.write(tmp_path).read_text().endswith("There is no run with kernels.")
