"""Planned runs: how time becomes counted work, and how a plan is followed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as settings_of_test
from hypothesis import strategies as st

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.planned import PlannedBudget, rate
from epicortex.ecosystem.state import Counts
from epicortex.ecosystem.stopping import Progress, limit_reached
from epicortex.evolution import Evolution
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily

SPEED = 2e9
COUNTED = Counts(1, 4, 2, 0.9, 0.8, None, 2, 1, 0, 0, 0, 0, 0, 0, 3, 650, 700.5)


def config(**more: Any) -> Config:
    sizes = {"residual.start_cost": 60_000, "residual.start_parameters": 3000, "budget.siblings": 2}
    measured = {"budget.speed": SPEED, "budget.reserve": 3.0}
    return settings.resolve("default", {**sizes, **measured, **more})


def family_of(made: Config, shape: tuple[int, ...] = (1, 8, 8)) -> ResidualFamily:
    return ResidualFamily.from_config(made, Problem(shape, 3))


def planned(
    made: Config, shape: tuple[int, ...] = (1, 8, 8), pace: float = 1.0, after: Plan | None = None
) -> list[Plan]:
    """All plans of a run whose generations take the time that was planned, times `pace`; nobody trains.

    It may go on `after` the plans of another.
    """
    family = family_of(made, shape)
    evolution = Evolution(made, family)
    state, elapsed = evolution.start(), 2.0
    if after is not None:
        state = replace(state, generation=after.generation, plan=after)
    history: list[Generation] = []
    plans: list[Plan] = []
    while len(plans) < 1000 and limit_reached(Progress.of_state(state), made.evolution) is None:
        plan = evolution.plan(state, history, elapsed=elapsed)
        assert plan is not None
        plans.append(plan)
        seconds = pace * plan.work / SPEED
        elapsed += seconds
        counts = replace(COUNTED, generation=plan.generation)
        history.append(Generation.timed(counts, train_seconds=seconds, seconds=seconds))
        state = replace(state, generation=plan.generation, plan=plan)
    return plans


@settings_of_test(max_examples=15)
@given(minutes=st.floats(0.5, 120), pace=st.floats(0.5, 2.0), search=st.sampled_from([0.0, 0.35, 0.6]))
def test_minutes_are_used_up_and_not_exceeded(minutes: float, pace: float, search: float) -> None:
    made = config(**{"evolution.minutes": minutes, "budget.search": search})
    plans = planned(made, pace=pace)
    seconds = sum(pace * plan.work / SPEED for plan in plans) + 2.0
    assert seconds == pytest.approx(60 * minutes - 3.0, rel=0.05, abs=2.5)
    assert plans[-1].ends_run
    assert not any(plan.ends_run for plan in plans[:-1])


def test_the_phases_follow_each_other_and_the_rate_falls_to_zero() -> None:
    plans = planned(config(**{"evolution.minutes": 10.0}))
    phases = [plan.phase for plan in plans]
    assert phases == sorted(phases, reverse=True)  # search, then polish
    assert set(phases) == {"search", "polish"}
    assert plans[0].rates[0] == pytest.approx(2 * 0.05)
    assert plans[-1].rates[1] == 0.0
    for before, after in pairwise(plans):
        assert after.start == before.start + before.steps
        assert after.rates[0] == pytest.approx(before.rates[1], abs=0.04)
    lasts = [plan for plan in plans if plan.last]
    assert [plan.phase for plan in lasts] == ["search", "polish"]
    assert lasts[0].judge
    assert plans[-2].rates[1] == 0.0  # all training is done: the last generation only scores what it gave
    assert (plans[-1].steps, plans[-1].scored) == (0, None)


def test_no_job_of_a_long_run_takes_longer_than_half_a_minute() -> None:
    plans = planned(config(**{"evolution.minutes": 90.0}))
    assert max(plan.work / SPEED for plan in plans) < 30
    judged = [plan.generation for plan in plans if plan.judge]
    assert 15 <= len(judged) <= 40


def test_without_minutes_no_clock_is_read() -> None:
    made = config(**{"evolution.generations": 10, "budget.steps": 7})
    assert made.evolution.minutes is None
    evolution = Evolution(made, family_of(made))
    state = evolution.start()
    assert evolution.plan(state, [], elapsed=0.0) == evolution.plan(state, [], elapsed=1e9)
    plans = planned(made)
    assert len(plans) == 10
    assert [plan.steps for plan in plans] == [7] * 9 + [0]
    assert [plan.phase for plan in plans].count("search") == 3
    assert all(plan.work == 0 for plan in plans)


def test_images_are_smaller_at_first_where_they_are_large_enough() -> None:
    large = planned(config(**{"evolution.generations": 10}), shape=(3, 32, 32))
    assert [plan.size for plan in large] == [(20, 20)] * 4 + [None] * 6
    assert {plan.size for plan in planned(config(**{"evolution.generations": 4}))} == {None}


@pytest.mark.parametrize(
    ("plain", "mirrored", "flips"), [(0.9, 0.88, True), (0.9, 0.6, False), (0.36, 0.36, False)]
)
def test_mirrored_images_are_used_if_a_network_that_never_saw_one_knows_them(
    plain: float, mirrored: float, flips: bool
) -> None:
    made = config(**{"evolution.minutes": 10.0})
    family = family_of(made)
    budget, state = PlannedBudget(made), Evolution(made, family).start()
    first = budget.plan(state, [], family=family, elapsed=2.0)
    assert first.mirrored
    assert not first.flip
    networks = tuple(
        replace(network, fitness=plain, measures={"mirrored": mirrored}) for network in state.networks
    )
    state = replace(state, networks=networks, plan=first, generation=1)
    assert budget.plan(state, [], family=family, elapsed=20.0).flip is flips


def test_classes_that_are_known_mirrored_are_mirrored_and_the_others_spared() -> None:
    made = config(**{"evolution.minutes": 10.0, "training.unflipped": [2]})
    family = family_of(made)
    budget, state = PlannedBudget(made), Evolution(made, family).start()
    first = budget.plan(state, [], family=family, elapsed=2.0)
    outputs = family.outline(family.encode(state.networks[0].phenotype)[0]).outputs

    def planned_after(plan: Plan, **measures: float) -> Plan:
        known = {"mirrored": 0.5, **{name.replace("_", " "): value for name, value in measures.items()}}
        networks = tuple(replace(one, fitness=0.9, measures=known) for one in state.networks)
        after = replace(state, networks=networks, plan=plan, generation=plan.generation)
        return budget.plan(after, [], family=family, elapsed=20.0)

    none = planned_after(first, mirrored_0=0.5, mirrored_2=1.0)
    assert (none.flip, none.spared, none.mirrored) == (False, (), True)
    second = planned_after(first, mirrored_0=0.99, mirrored_1=0.7, mirrored_2=1.0)
    assert (second.flip, second.spared, second.mirrored) == (True, tuple(range(1, outputs)), True)
    third = planned_after(second, mirrored_1=0.95)
    assert third.spared == tuple(range(2, outputs))
    courses = [job.course for job in budget.jobs(replace(state, plan=third), generation=third.generation)]
    assert {course.spared for course in courses if course} == {third.spared}


def test_images_are_changed_once_a_network_that_never_saw_it_knows_them() -> None:
    """More has to be left of what a network knows under other colours than under a box that hides a part."""
    made = config(**{"evolution.minutes": 10.0})
    family = family_of(made)
    budget, state = PlannedBudget(made), Evolution(made, family).start()

    def after(plan: Plan, elapsed: float, **measures: float) -> Plan:
        found = {f"changed {name}": value for name, value in measures.items()}
        known = tuple(replace(one, fitness=0.9, measures=found) for one in state.networks[1:])
        known = (replace(state.networks[0], fitness=0.2), *known)  # knows little, and so was not asked
        before = replace(state, networks=known, plan=plan, generation=plan.generation)
        return budget.plan(before, [], family=family, elapsed=elapsed)

    def courses(plan: Plan) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        jobs = budget.jobs(replace(state, plan=plan), generation=plan.generation)
        return [(job.course.augment, job.course.changed) for job in jobs if job.course]

    first = budget.plan(state, [], family=family, elapsed=2.0)
    assert courses(first) == [((), ("colour", "cutout"))] * 3  # the incumbent of each class
    assert courses(after(first, 20.0, colour=0.95, cutout=0.95)) == courses(first)  # too early to tell
    assert courses(after(first, 90.0, colour=0.6, cutout=0.6)) == courses(first)
    second = after(first, 90.0, colour=0.8, cutout=0.8)
    assert courses(second) == [(("cutout",), ("colour",))] * 3
    third = after(second, 110.0, colour=0.95)
    assert courses(third) == [(("colour", "cutout"), ())] * 3
    assert courses(after(second, 300.0)) == [(("cutout",), ())] * 3  # too late to find out
    assert courses(after(third, 300.0)) == courses(third)
    signals = family_of(made, (1, 40))
    plan = budget.plan(Evolution(made, signals).start(), [], family=signals, elapsed=2.0)
    assert (plan.augment, plan.changed) == ((), ())


def test_a_plan_decides_how_images_are_changed_whatever_a_later_setting_says() -> None:
    made = config(**{"evolution.minutes": 10.0, "training.augment": []})
    state = Evolution(made, family_of(made)).start()
    plan = PlannedBudget(made).plan(state, [], family=family_of(made), elapsed=2.0)
    state = replace(state, plan=replace(plan, augment=("colour",)))
    courses = [job.course for job in PlannedBudget(made).jobs(state, generation=1)]
    assert {course.augment for course in courses if course} == {("colour",)}


def test_changes_that_a_person_names_are_made_from_the_first_step_on() -> None:
    made = config(**{"evolution.minutes": 10.0, "training.augment": ["noise", "cutout"]})
    family = family_of(made)
    budget, state = PlannedBudget(made), Evolution(made, family).start()
    first = budget.plan(state, [], family=family, elapsed=2.0)
    assert first.changed == ()
    jobs = budget.jobs(replace(state, plan=first), generation=1)
    assert {job.course.augment for job in jobs if job.course} == {("noise", "cutout")}


def test_a_target_counts_on_the_samples_of_the_last_generation_only() -> None:
    """Generations on the way are scored on a few samples, and may be lucky."""
    made = config(**{"evolution.minutes": 1.0, "evolution.target": 0.95})
    last = planned(made)[-1]
    counts = [
        replace(COUNTED, generation=number, highest_fitness=high) for number, high in ((1, 0.99), (2, 0.9))
    ]
    history = [Generation.timed(one, train_seconds=1.0, seconds=1.0) for one in counts]
    assert limit_reached(Progress.of_history(history, made, last), made.evolution) == "minutes"


def test_rates_stay_within_bounds_where_reading_took_all_of_the_time() -> None:
    made = config(**{"evolution.minutes": 0.2})
    family = family_of(made)
    budget, state = PlannedBudget(made), Evolution(made, family).start()
    first = budget.plan(state, [], family=family, elapsed=60.0)
    later = budget.plan(replace(state, plan=first, generation=1), [], family=family, elapsed=10.0)
    assert all(0 <= rate <= 2 for plan in (first, later) for rate in plan.rates)


def test_a_finished_run_goes_on_if_it_gets_more() -> None:
    made = config(**{"evolution.minutes": 1.0})
    last = planned(made)[-1]
    progress = Progress(9, 0.9, 9, plan=last)
    assert limit_reached(progress, made.evolution) == "minutes"
    more = settings.changed(made, evolution={"minutes": 2.0})
    assert limit_reached(progress, more.evolution) is None


def test_the_rate_rises_quickly_and_falls_slowly() -> None:
    times = np.linspace(0, 1, 201)
    rates = [rate(time) for time in times]
    assert np.argmax(rates) < 20
    assert rates[-1] == 0
    assert all(before > after for before, after in pairwise(rates[20:]))


def test_generations_that_were_counted_are_no_minutes() -> None:
    counted = planned(config(**{"evolution.generations": 30}))[-1]
    ended = Progress(generations=30, highest=0.5, last_rise=1, plan=counted)
    asked = config(**{"evolution.generations": 30}).evolution
    assert limit_reached(ended, asked) == "generations"
    assert limit_reached(ended, asked.model_copy(update={"minutes": 20.0})) is None


@pytest.mark.parametrize(
    ("generations", "done", "minutes"),
    [(30, 3, 2.0), (30, 12, 2.0), (30, 29, 2.0), (30, 30, 2.0), (10, 9, 10.0), (10, 10, 10.0)],
)
def test_a_run_of_generations_goes_on_by_the_clock_and_ends(
    generations: int, done: int, minutes: float
) -> None:
    counted = planned(config(**{"evolution.generations": generations}))[:done]
    plans = planned(config(**{"evolution.minutes": minutes}), after=counted[-1])
    assert sum(plan.work for plan in plans) / SPEED == pytest.approx(60 * minutes - 2 - 3, rel=0.05)
    assert plans[-1].ends_run
    assert (plans[-2].rates[1], plans[-1].steps) == (0.0, 0)
    assert [plan.ends_run for plan in plans].count(True) == 1


def test_more_minutes_that_are_given_before_the_last_score_are_used() -> None:
    trained = planned(config(**{"evolution.minutes": 2.0}))[-2]
    plans = planned(config(**{"evolution.minutes": 4.0}), after=trained)
    assert plans[0].steps > 0
    assert sum(plan.work for plan in plans) / SPEED == pytest.approx(240 - 2 - 3, rel=0.05)


def test_a_finished_run_of_generations_does_not_search_again() -> None:
    made = config(**{"evolution.generations": 10})
    more = Evolution(config(**{"evolution.generations": 100}), family_of(made))
    state = replace(more.start(), generation=10, plan=planned(made)[-1])
    plan = more.plan(state, [], elapsed=0.0)
    assert plan is not None
    assert plan.phase == "polish"


def test_a_generation_that_was_replayed_does_not_change_the_speed_much() -> None:
    made = config(**{"evolution.minutes": 10.0})
    evolution = Evolution(made, family_of(made))
    before = planned(made)[5]
    state = replace(evolution.start(), generation=before.generation, plan=before)
    for seconds in (1e-3, 1e6):
        history = [Generation.timed(COUNTED, train_seconds=seconds, seconds=seconds)]
        plan = evolution.plan(state, history, elapsed=60.0)
        assert plan is not None
        assert 0.5 <= plan.speed / before.speed <= 2.0
