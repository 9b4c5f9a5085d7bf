"""Controls cost exactly what their originals cost, and take away what they say and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epicortex.config.fields import settings, value_of
from epicortex.families.layered.genome import Genome
from epicortex.paper.controls import ALL, of_lineage
from epicortex.paper.plan import PlannedRun, found
from epicortex.run.record import read_run

Lines = list[dict[str, Any]]


def lines(folder: Path, name: str = "networks") -> Lines:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def controls(out: Path, name: str) -> list[tuple[PlannedRun, Lines]]:
    return [(run, lines(out / run.folder)) for run in found(out) if run.experiment.control == name]


def trainings(folder: Path) -> int:
    """Counted from the networks themselves: one a line, but of a last generation beyond the budget."""
    limit = read_run(folder).config.evolution.trainings
    number = len(lines(folder))
    return number if limit is None else min(number, limit)


@pytest.mark.parametrize("name", ALL)
def test_every_control_costs_exactly_what_its_original_cost(name: str, experiment: Path) -> None:
    runs = controls(experiment, name)
    assert len(runs) == 4
    for run, own in runs:
        budget = len(lines(experiment / run.original.folder))
        assert trainings(experiment / run.folder) == budget
        # The budget ended in the last generation, not before, and was not left unspent.
        sizes = Counter(line["generation"] for line in own)
        last = max(sizes)
        assert sum(number for generation, number in sizes.items() if generation < last) < budget
        assert sum(sizes.values()) >= budget


def test_founders_stay_as_they_are_but_for_their_training(experiment: Path) -> None:
    for run, own in controls(experiment, "founders"):
        original = [line for line in lines(experiment / run.original.folder) if line["generation"] == 1]
        first = [line for line in own if line["generation"] == 1]
        assert [(line["id"], line["genome"], line["fitness"]) for line in first] == [
            (line["id"], line["genome"], line["fitness"]) for line in original
        ]
        assert {line["id"] for line in own} == {line["id"] for line in first}
        assert not any(line["events"] for line in own)


def test_mutation_only_has_no_child_of_two(experiment: Path) -> None:
    born = [line for _, own in controls(experiment, "mutation") for line in own if line["birth"]]
    assert born
    assert {len(line["parents"]) for line in born} == {1}


def test_random_parents_still_cross_and_say_so_in_their_settings(experiment: Path) -> None:
    runs = controls(experiment, "random")
    parents = Counter(len(line["parents"]) for _, own in runs for line in own if line["birth"])
    assert parents[2] > 0
    for run, _ in runs:
        selection = read_run(experiment / run.folder).config.selection
        assert (selection.parents, selection.parent_shares) == ("even", "even")


def test_the_champions_structure_starts_with_new_weights_and_the_lineages_samples(experiment: Path) -> None:
    for run, own in controls(experiment, "champion"):
        original = read_run(experiment / run.original.folder)
        champion = original.champion()
        first = [line for line in own if line["generation"] == 1]
        assert {Genome.from_dict(line["genome"]) for line in first} == {champion.phenotype.genome}
        assert len({line["fitness"] for line in first}) > 1
        share = of_lineage(original)
        assert len(first) == max(1, len(lines(original.path)) // share)
        # Whole generations in which each of them is trained: enough for all the samples of the lineage.
        assert trainings(experiment / run.folder) // len(first) >= share


def lineage_by_hand(networks: Lines, champion: int, generation: int) -> int:
    """Every line of an ancestor up to the generation in which its last child on the way was born."""
    ends = {champion: generation}
    for id in range(champion, 0, -1):
        if id in ends:
            one = next(line for line in networks if line["id"] == id)
            for parent in one["parents"]:
                ends[parent] = max(ends.get(parent, 0), one["birth"])
    return sum(line["id"] in ends and line["generation"] <= ends[line["id"]] for line in networks)


def test_the_trainings_of_a_lineage_are_the_lines_of_all_ancestors(experiment: Path) -> None:
    counted = []
    for run in found(experiment):
        record = read_run(experiment / run.folder)
        facts = record.champion().facts
        counted.append(lineage_by_hand(lines(record.path), facts.network, facts.generation))
        assert of_lineage(record) == counted[-1]
    assert max(counted) > 4


def test_a_control_differs_from_its_original_in_what_it_takes_away_only(experiment: Path) -> None:
    allowed = {
        "founders": {"evolution.evolve"},
        "champion": {
            *("evolution.evolve", "speciation.founders", "evolution.start_genome"),
            *("evolution.initial_networks", "evolution.initial_species", "evolution.max_networks"),
        },
        "mutation": {"selection.parents"},
        "random": {"selection.parents", "selection.parent_shares"},
    }
    cost = {"evolution.trainings", "evolution.generations"}
    drawn = {"evolution.initial_networks", "evolution.max_networks"}
    for name, taken in allowed.items():
        for run, _ in controls(experiment, name):
            one, other = (
                read_run(experiment / folder).config for folder in (run.folder, run.original.folder)
            )
            changed = {name for name in settings() if value_of(one, name) != value_of(other, name)}
            assert changed <= taken | cost
            assert {"evolution.trainings", *(taken - drawn)} <= changed
