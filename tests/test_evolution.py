"""Whole generations by ask and tell, with a fitness that nobody trained for."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from epicortex.config import Config
from epicortex.ecosystem.jobs import Outcome
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import RunError
from epicortex.evolution import Evolution, Step, stop_reason
from epicortex.families.family import Family, Problem
from epicortex.families.layered import LayeredFamily
from tests.ecosystem.invariants import Witness
from tests.ecosystem.world import (
    BeadFamily,
    config,
    fingerprint,
    network,
    outcome,
    random_outcomes,
    settings,
    state,
)

SMALL: dict[str, Any] = {"initial_networks": 12, "max_networks": 20, "initial_species": 3, "max_species": 6}


def family(kind: str, config: Config) -> Family[Any]:
    if kind == "beads":
        return BeadFamily()
    return LayeredFamily.from_config(config, Problem((1, 8, 8), 10))


def evolution(kind: str = "beads", **changes: Any) -> Evolution:
    whole = config(**{**SMALL, **changes})
    return Evolution(whole, family(kind, whole))


def run(evolution: Evolution, generations: int, *, failing: float = 0.0) -> list[Step]:
    now, steps = evolution.start(), []
    for _ in range(generations):
        steps.append(evolution.tell(now, random_outcomes(evolution.ask(now), failing=failing)))
        now = steps[-1].state
    return steps


def alike(one: list[Step], other: list[Step]) -> bool:
    return [fingerprint(step) for step in one] == [fingerprint(step) for step in other]


def witnessed(kind: str, generations: int, *, failing: float = 0.03, **changes: Any) -> Witness:
    whole = config(**changes)
    rules = Evolution(whole, family(kind, whole))
    now = rules.start()
    witness = Witness(rules.family, whole, now)
    for _ in range(generations):
        step = rules.tell(now, random_outcomes(rules.ask(now), failing=failing))
        witness.check(now, step)
        now = step.state
    return witness


@pytest.mark.parametrize("speciation", [True, False])
def test_for_200_generations_of_111_networks_every_promise_holds(speciation: bool) -> None:
    witness = witnessed("beads", 200, speciation=speciation)
    assert witness.totals["offspring"] > 1000
    assert witness.totals["mutations"] > 1000
    assert witness.totals["culled"] > 500
    assert witness.totals["failed"] > 300
    if speciation:
        assert witness.totals["species_founded"] > 10
        assert witness.totals["species_extinct"] > 5
        assert witness.totals["mutations_refused"] > 50
    else:
        assert witness.totals["species_founded"] == witness.totals["mutations_refused"] == 0


@pytest.mark.parametrize("speciation", [True, False])
def test_the_promises_hold_for_layered_networks(speciation: bool) -> None:
    witness = witnessed("layered", 40, speciation=speciation)
    assert witness.totals["offspring"] > 200
    assert witness.totals["mutations"] > 300
    assert witness.totals["culled"] > 100
    assert (witness.totals["species_founded"] > 0) == speciation


@pytest.mark.parametrize(
    "changes",
    [
        {"newborns": "scored", "parent_shares": "fixed", "spared": "ecosystem", "complexity": "rises"},
        {"learning_rate": "aging", "mutation_choice": "even"},
        {"max_parameters": 12},
        {"initial_networks": 6, "initial_species": 3, "max_networks": 6, "max_species": 3},
        {"initial_networks": 2, "initial_species": 1, "max_networks": 2, "max_species": 16},
        {"initial_networks": 1, "initial_species": 1},
    ],
)
def test_the_promises_hold_in_other_readings_and_at_the_edges(changes: dict[str, Any]) -> None:
    assert witnessed("beads", 100, **{**SMALL, **changes}, failing=0.0).totals["warnings"] == 0


@pytest.mark.parametrize("speciation", [True, False])
@pytest.mark.parametrize("kind", ["beads", "layered"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(kind: str, speciation: bool) -> None:
    one, same, other = (
        run(evolution(kind, seed=s, speciation=speciation), 6, failing=0.1) for s in (1, 1, 2)
    )
    assert alike(one, same)
    assert not alike(one, other)


def test_outcomes_may_come_in_any_order() -> None:
    rules = evolution("layered")
    now = run(rules, 4)[-1].state
    outcomes = random_outcomes(rules.ask(now), failing=0.1)
    expected = fingerprint(rules.tell(now, outcomes))
    for seed in range(5):
        shuffled = random.Random(seed).sample(outcomes, len(outcomes))
        assert fingerprint(rules.tell(now, iter(shuffled))) == expected


def test_nothing_that_goes_in_is_changed() -> None:
    rules = evolution("layered")
    now = run(rules, 4)[-1].state
    outcomes = random_outcomes(rules.ask(now), failing=0.1)
    before = fingerprint([now, outcomes, rules.config.model_dump_json()])
    first = fingerprint(rules.tell(now, outcomes))
    assert fingerprint([now, outcomes, rules.config.model_dump_json()]) == before
    assert fingerprint(rules.tell(now, outcomes)) == first, "telling twice gives the same twice"


def test_a_generation_depends_on_no_setting_that_ends_a_run() -> None:
    short = evolution(generations=3)
    long = evolution(generations=500, minutes=9.0, target=0.5, plateau=1, keep_checkpoints=7)
    assert alike(run(short, 6), run(long, 6))


def test_events_are_shown_once_in_the_next_evaluated_state() -> None:
    steps = run(evolution(), 12)
    for step, following in pairwise(steps):
        events = {one.id: one.events for one in step.state.networks}
        assert {one.id: one.events for one in following.evaluated.networks} == events
        kept = [one for one in following.state.networks if one.events and one.events == events.get(one.id)]
        assert all(one.events[0] is not events[one.id][0] for one in kept)
    assert sum(len(one.events) for step in steps for one in step.evaluated.networks) > 10


def test_offspring_fitness_is_the_mean_of_newborns_before_training_and_generation_1_has_none() -> None:
    rules = evolution()
    now = rules.start()
    first = rules.tell(now, random_outcomes(rules.ask(now))).state
    assert first.tally is not None
    assert first.tally.offspring_fitness is None
    assert first.tally.offspring >= 2
    jobs = rules.ask(first)
    newborn = [job.network for job in jobs if job.newborn]
    assert newborn == [one.id for one in first.networks if one.birth == 1]
    answers = [outcome(job, 0.5, fitness_before=0.1 * (1 + job.network % 3)) for job in jobs]
    failed = newborn[0]
    answers = [Outcome(failed, 2, failed="NaN") if one.network == failed else one for one in answers]
    tally = rules.tell(first, answers).state.tally
    assert tally is not None
    expected = [0.1 * (1 + id % 3) for id in newborn[1:]]
    assert tally.offspring_fitness == pytest.approx(sum(expected) / len(expected))


def test_the_runs_champion_is_kept_by_value_and_of_equals_the_smaller_then_the_later_one() -> None:
    rules = evolution()
    now = rules.start()
    jobs = rules.ask(now)
    step = rules.tell(now, [outcome(job, 0.9 if job.network == 5 else 0.2) for job in jobs])
    champion = step.state.champion
    assert champion is not None
    assert (champion.id, champion.fitness, step.state.champion_generation) == (5, 0.9, 1)
    assert champion.phenotype is jobs[4].phenotype
    lower = rules.tell(step.state, [outcome(job, 0.8) for job in rules.ask(step.state)]).state
    assert lower.champion is champion
    assert (lower.champion_generation, lower.last_rise) == (1, 1)
    size = sum(champion.phenotype.sizes)

    def with_equals(*, extra: int) -> EcosystemState:
        """The next generation: one network is as fit as the champion, and this much larger."""
        jobs = rules.ask(step.state)
        twin = replace(jobs[0].phenotype, sizes=(size + extra,), colours="o")
        answers = [outcome(job, 0.2) for job in jobs]
        return rules.tell(step.state, [replace(answers[0], fitness=0.9, phenotype=twin), *answers[1:]]).state

    assert with_equals(extra=1).champion is champion
    assert with_equals(extra=1).champion_generation == 1
    equal = with_equals(extra=0)
    assert equal.champion is not champion
    assert (equal.champion_generation, equal.last_rise) == (2, 1)
    higher = rules.tell(equal, [outcome(job, 0.91) for job in rules.ask(equal)]).state
    assert (higher.champion_generation, higher.last_rise) == (3, 3)


def test_when_all_networks_fail_the_state_stays_as_it_was() -> None:
    rules = evolution()
    now = run(rules, 2)[-1].state
    before = fingerprint(now)
    with pytest.raises(RunError, match=r"all \d+ networks of generation 3 failed: out of memory"):
        rules.tell(now, [Outcome(job.network, 3, failed="out of memory") for job in rules.ask(now)])
    assert fingerprint(now) == before
    assert rules.tell(now, random_outcomes(rules.ask(now))).state.generation == 3


def test_one_survivor_is_enough_to_go_on() -> None:
    rules = evolution()
    now = rules.start()
    outcomes = [
        outcome(job, 0.5) if job.network == 4 else Outcome(job.network, 1, failed="out of memory")
        for job in rules.ask(now)
    ]
    after = rules.tell(now, outcomes).state
    assert 4 in {one.id for one in after.networks}
    assert all(one.id == 4 or one.parents == (4,) for one in after.networks)
    assert after.tally is not None
    assert after.tally.failed == 11


def test_telling_a_generation_to_the_wrong_state_is_caught() -> None:
    rules = evolution()
    first = rules.start()
    outcomes = random_outcomes(rules.ask(first))
    second = rules.tell(first, outcomes).state
    with pytest.raises(RunError, match="generation 1, but the state waits for generation 2"):
        rules.tell(second, outcomes)


def test_going_on_with_the_evaluated_half_of_a_step_is_caught() -> None:
    rules = evolution()
    step = run(rules, 1)[0]
    with pytest.raises(RunError, match=r"evaluated half of a step.*go on with its `state`"):
        rules.ask(step.evaluated)


@pytest.mark.parametrize("speciation", [True, False])
def test_an_ancestor_is_network_1_as_it_is(speciation: bool) -> None:
    plain = evolution("layered", speciation=speciation)
    ancestor = plain.start().networks[0].phenotype
    state = replace(plain, ancestor=ancestor).start()
    assert state.networks[0].phenotype is ancestor
    assert fingerprint(state.networks[1:]) == fingerprint(plain.start().networks[1:])


def ended(generation: int, fitness: float | None = None, last_rise: int = 0) -> EcosystemState:
    plain = state([network(1)], generation=generation)
    champion = None if fitness is None else network(1, fitness=fitness)
    return replace(plain, champion=champion, champion_generation=generation, last_rise=last_rise)


def test_a_run_stops_for_one_of_four_reasons() -> None:
    rules = settings(generations=10, target=0.95, plateau=4, minutes=30).evolution
    assert stop_reason(ended(0), rules, 0.0) is None
    assert stop_reason(ended(9, 0.94, 6), rules, 29.9) is None
    assert stop_reason(ended(10, 0.94, 9), rules, 0.0) == "all 10 generations are done"
    assert stop_reason(ended(3, 0.95, 3), rules, 0.0) == "the target of 95 % is reached"
    assert stop_reason(ended(7, 0.5, 3), rules, 0.0) == "the highest fitness has not risen for 4 generations"
    assert stop_reason(ended(1, 0.5, 1), rules, 30.0) == "the 30 minutes are over"


def test_without_limits_only_the_number_of_generations_ends_a_run() -> None:
    rules = settings(generations=10).evolution
    assert stop_reason(ended(9, 1.0, 1), rules, 1e9) is None
    assert stop_reason(ended(11, 1.0, 1), rules, 0.0) == "all 10 generations are done"
