"""Incumbents, challengers and siblings: who goes on, who is born, and what is averaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.ecosystem import census
from epicortex.ecosystem.challengers import ChallengerSelection, judge
from epicortex.ecosystem.comparison import beside
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.errors import ConfigError, RunError
from epicortex.evolution import Evolution, Step
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.residual import Phenotype, ResidualFamily

SAMPLES = 50
#: One class of networks whose kernels all have one shape, and which differ in their recipe only.
ALIKE = {
    **{"residual.mutations": ["recipe"], "residual.kernel_mix": 0.0},
    **{"speciation.classes": [1.0], "budget.siblings": 2},
}


def world(**more: Any) -> tuple[Evolution, EcosystemState]:
    sizes = {"residual.start_cost": 60_000, "residual.start_parameters": 3000, "budget.siblings": 2}
    made = settings.resolve("default", {"evolution.generations": 10, **sizes, **more})
    evolution = Evolution(made, ResidualFamily.from_config(made, Problem((1, 8, 8), 3)))
    return evolution, evolution.start()


def scored(job: Job, loss: float, phenotype: Phenotype | None = None) -> Outcome:
    losses = np.linspace(0.5, 1.5, SAMPLES, dtype=np.float32) * loss
    return Outcome(job.network, job.generation, phenotype or job.phenotype, fitness=0.5, losses=losses)


def step(evolution: Evolution, state: EcosystemState, losses: dict[int, float]) -> Step:
    """A generation in which each network has the loss that is given; 1 where none is."""
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    state = evolution.planned(state, plan)
    return evolution.tell(state, [scored(job, losses.get(job.network, 1.0)) for job in evolution.ask(state)])


def test_founders_fill_their_classes() -> None:
    evolution, state = world()
    costs = [evolution.family.cost(network.phenotype) for network in state.networks]
    assert [network.species for network in state.networks] == [1, 2, 3]
    for cost, limit in zip(costs, (60_000, 30_000, 15_000), strict=True):
        assert cost <= limit
    assert costs == sorted(costs, reverse=True)
    assert [species.cost for species in state.species] == costs


def test_every_class_gets_a_challenger_that_stays_in_it() -> None:
    evolution, state = world()
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    groups = census.by_species(evolution.planned(state, plan).networks)
    assert {species: len(group) for species, group in groups.items()} == {1: 2, 2: 2, 3: 2}
    for incumbent, challenger in groups.values():
        assert challenger.parents == (incumbent.id,)
        assert challenger.events[0].outcome == "applied"
        ratio = evolution.family.cost(challenger.phenotype) / evolution.family.cost(incumbent.phenotype)
        assert 0.7 <= ratio <= 1.4
        assert challenger.pace == pytest.approx(1 / ratio)


def test_a_challenger_that_is_clearly_better_takes_over_and_others_go() -> None:
    evolution, state = world()
    after = step(evolution, state, {4: 0.9, 5: 1.2, 2: 0.9, 6: 1.2}).state  # 4 to 6 are challengers
    left = {network.id for network in after.networks if network.birth < after.generation}
    assert left == {4, 2, 3}
    tally = after.tally
    assert tally is not None
    assert tally.culled == 3
    assert tally.offspring == 3
    assert next(one for one in after.networks if one.id == 4).pace == 1.0


def test_a_tie_leaves_the_incumbent_unless_the_challenger_is_dearer() -> None:
    _, state = world(**ALIKE)
    family, cheap = ResidualFamily(Problem((1, 8, 8), 3)), state.networks[0].phenotype
    dear = family.founder(np.random.default_rng(1), max_parameters=2 * family.parameters(cheap))
    noisy = np.ones(SAMPLES, np.float32)
    noisy[::2] += 0.3
    noisy[1::2] -= 0.301
    worse = np.full(SAMPLES, 1.1, np.float32)

    def winner(first: Phenotype, second: Phenotype, losses: np.ndarray | None, ties: bool = True) -> int:
        one = Individual(1, first, (), 0, 1, fitness=0.5, losses=np.ones(SAMPLES, np.float32))
        scored = 0.5 if losses is not None else None
        other = replace(one, id=2, phenotype=second, losses=losses, fitness=scored)
        return judge([one, other], family, ties=ties).id

    assert winner(cheap, cheap, noisy) == 1
    assert winner(dear, cheap, noisy) == 1
    assert winner(cheap, dear, noisy) == 2
    assert winner(cheap, dear, worse) == 1
    assert winner(dear, cheap, worse - 0.2) == 2
    assert winner(cheap, dear, None) == 1
    assert winner(cheap, dear, noisy, ties=False) == 1
    assert winner(cheap, dear, worse - 0.2, ties=False) == 2


def test_a_search_that_ended_without_a_comparison_leaves_the_incumbents() -> None:
    evolution, state = world(**{"residual.mutations": ["width"], "speciation.classes": [1.0]})
    for _ in range(3):
        state = step(evolution, state, {}).state
    incumbent = min(state.networks, key=lambda one: one.id)
    dearer = evolution.family.mutate(
        incumbent.phenotype, grow=1.0, relative_fitness=0.5, rng=np.random.default_rng(1)
    ).phenotype
    assert dearer is not None
    losses = np.ones(SAMPLES, np.float32)
    level = replace(incumbent, fitness=0.5, losses=losses)
    uncompared = replace(level, id=state.next_network, phenotype=dearer, parents=(incumbent.id,))
    state = replace(state, networks=(level, uncompared), next_network=state.next_network + 1)
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    assert plan.phase == "polish"
    assert {one.phenotype for one in evolution.planned(state, plan).networks} == {incumbent.phenotype}


def test_a_challenger_that_wins_by_a_tie_stays_and_is_challenged() -> None:
    evolution, state = world(**{"residual.mutations": ["width"]})
    state = step(evolution, state, {}).state  # all have the same losses
    for group in census.by_species(state.networks).values():
        first, challenger = sorted(group, key=lambda one: one.id)
        assert challenger.parents == (first.id,)
        assert first.pace == 1.0
        if first.parents:
            before = next(one for one in evolution.start().networks if one.id == first.parents[0])
            assert evolution.family.cost(first.phenotype) > evolution.family.cost(before.phenotype)
    assert any(network.id > 3 and network.birth == 0 for network in state.networks)


def test_the_winner_is_averaged_with_what_it_beat() -> None:
    evolution, state = world(**ALIKE)
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    state = evolution.planned(state, plan)
    jobs = evolution.ask(state)
    incumbent, challenger = (job.phenotype for job in jobs)
    moved = tuple(genes.replace(weight=genes.weight + 1) for genes in challenger.genes)
    outcomes = [scored(jobs[0], 1.0), scored(jobs[1], 1.01, replace(challenger, genes=moved))]
    after = evolution.tell(state, outcomes).state
    winner = after.networks[0]
    assert winner.id == 1
    for mean, before in zip(winner.phenotype.genes, incumbent.genes, strict=True):
        np.testing.assert_allclose(mean.weight, before.weight + 0.5, atol=1e-6)


def test_a_class_ends_once_a_dearer_one_is_clearly_better_but_the_smallest_stays() -> None:
    evolution, state = world()
    after = step(evolution, state, {1: 0.8, 4: 0.8}).state
    assert {network.species for network in after.networks} == {1, 3}
    assert [species.id for species in after.species] == [1, 3]
    evolution, state = world(**{"culling.classes": False})
    after = step(evolution, state, {1: 0.8, 4: 0.8}).state
    assert {network.species for network in after.networks} == {1, 2, 3}


def test_a_cheaper_class_ends_no_dearer_one_and_leads_only_if_it_is_clearly_better() -> None:
    evolution, state = world()
    for cheap, main in ((0.8, 2), (1.0, 1)):
        after = state
        for _ in range(3):
            second = [network.id for network in after.networks if network.species == 2]
            after = step(
                evolution, after, dict.fromkeys([*second, 5], cheap)
            ).state  # 5 is its first challenger
            assert 1 in {network.species for network in after.networks}
        plan = evolution.plan(after, [], elapsed=0.0)
        assert plan is not None
        assert plan.phase == "polish"
        assert plan.main == main


def test_a_class_that_fails_in_polish_does_not_end_the_run() -> None:
    evolution, state = world(**{"culling.classes": False})
    while state.plan is None or state.plan.phase == "search":
        state = step(evolution, state, {}).state
    main, small = state.plan.main, state.plan.small
    assert small is not None
    for dead, left in ((small, main), (main, small)):
        plan = evolution.plan(state, [], elapsed=0.0)
        assert plan is not None
        trained = evolution.planned(state, plan)
        classes = {network.id: network.species for network in trained.networks}
        outcomes = [
            Outcome(job.network, job.generation, failed="NaN")
            if classes[job.network] == dead
            else scored(job, 1.0)
            for job in evolution.ask(trained)
        ]
        after = evolution.tell(trained, outcomes).state
        again = evolution.plan(after, [], elapsed=0.0)
        assert again is not None
        assert (again.main, again.small) == (left, None)
        assert {job.network for job in evolution.ask(evolution.planned(after, again))}


def test_a_plan_of_another_run_is_refused() -> None:
    evolution, state = world()
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    with pytest.raises(RunError, match="class 9, which is not there"):
        evolution.planned(state, replace(plan, phase="polish", first=True, main=9))


def test_a_ruined_network_gives_nothing() -> None:
    evolution, state = world(**ALIKE)
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    state = evolution.planned(state, plan)
    jobs = evolution.ask(state)
    moved = tuple(genes.replace(weight=genes.weight + 1) for genes in jobs[1].phenotype.genes)
    outcomes = [scored(jobs[0], 1.0), scored(jobs[1], 2.0, replace(jobs[1].phenotype, genes=moved))]
    after = evolution.tell(state, outcomes).state
    assert after.networks[0].phenotype.same_bits(jobs[0].phenotype)


def test_a_failed_network_goes_and_its_class_lives_on() -> None:
    evolution, state = world()
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    state = evolution.planned(state, plan)
    outcomes = [
        Outcome(job.network, job.generation, failed="NaN") if job.network in (1, 2, 5) else scored(job, 1.0)
        for job in evolution.ask(state)
    ]
    after = evolution.tell(state, outcomes).state
    assert {network.species for network in after.networks} == {1, 3}
    assert [species.id for species in after.species] == [1, 3]
    again = evolution.plan(after, [], elapsed=0.0)
    assert again is not None
    assert len(evolution.planned(after, again).networks) == 4


def test_polish_trains_siblings_of_the_best_class_and_of_a_smaller_one() -> None:
    evolution, state = world()
    for _ in range(3):  # three of ten generations are search
        state = step(evolution, state, {id: 0.5 for id in range(99) if id % 3 == 2}).state
    assert state.plan is not None
    assert state.plan.last
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    assert plan.phase == "polish"
    polished = evolution.planned(state, plan)
    groups = census.by_species(polished.networks)
    assert {len(group) for group in groups.values()} == {2}
    assert set(groups) == {plan.main, plan.small} - {None}
    for first, second in groups.values():
        assert second.phenotype is first.phenotype
    jobs = evolution.ask(polished)
    courses = {job.network: job.course for job in jobs}
    for network in polished.networks:
        course = courses[network.id]
        assert course is not None
        assert course.steps == (plan.steps if network.species == plan.main else plan.steps // 2)
    after = evolution.tell(polished, [scored(job, 1.0) for job in jobs]).state
    for first, second in census.by_species(after.networks).values():
        assert second.phenotype is first.phenotype  # averaged, so that both go on with the same


def test_the_champion_is_the_latest_network_with_the_lowest_loss() -> None:
    evolution, state = world()
    first = step(evolution, state, {3: 0.1})
    assert first.evaluated.champion is not None
    assert first.evaluated.champion.id == 3
    second = step(evolution, first.state, {2: 0.5})
    assert second.evaluated.champion is not None
    assert second.evaluated.champion.id == 2
    assert second.evaluated.champion_generation == 2


def test_what_cannot_work_is_refused() -> None:
    made = settings.resolve("default", {"evolution.generations": 2})
    evolution = Evolution(made, LayeredFamily.from_config(made, Problem((1, 8, 8), 3)))
    with pytest.raises(ConfigError, match="cannot size founders"):
        evolution.start()
    with pytest.raises(ConfigError, match="another preset, such as layered"):
        Evolution(
            settings.changed(made, evolution={"speciation": "none"}),
            ResidualFamily.from_config(Config(), Problem((1, 8, 8), 3)),
        )


def table_world(**more: Any) -> tuple[Evolution, EcosystemState]:
    made = settings.resolve(
        "default",
        {"evolution.generations": 10, "residual.start_parameters": 900, "budget.siblings": 2, **more},
    )
    evolution = Evolution(made, ResidualFamily.from_config(made, Problem((6,), 3)))
    return evolution, evolution.start()


def test_the_cheapest_class_of_a_table_is_a_linear_model_without_challengers() -> None:
    evolution, state = table_world()
    plan = evolution.plan(state, [], elapsed=0.0)
    assert plan is not None
    groups = census.by_species(evolution.planned(state, plan).networks)
    assert {species: len(group) for species, group in groups.items()} == {1: 2, 2: 2, 3: 1}
    assert [str(group[0].phenotype.genome) for group in groups.values()][2] == "columns 6 → out 3"
    _, alone = table_world(**{"speciation.classes": [1.0]})
    assert [network.phenotype.genome.stages[0].blocks != () for network in alone.networks] == [True]


@pytest.mark.parametrize(("loss", "linear"), [(0.97, True), (0.3, False)])
def test_more_than_a_linear_model_must_clearly_pay(loss: float, linear: bool) -> None:
    """Half of the samples speak for the network with blocks, and half against it, but for its gain."""
    evolution, state = table_world()
    rng = np.random.default_rng(1)
    base, noise = rng.uniform(0.9, 1.1, SAMPLES), np.tile([-0.2, 0.2], SAMPLES // 2)
    first, simple = state.networks[0], state.networks[2]
    losses = {first.id: loss * base + noise, simple.id: base}
    networks = [
        replace(one, fitness=0.5, losses=losses[one.id].astype(np.float32)) for one in (first, simple)
    ]
    selection = evolution.strategies.selection
    assert isinstance(selection, ChallengerSelection)
    champion = selection.champion(networks, evolution.family)
    assert champion is not None
    assert champion.id == (simple.id if linear else first.id)


def test_the_linear_model_is_polished_beside_what_leads() -> None:
    evolution, state = table_world()
    lead = state.networks[0]
    kept = beside(state.networks, lead, evolution.family)
    assert kept is not None
    assert kept.id == state.networks[2].id
