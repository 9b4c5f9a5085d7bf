"""Trainings are counted from the history, and a budget of them is spent to the last one."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.config.models import MOVED
from epicortex.ecosystem import budget
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.jobs import Job
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import Genome
from epicortex.run.lifecycle import evolve, resume
from epicortex.run.record import read_run
from tests.ecosystem.world import config
from tests.generations import generation

SIZES = {
    "evolution.initial_networks": 5,
    "evolution.max_networks": 7,
    "evolution.initial_species": 2,
    "evolution.max_species": 3,
    "training.engine": "serial",
}


def small(**changes: Any) -> Config:
    dotted = {MOVED.get(f"evolution.{name}", f"evolution.{name}"): value for name, value in changes.items()}
    return settings.resolve("paper", {**SIZES, **dotted})


def jobs(networks: int) -> tuple[Job, ...]:
    phenotype = draw_phenotype(Genome((4,), (), 2), rng=np.random.default_rng(1))
    return tuple(Job(id, 3, 1, phenotype) for id in range(1, networks + 1))


def lines(*networks: int) -> list[Generation]:
    return [generation(place, networks=number, offspring=1) for place, number in enumerate(networks, 1)]


@given(st.lists(st.integers(1, 50), max_size=8), st.integers(1, 200), st.integers(1, 60))
def test_no_generation_overdraws_a_budget_and_none_leaves_any_that_it_could_spend(
    before: list[int], trainings: int, networks: int
) -> None:
    own = config(trainings=trainings)
    asked = budget.limited(jobs(networks), lines(*before), own)
    left = trainings - min(trainings, sum(before))
    assert sum(job.train for job in asked) == min(left, networks)
    assert [job.network for job in asked] == list(range(1, networks + 1))


@given(
    st.lists(st.tuples(st.integers(3, 50), st.integers(0, 3)), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 200)),
    st.sampled_from(["trained", "scored"]),
)
def test_what_is_spent_after_each_generation_is_counted_one_by_one(
    generations: list[tuple[int, int]], trainings: int | None, newborns: str
) -> None:
    own = config(trainings=trainings, newborns=newborns)
    left = 10**9 if trainings is None else trainings
    history: list[Generation] = []
    expected: list[int] = []
    whole = born = 0
    for networks, children in generations:
        asked = networks - (born if newborns == "scored" else 0)
        history.append(generation(len(history) + 1, networks=networks, offspring=children))
        expected.append((expected or [0])[-1] + min(asked, left))
        whole += asked <= left
        left, born = left - min(asked, left), children
        if left == 0:
            break
    assert budget.totals(history, own) == expected
    assert budget.spent(history, own) == expected[-1]
    assert budget.whole(history, own) == whole


def test_in_the_published_reading_founders_are_only_scored_and_no_training_is_spent_on_them() -> None:
    own = settings.resolve("paper", {**SIZES, "budget.founders": "scored", "evolution.generations": 2})
    result = evolve("digits", own)
    start = evolve("digits", settings.resolve("paper", {**SIZES, "evolution.generations": 1}))
    assert budget.spent(result.history[:1], own) == 0
    assert budget.spent(result.history, own) == result.history[1].networks
    untrained, trained = (run.history[0].highest_fitness or 0 for run in (result, start))
    assert untrained < trained, "nobody was trained"
    assert result.history[0].offspring_fitness is None, "founders are no offspring"


def test_without_a_budget_the_jobs_stay_as_they_are() -> None:
    asked = jobs(5)
    assert budget.limited(asked, lines(100, 100), Config()) == asked


def test_who_is_trained_last_is_drawn_evenly() -> None:
    seen: Counter[int] = Counter()
    for seed in range(2000):
        own = config(trainings=12, seed=seed)
        seen.update(job.network for job in budget.limited(jobs(5), lines(10), own) if job.train)
    assert seen.total() == 4000
    # Of 2,000 draws each network is in two fifths; six deviations are 131.
    assert all(abs(seen[id] - 800) < 131 for id in range(1, 6))


@pytest.mark.parametrize("trainings", [5, 13, 20])
def test_a_run_spends_exactly_its_budget(trainings: int) -> None:
    result = evolve("digits", small(trainings=trainings, generations=trainings, evolve=False))
    assert result.stop_reason == f"all {trainings} trainings are done"
    assert len(result.history) == -(-trainings // 5)
    assert budget.spent(result.history, small(trainings=trainings)) == trainings


def test_networks_beyond_the_budget_keep_their_weights_and_are_scored() -> None:
    whole = evolve("digits", small(generations=2, evolve=False))
    partly = evolve("digits", small(generations=9, trainings=8, evolve=False))
    once = evolve("digits", small(generations=1, evolve=False))
    ends = {one.id: one for one in partly.state.networks}
    trained = [
        id
        for id, one in ends.items()
        if any(one.phenotype.same_bits(other.phenotype) for other in whole.state.networks if other.id == id)
    ]
    rest = [
        id
        for id, one in ends.items()
        if any(one.phenotype.same_bits(other.phenotype) for other in once.state.networks if other.id == id)
    ]
    assert (len(trained), len(rest)) == (3, 2)
    before = {one.id: one.fitness for one in once.state.networks}
    assert all(ends[id].fitness == before[id] for id in rest)


def test_a_run_with_a_budget_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    config = small(trainings=23, generations=23)
    evolve("digits", config, out=tmp_path / "whole")
    stop = threading.Event()
    broken = evolve(
        "digits",
        config,
        out=tmp_path / "broken",
        stop=stop,
        on_generation=lambda line: stop.set() if line.generation == 2 else None,
    )
    assert broken.interrupted
    assert resume(tmp_path / "broken").stop_reason == "all 23 trainings are done"
    one, other = (tmp_path / name / "networks.jsonl" for name in ("whole", "broken"))
    assert one.read_bytes() == other.read_bytes()
    assert budget.spent(read_run(tmp_path / "broken").history, config) == 23
