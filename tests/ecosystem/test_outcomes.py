"""What is asked of workers, and how their answers are taken, or refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from epicortex.ecosystem.budget import PaperBudget
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.outcomes import record
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import RunError
from tests.beads import Beads
from tests.ecosystem.world import BeadFamily, fingerprint, network, outcome, settings, state


def asked(before: EcosystemState, **changes: Any) -> list[Job]:
    return list(PaperBudget(settings(**changes)).jobs(before, generation=before.generation + 1))


def world() -> EcosystemState:
    """Generation 7 is complete; network 3 was born in it, network 2 in the one before."""
    newborn = replace(network(3, birth=7, age=0), fitness=None, relative_fitness=None, average=None)
    return state([network(1), network(2, birth=6), newborn])


def test_only_those_born_in_the_generation_before_are_newborn() -> None:
    before = world()
    jobs = asked(before, seed=5)
    assert [one.phenotype for one in jobs] == [one.phenotype for one in before.networks]
    assert [(one.network, one.newborn, one.train) for one in jobs] == [
        (1, False, True),
        (2, False, True),
        (3, True, True),
    ]
    assert {(one.generation, one.seed) for one in jobs} == {(8, 5)}


def test_founders_are_no_newborns() -> None:
    before = state([network(1, birth=0)], generation=0)
    assert [one.newborn for one in asked(before)] == [False]


def test_in_one_reading_newborns_are_only_scored() -> None:
    jobs = asked(world(), newborns="scored")
    assert [one.train for one in jobs] == [True, True, False]
    answers = [outcome(one, 0.25 * one.network, fitness_before=None) for one in jobs]
    after = record(world(), jobs, answers, family=BeadFamily())
    assert after.networks[2].fitness == after.networks[2].fitness_before == 0.75


def test_in_one_reading_the_fit_and_the_old_learn_less() -> None:
    """A newborn has no relative fitness yet: all of the rate, as for a founder."""
    fit, old = network(1, age=3, relative_fitness=0.75), network(2, age=9, relative_fitness=0.25)
    newborn = world().networks[2]
    before = state([fit, old, newborn])
    assert [one.rate for one in asked(before)] == [1.0, 1.0, 1.0]
    aging = [one.rate for one in asked(before, learning_rate="aging")]
    assert aging == pytest.approx([0.25 / 4, 0.75 / 10, 1.0])


def test_outcomes_bring_fitness_and_trained_weights() -> None:
    before = world()
    jobs = asked(before)
    trained = Beads("o", (8,), "trained")
    answers = [outcome(one, 0.2 * one.network, phenotype=trained) for one in jobs]
    after = record(before, jobs, answers, family=BeadFamily())
    assert after.generation == 8
    assert [one.fitness for one in after.networks] == pytest.approx([0.2, 0.4, 0.6])
    assert [one.fitness_before for one in after.networks] == [None, None, pytest.approx(0.3)]
    assert all(one.phenotype is trained for one in after.networks)
    assert all(one.relative_fitness is None for one in after.networks), "old figures are gone"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["fitness", "fitness_before"])
def test_a_fitness_that_is_no_number_fails_the_network(bad: float, field: str) -> None:
    jobs = asked(world())
    answers = [outcome(jobs[0]), outcome(jobs[1]), outcome(jobs[2], **{field: bad})]
    after = record(world(), jobs, answers, family=BeadFamily())
    assert after.networks[2].failed == f"its fitness is {bad}"
    assert after.networks[2].fitness is None


def test_a_failed_network_keeps_its_reason_and_its_old_weights_and_has_no_figures() -> None:
    before = world()
    jobs = asked(before)
    answers = [outcome(jobs[0]), Outcome(2, 8, failed="it ran out of memory"), outcome(jobs[2])]
    failed = record(before, jobs, answers, family=BeadFamily()).networks[1]
    assert failed.failed == "it ran out of memory"
    assert failed.phenotype is before.networks[1].phenotype
    assert (failed.fitness, failed.relative_fitness, failed.relative_complexity) == (None, None, None)
    assert failed.average == before.networks[1].average


def test_when_all_failed_the_run_stops_and_says_why() -> None:
    before = world()
    old = fingerprint(before)
    reasons = {1: "it ran out of memory", 2: "the loss became NaN", 3: "it ran out of memory"}
    answers = [Outcome(id, 8, failed=reason) for id, reason in reasons.items()]
    with pytest.raises(RunError) as caught:
        record(before, asked(before), answers, family=BeadFamily())
    assert str(caught.value) == (
        "all 3 networks of generation 8 failed: it ran out of memory (2 times); the loss became NaN; "
        "fix the cause and run it again"
    )
    assert fingerprint(before) == old


def complaint(change: dict[int, Outcome | None], *more: Outcome) -> str:
    """What is said about the outcomes of `world` with some of them changed, left out (None) or added."""
    jobs = asked(world())
    answers = {one.network: outcome(one) for one in jobs} | change
    with pytest.raises(RunError) as caught:
        record(world(), jobs, [one for one in answers.values() if one] + list(more), family=BeadFamily())
    return str(caught.value)


def test_misuse_is_caught_with_the_mistake_and_the_fix() -> None:
    good = {one.network: outcome(one) for one in asked(world())}
    cases = {
        complaint({1: None, 3: None}): ("network 1, 3 is missing", "tell all 3 outcomes at once"),
        complaint({9: Outcome(9, 8, fitness=0.5)}): ("no network 9 in generation 8", "tell only"),
        complaint({}, good[2]): ("network 2 has more than one outcome", "once"),
        complaint({1: replace(good[1], generation=7)}): (
            "network 1 is of generation 7",
            "tell it to the state",
        ),
        complaint({1: replace(good[1], fitness=None)}): ("network 1", "has no fitness"),
        complaint({1: replace(good[1], phenotype=None)}): ("network 1", "has no phenotype (job.phenotype"),
        complaint({3: replace(good[3], fitness_before=None)}): ("network 3 is newborn", "score it before"),
        complaint({1: replace(good[1], phenotype=Beads("oa", (1, 1)))}): (
            "network 1 has another structure (oa)",
            "weights only",
        ),
    }
    for message, parts in cases.items():
        assert all(part in message for part in parts), message
        assert "\n" not in message


def test_long_lists_of_ids_are_cut_short() -> None:
    before = state([network(id) for id in range(1, 101)])
    with pytest.raises(RunError, match=r"network 1, 2, 3, 4, 5 \(and 95 more\) is missing"):
        record(before, asked(before), [], family=BeadFamily())
