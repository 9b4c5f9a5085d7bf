"""What is summary from networks.jsonl equals what is counted from its lines one by one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epicortex.errors import StorageError
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.report import summary as module
from epicortex.report.summary import Dot, Mean, RunSummary, summarise
from epicortex.run.record import read_run
from tests.report.world import FAILURES, pretended_run

Lines = list[dict[str, Any]]
FAMILY = LayeredFamily(Problem((1, 8, 8), 10))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretended_run(tmp_path_factory.mktemp("runs") / "run", failing=0.05)


@pytest.fixture(scope="module")
def lines(run: Path) -> Lines:
    return [json.loads(line) for line in (run / "networks.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def summary(run: Path) -> RunSummary:
    record = read_run(run)
    return summarise(record.networks(), record.history, family=FAMILY, followed=frozenset(range(1000)))


def test_the_front_is_what_no_other_network_beats(summary: RunSummary, lines: Lines) -> None:
    scored = [(line["parameters"], line["fitness"]) for line in lines if line["fitness"] is not None]
    best = {
        (size, fitness)
        for size, fitness in scored
        if not any(
            (other <= size and fit > fitness) or (other < size and fit >= fitness) for other, fit in scored
        )
    }
    assert [(point.parameters, point.fitness) for point in summary.front] == sorted(best)


def test_a_mutations_effect_is_the_change_from_the_generation_before_to_the_one_after(
    summary: RunSummary, lines: Lines
) -> None:
    fitness = {(line["generation"], line["id"]): line["fitness"] for line in lines}
    changes: dict[tuple[str, str], list[float]] = {}
    unchanged = []
    for line in lines:
        before = fitness.get((line["generation"] - 1, line["id"]))
        if before is None or line["fitness"] is None:
            continue
        applied = [event for event in line["events"] if event["outcome"] == "applied"]
        for event in applied:
            key = (event["type"], event["direction"])
            changes.setdefault(key, []).append(line["fitness"] - before)
        if not applied:
            unchanged.append(line["fitness"] - before)
    assert len(changes) > 3
    for key, values in changes.items():
        effect = summary.attempts[key].effect
        assert effect.number == len(values)
        assert effect.mean == pytest.approx(sum(values) / len(values))
    assert summary.unchanged.mean == pytest.approx(sum(unchanged) / len(unchanged))


def test_attempts_and_failures_are_counted(summary: RunSummary, lines: Lines) -> None:
    tried = Counter(
        (event["type"], event["direction"], event["outcome"]) for line in lines for event in line["events"]
    )
    found = {
        (kind, direction, outcome): number
        for (kind, direction), row in summary.attempts.items()
        for outcome, number in row.outcomes.items()
    }
    assert found == dict(tried)
    assert set(summary.failures) == set(FAILURES)
    assert summary.failures.total() == sum(line["failed"] is not None for line in lines) > 0


def test_births_are_compared_with_their_parents(summary: RunSummary, lines: Lines) -> None:
    fitness = {(line["generation"], line["id"]): line["fitness"] for line in lines}
    effects: dict[bool, list[float]] = {True: [], False: []}
    for line in lines:
        parents = set(line["parents"])
        if line["birth"] == line["generation"] - 1 and parents and line["fitness"] is not None:
            known = [fitness[line["birth"], parent] for parent in parents]
            effects[len(parents) > 1].append(line["fitness_before_training"] - sum(known) / len(known))
    assert summary.births == {"crossover": len(effects[True]), "clone": len(effects[False])}
    for effect, values in ((summary.crossovers, effects[True]), (summary.clones, effects[False])):
        assert effect.mean == pytest.approx(sum(values) / len(values))


def test_the_events_of_those_followed_carry_the_generation_they_happened_in(
    summary: RunSummary, lines: Lines
) -> None:
    applied = [
        (line["id"], line["generation"] - 1, event["type"])
        for line in lines
        for event in line["events"]
        if event["outcome"] == "applied"
    ]
    kept = [(id, when, event.type) for id, pairs in summary.events.items() for when, event in pairs]
    assert sorted(kept) == sorted(applied)


def told(point: Dot) -> tuple[Any, ...]:
    return point.parameters, point.fitness, point.generation, point.network, point.genome.text


def test_of_very_many_networks_an_even_choice_is_drawn_but_the_front_is_whole(
    run: Path, summary: RunSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 50)
    record = read_run(run)
    few = summarise(record.networks(), record.history, family=FAMILY, followed=frozenset())
    assert 25 <= len(few.points) <= 50
    assert list(map(told, few.front)) == list(map(told, summary.front))
    assert {point.generation for point in few.points} == {line.generation for line in record.history}
    assert few.events == {}


def test_a_generation_that_is_not_in_the_history_yet_is_left_out(run: Path, summary: RunSummary) -> None:
    record = read_run(run)
    shorter = summarise(record.networks(), record.history[:-1], family=FAMILY, followed=frozenset())
    assert shorter.generations == summary.generations[:-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"genome": "0" * 32}, "no line before has the genome"),
        ({"genome": {"format": 1}}, "layers must be a list"),
        ({"generation": 2}, "generation 2 follows 0"),
    ],
)
def test_lines_that_make_no_sense_are_refused(
    run: Path, lines: Lines, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    (tmp_path / "config.toml").write_bytes((run / "config.toml").read_bytes())
    (tmp_path / "networks.jsonl").write_text(json.dumps({**lines[0], **change}) + "\n")
    record = read_run(tmp_path)
    with pytest.raises(StorageError, match=words):
        summarise(record.networks(), read_run(run).history, family=FAMILY, followed=frozenset())


def test_the_error_of_a_mean() -> None:
    mean = Mean()
    assert (mean.mean, mean.error) == (None, None)
    for value in (1.0, 2.0, 3.0, 6.0):
        mean.add(value)
    assert mean.mean == 3
    assert mean.error == pytest.approx((14 / 3) ** 0.5 / 2)
