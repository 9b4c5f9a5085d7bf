"""Visits: who is visited when, who mates with whom, who mutates, and what comes of it.

States are made by hand and `reproduce` is called for many generations: each has its own randomness, so
frequencies can be compared with exact probabilities, recomputed here by enumeration.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any

import pytest
from scipy.special import expit
from scipy.stats import binomtest, chisquare, zscore

from epicortex.ecosystem import draws
from epicortex.ecosystem.selection import mating_probability, share
from epicortex.ecosystem.state import EcosystemState, Event, Individual, MovingAverage
from epicortex.ecosystem.strategies import Selected
from epicortex.errors import VariationError
from epicortex.families.family import Mutation
from epicortex.randomness import generator
from tests.beads import Beads
from tests.ecosystem.world import (
    ALWAYS_MUTATE,
    NEVER_MUTATE,
    BeadFamily,
    Rng,
    network,
    reproduce,
    settings,
    state,
)

LITTLE = 1e-12
GENERATION = 8


def visited(
    before: EcosystemState, family: BeadFamily, *, generation: int = GENERATION, **changes: Any
) -> Selected:
    return reproduce(before, generation=generation, family=family, settings=settings(**changes))


def by_id(result: Selected) -> dict[int, Individual]:
    return {one.id: one for one in result.state.networks}


def nothing(phenotype: Beads, rng: Rng) -> Mutation[Beads]:
    return Mutation(None, "none", "grow")


def into(colours: str) -> Callable[[Beads, Rng], Mutation[Beads]]:
    """A mutation after which a network has these colours; its tag tells that it has changed."""

    def mutation(phenotype: Beads, rng: Rng) -> Mutation[Beads]:
        return Mutation(Beads(colours, (1,) * len(colours), phenotype.tag + " changed"), "bead", "grow", 2)

    return mutation


def mutated(family: BeadFamily) -> list[int]:
    return [int(call["phenotype"].tag.split()[0]) for call in family.called("mutate")]


# --- the order of visits ---


def test_within_a_species_networks_are_visited_once_each_in_an_order_drawn_by_relative_fitness() -> None:
    weights = {1: 2.0, 2: 0.5, 3: 1.0}
    members = [network(id, relative_fitness=w * LITTLE, fitness=0.1) for id, w in weights.items()]
    champion = network(4, fitness=0.9, relative_fitness=LITTLE)  # not mutated, so it leaves no trace
    before = state([*members, champion], average=ALWAYS_MUTATE)
    times = 3000

    seen: Counter[tuple[int, ...]] = Counter()
    for generation in range(times):
        family = BeadFamily(mutation=nothing)
        visited(before, family, generation=generation)
        seen[tuple(mutated(family))] += 1

    expected = {}
    for way in permutations(weights):
        first, second, third = (weights[id] for id in way)
        expected[way] = first / (first + second + third) * second / (second + third)
    assert set(seen) <= set(expected)
    assert chisquare([seen[w] for w in expected], [times * p for p in expected.values()]).pvalue > 1e-3


def test_species_are_visited_in_an_order_drawn_by_their_relative_mean_fitness() -> None:
    means = {1: 0.3, 2: 0.7, 3: 0.4}
    networks = []
    for species, mean in means.items():
        colours = "o" * species
        networks.append(network(species, colours, fitness=mean - 0.1, relative_fitness=LITTLE))
        networks.append(network(10 + species, colours, fitness=mean + 0.1, relative_fitness=LITTLE))
    before = state(networks, average=ALWAYS_MUTATE)
    times = 3000

    seen: Counter[tuple[int, ...]] = Counter()
    for generation in range(times):
        family = BeadFamily(mutation=nothing)
        visited(before, family, generation=generation)
        seen[tuple(mutated(family))] += 1

    weights = dict(zip(means, expit(zscore(list(means.values()))), strict=True))
    expected = {}
    for way in permutations(weights):
        first, second, third = (weights[id] for id in way)
        expected[way] = first / (first + second + third) * second / (second + third)
    assert set(seen) <= set(expected)
    assert chisquare([seen[w] for w in expected], [times * p for p in expected.values()]).pvalue > 1e-3


def test_members_of_a_species_are_visited_together() -> None:
    networks = [network(id, "o" * (1 + id % 3), relative_fitness=LITTLE) for id in range(1, 31)]
    before = state([*networks, network(31, fitness=0.9)], average=ALWAYS_MUTATE)
    family = BeadFamily(mutation=nothing)
    visited(before, family)
    homes = [1 + id % 3 for id in mutated(family)]
    assert sum(a != b for a, b in pairwise(homes)) == 2


# --- partners and mating ---


def test_without_speciation_partners_are_drawn_by_relative_fitness_from_the_whole_ecosystem() -> None:
    weights = {1: 0.9, 2: 0.3, 3: 0.5, 4: 0.1}
    networks = [network(id, "o" * id, relative_fitness=w * LITTLE) for id, w in weights.items()]
    before = state(networks, speciation=False, average=NEVER_MUTATE)
    times = 2500

    seen: Counter[tuple[int, int]] = Counter()
    for generation in range(times):
        family = BeadFamily()
        visited(before, family, generation=generation, speciation=False)
        pairs = [(int(c["one"].tag), int(c["other"].tag)) for c in family.called("similarity")]
        seen.update(pairs)
        seen.update((id, id) for id in set(weights) - {one for one, _ in pairs})

    for visitor in weights:
        observed = [seen[visitor, partner] for partner in weights]
        expected = [times * weight / sum(weights.values()) for weight in weights.values()]
        assert sum(observed) == times, "every network is visited once"
        assert chisquare(observed, expected).pvalue > 1e-3


def test_parents_of_a_pair_come_with_exactly_the_probabilities_of_the_rules() -> None:
    f = {1: 0.9, 2: 0.2}
    before = state([network(id, relative_fitness=value) for id, value in f.items()], average=NEVER_MUTATE)
    expected: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for first, second in permutations(f):
        order = f[first] / sum(f.values())
        for a, b in product(f, repeat=2):
            partners = f[a] * f[b] / sum(f.values()) ** 2
            one, two = 0.5 * (f[first] + f[a]), 0.5 * (f[second] + f[b])
            expected[tuple(dict.fromkeys((first, a)))] += order * partners * one
            expected[tuple(dict.fromkeys((second, b)))] += order * partners * (1 - one) * two
            expected[()] += order * partners * (1 - one) * (1 - two)
    assert sum(expected.values()) == pytest.approx(1)
    times = 4000

    seen: Counter[tuple[int, ...]] = Counter()
    for generation in range(times):
        born = visited(before, BeadFamily(), generation=generation).state.networks[2:]
        assert len(born) <= 1
        seen[born[0].parents if born else ()] += 1

    assert set(seen) <= set(expected)
    assert chisquare([seen[p] for p in expected], [times * p for p in expected.values()]).pvalue > 1e-3


@pytest.mark.parametrize("speciation", [True, False])
def test_the_number_of_offspring_has_exactly_the_distribution_of_the_rules(speciation: bool) -> None:
    """Enumerated: all orders, and in each visit the chance to mate given how many were born before."""
    f, similarity = [0.9, 0.4, 0.6, 0.2, 0.8], 1.0 if speciation else 0.6
    expected = [0.0, 0.0, 0.0]
    for way in permutations(range(5)):
        probability, left = 1.0, sum(f)
        for place in way:
            probability *= f[place] / left
            left -= f[place]
        chances = [1.0, 0.0, 0.0]
        for place in way:
            mean = sum(
                f[p] / sum(f) * 0.5 * (f[place] + f[p]) * (1 if p == place else similarity) for p in range(5)
            )
            none, one, two = chances
            chances = [none * (1 - mean), none * mean + one * (1 - mean / 2), two + one * mean / 2]
        expected = [total + probability * chance for total, chance in zip(expected, chances, strict=True)]
    networks = [network(id, relative_fitness=value) for id, value in enumerate(f, 1)]
    before = state(networks, speciation=speciation, average=NEVER_MUTATE)
    times = 4000

    seen = Counter(
        visited(before, BeadFamily(overlap=similarity), generation=g, speciation=speciation).offspring
        for g in range(times)
    )

    assert set(seen) <= {0, 1, 2}, "five networks have at most two offspring"
    assert chisquare([seen[k] for k in range(3)], [times * p for p in expected]).pvalue > 1e-3


@pytest.mark.parametrize(("networks", "most"), [(1, 0), (2, 1), (3, 1), (6, 3), (7, 3)])
def test_there_are_at_most_half_as_many_offspring_as_networks(networks: int, most: int) -> None:
    before = state([network(id, relative_fitness=1.0) for id in range(1, networks + 1)], average=NEVER_MUTATE)
    seen = [visited(before, BeadFamily(), generation=generation).offspring for generation in range(200)]
    assert max(seen) == most


def test_mating_probability_by_hand() -> None:
    assert mating_probability(0.8, 0.4, born=0) == pytest.approx(0.6)
    assert mating_probability(0.8, 0.4, born=2, similarity=0.5) == pytest.approx(0.1)


def test_a_network_that_drew_itself_gives_a_clone_with_a_kernel_resized() -> None:
    before = state(
        [network(1, "o", relative_fitness=1.0, sizes=(4,)), network(2, "oa", relative_fitness=LITTLE)],
        average=NEVER_MUTATE,
    )
    family = BeadFamily()
    result = visited(before, family)
    assert result.offspring == 1
    (child,) = result.state.networks[2:]
    assert (child.id, child.parents, child.birth, child.species) == (3, (1,), GENERATION, 1)
    assert (child.age, child.average, child.fitness, child.relative_fitness) == (0, None, None, None)
    assert child.phenotype.sizes == (5,)
    assert len(family.called("clone")) == 1
    assert family.called("cross") == []


def test_the_resized_kernel_of_a_clone_is_an_event_where_its_family_names_it() -> None:
    class Naming(BeadFamily):
        def cloned(self, phenotype: Beads, rng: Rng) -> Mutation[Beads]:
            return Mutation(self.clone(phenotype, rng), "size", "grow", 0)

    before = state(
        [network(1, "o", relative_fitness=1.0, sizes=(4,)), network(2, "oa", relative_fitness=LITTLE)],
        average=NEVER_MUTATE,
    )
    (child,) = visited(before, Naming()).state.networks[2:]
    assert child.phenotype.sizes == (5,)
    assert child.events == (Event("size", "grow", 0, "applied"),)


def test_children_start_at_age_0_with_an_average_of_their_own_in_their_parents_species() -> None:
    before = state([network(id, "o" * (1 + id % 2), relative_fitness=0.9) for id in range(1, 41)])
    result = visited(before, BeadFamily())
    assert result.offspring > 3
    old = {one.id: one for one in before.networks}
    children = result.state.networks[40:]
    assert [one.id for one in children] == list(range(41, 41 + result.offspring))
    assert result.state.next_network == 41 + result.offspring
    for child in children:
        assert (child.age, child.average, child.fitness, child.birth) == (0, None, None, GENERATION)
        assert {old[parent].species for parent in child.parents} == {child.species}


def test_children_are_neither_visited_nor_partners_in_the_generation_of_their_birth() -> None:
    before = state([network(id, relative_fitness=0.9) for id in range(1, 41)])
    for generation in range(30):
        family = BeadFamily()
        result = visited(before, family, generation=generation)
        children = {id(one.phenotype) for one in result.state.networks[40:]}
        used = [value for _, arguments in family.calls for value in arguments.values()]
        assert not children & {id(value) for value in used}


def test_parents_share_by_relative_fitness_or_in_one_reading_by_a_fixed_ratio() -> None:
    fit, unfit = network(1, fitness=0.9, relative_fitness=0.75), network(2, fitness=0.1, relative_fitness=0.5)
    assert share(fit, unfit, settings().selection) == pytest.approx(0.6)
    assert share(unfit, fit, settings().selection) == pytest.approx(0.4)
    assert share(fit, unfit, settings(parent_shares="fixed").selection) == pytest.approx(0.731)
    assert share(unfit, fit, settings(parent_shares="fixed").selection) == pytest.approx(0.269)


def test_the_published_code_gives_the_fitter_of_two_the_logistic_of_1_and_equals_a_half() -> None:
    own = settings(parent_shares="pair").selection
    fit, unfit = network(1, relative_fitness=0.75), network(2, relative_fitness=0.7)
    assert share(fit, unfit, own) == pytest.approx(expit(1))
    assert share(unfit, fit, own) == pytest.approx(expit(-1))
    assert share(fit, replace(fit, id=3), own) == 0.5


def test_in_the_published_reading_clones_are_exact() -> None:
    before = state([network(1, relative_fitness=1.0)], average=NEVER_MUTATE)
    exact, resized = BeadFamily(), BeadFamily()
    children = [one for one in visited(before, exact, clones="exact").state.networks if one.parents]
    assert [one.phenotype for one in children] in ([], [before.networks[0].phenotype])
    visited(before, resized)
    assert exact.called("clone") == []
    both = [replace(one, relative_fitness=1.0) for one in (network(1), network(2))]
    born = visited(state(both, average=NEVER_MUTATE), BeadFamily(), parents="alone", clones="exact")
    assert born.offspring == 1
    assert born.state.networks[-1].phenotype in [one.phenotype for one in both]


def test_in_the_papers_plain_words_each_is_a_parent_with_chance_f_r_and_may_mutate_as_well() -> None:
    chances = {1: 0.9, 2: 0.5, 3: 0.2, 4: 0.7}
    networks = [network(id, relative_fitness=f_r, fitness=0.1) for id, f_r in chances.items()]
    before = state([*networks, network(5, relative_fitness=0.5, fitness=0.9)], average=ALWAYS_MUTATE)
    times = 1500
    parents: Counter[int] = Counter()
    for generation in range(times):
        family = BeadFamily(mutation=nothing)
        result = visited(before, family, generation=generation, mating="proportional")
        parents.update(one.parents[0] for one in result.state.networks if one.parents)
        assert sorted(mutated(family)) == [1, 2, 3, 4], "also those that mated; not the champion"
    for id, chance in chances.items():
        assert binomtest(parents[id], times, chance).pvalue > 1e-3


def test_crossover_gets_the_share_of_the_first_parent() -> None:
    before = state([network(1, relative_fitness=0.9), network(2, relative_fitness=0.6)], average=NEVER_MUTATE)
    seen = set()
    for generation in range(40):
        family = BeadFamily()
        visited(before, family, generation=generation)
        seen |= {(call["one"].tag, round(call["share"], 6)) for call in family.called("cross")}
    assert seen == {("1", 0.6), ("2", 0.4)}


def test_a_child_past_max_parameters_is_not_born_and_leaves_room_for_others() -> None:
    networks = [network(1, sizes=(9,), relative_fitness=1.0), network(2, sizes=(9,), relative_fitness=1.0)]
    family = BeadFamily()
    result = visited(state(networks, average=ALWAYS_MUTATE), family, max_parameters=8)
    attempts = len(family.called("cross")) + len(family.called("clone"))
    assert (result.offspring, len(result.state.networks)) == (0, 2)
    assert attempts == 2, "neither counts as born, so the second is as likely as the first"
    assert family.called("mutate") == [], "a network that mated does not mutate as well"


def test_a_family_that_lets_a_child_fall_out_of_its_species_is_told_so() -> None:
    class Wrong(BeadFamily):
        def clone(self, phenotype: Beads, rng: Rng) -> Beads:
            return Beads("oops", (1, 1, 1, 1))

    before = state([network(1, relative_fitness=1.0), network(2, "oa", relative_fitness=LITTLE)])
    with pytest.raises(VariationError, match=r"'oops', not that of its species, 'o'; correct"):
        visited(before, Wrong())


# --- mutation in place ---


@pytest.mark.parametrize("speciation", [True, False])
@pytest.mark.parametrize(("deviations", "mean"), [(1.0, 0.4), (-2.0, 0.7), (0.0, 0.5)])
def test_mutation_is_the_likelier_the_lower_the_species_stands_in_its_average(
    speciation: bool, deviations: float, mean: float
) -> None:
    networks = [
        network(1, fitness=0.8, relative_fitness=LITTLE),
        network(2, fitness=0.2, relative_fitness=LITTLE),
    ]
    before = state(networks, speciation=speciation, average=MovingAverage(mean, 0.01))
    times = 2000

    hits = 0
    for generation in range(times):
        family = BeadFamily(mutation=nothing)
        visited(before, family, generation=generation, speciation=speciation)
        assert 1 not in mutated(family)
        hits += len(mutated(family))

    assert binomtest(hits, times, float(1 - expit(deviations))).pvalue > 1e-3


def test_growth_gets_its_probability_from_the_networks_own_average_and_its_complexity() -> None:
    slow = network(
        1,
        fitness=0.3,
        average=MovingAverage(0.2, 0.0025),
        relative_fitness=3 * LITTLE,
        relative_complexity=0.8,
    )
    before = state([slow, network(2, fitness=0.9, relative_fitness=LITTLE)], average=ALWAYS_MUTATE)
    family = BeadFamily(mutation=nothing)
    visited(before, family)
    (call,) = family.called("mutate")
    assert call["grow"] == pytest.approx(1 - float(expit(2.0)) * 0.8)
    assert call["relative_fitness"] == 3 * LITTLE


def test_a_mutated_network_keeps_its_figures_and_its_average_and_ages_like_all() -> None:
    plain = network(1, fitness=0.3, age=5, average=MovingAverage(0.2, 0.1), relative_fitness=LITTLE)
    before = state([plain, network(2, fitness=0.9, relative_fitness=LITTLE)], average=ALWAYS_MUTATE)
    result = visited(before, BeadFamily(mutation=into("oab")))
    changed, champion = result.state.networks
    assert (changed.phenotype.colours, changed.species) == ("oab", 2)
    assert (changed.age, champion.age) == (6, 4)
    for name in ("id", "birth", "parents", "fitness", "relative_fitness", "relative_complexity", "average"):
        assert getattr(changed, name) == getattr(plain, name)
    assert changed.events == (Event("bead", "grow", 2, "applied"),)
    assert (result.mutations, result.refused, result.failed, result.founded, result.extinct) == (
        1,
        0,
        0,
        1,
        0,
    )
    assert (result.state.species[1].founded, result.state.species[1].average) == (GENERATION, None)


def test_a_mutation_that_is_not_possible_is_counted_and_changes_nothing() -> None:
    networks = [network(1, relative_fitness=LITTLE), network(2, fitness=0.9, relative_fitness=LITTLE)]
    before = state(networks, average=ALWAYS_MUTATE)
    result = visited(before, BeadFamily(mutation=nothing))
    assert (result.mutations, result.refused, result.failed) == (0, 0, 1)
    assert result.state.networks[0].phenotype is before.networks[0].phenotype
    assert result.state.networks[0].events == (Event("none", "grow", None, "failed"),)


@pytest.mark.parametrize("speciation", [True, False])
def test_the_ecosystems_champion_is_never_mutated_not_even_alone_in_its_species(speciation: bool) -> None:
    networks = [
        network(1, "o", fitness=0.9, relative_fitness=LITTLE),
        network(2, "oa", relative_fitness=LITTLE),
    ]
    before = state(networks, speciation=speciation, average=ALWAYS_MUTATE)
    family = BeadFamily(mutation=nothing)
    for generation in range(20):
        visited(before, family, generation=generation, speciation=speciation)
    assert mutated(family) == [2] * 20


def test_a_species_champion_is_not_mutated_while_its_species_has_other_members() -> None:
    networks = [
        network(1, "o", fitness=0.9, relative_fitness=LITTLE),
        network(2, "oa", fitness=0.5, relative_fitness=LITTLE),
        network(3, "oa", fitness=0.4, relative_fitness=LITTLE),
    ]
    before = state(networks, average=ALWAYS_MUTATE)
    family = BeadFamily(mutation=nothing)
    for generation in range(20):
        visited(before, family, generation=generation)
    assert mutated(family) == [3] * 20


def test_a_species_champion_may_be_mutated_once_all_others_have_left() -> None:
    networks = [
        network(1, "o", fitness=0.9, relative_fitness=LITTLE),
        network(2, "oa", fitness=0.5, relative_fitness=LITTLE**2),
        network(3, "oa", fitness=0.4, relative_fitness=LITTLE),  # visited first, as good as surely
    ]
    family = BeadFamily(mutation=into("o"))
    result = visited(state(networks, average=ALWAYS_MUTATE), family)
    assert mutated(family) == [3, 2]
    assert [one.key for one in result.state.species] == ["o"]
    assert (result.mutations, result.extinct) == (2, 1)


def test_in_the_published_reading_champions_are_mutated_too() -> None:
    networks = [
        network(id, "o" * (1 + id % 2), fitness=id / 10, relative_fitness=LITTLE) for id in range(1, 5)
    ]
    family = BeadFamily(mutation=nothing)
    visited(state(networks, average=ALWAYS_MUTATE), family, champions="mutated")
    assert sorted(mutated(family)) == [1, 2, 3, 4]


def test_champions_are_fixed_before_anyone_moves() -> None:
    """Network 2 arrives in the species of network 3, and is fitter; network 3 stays spared all the same."""
    networks = [
        network(1, "o", fitness=0.9, relative_fitness=LITTLE),
        network(2, "o", fitness=0.8, relative_fitness=LITTLE),
        network(3, "oa", fitness=0.5, relative_fitness=LITTLE),
        network(4, "oa", fitness=0.4, relative_fitness=LITTLE),
    ]
    before = state(networks, average=ALWAYS_MUTATE)
    for generation in range(30):
        family = BeadFamily(mutation=into("oa"))
        visited(before, family, generation=generation)
        assert sorted(mutated(family)) == [2, 4]


def test_a_network_that_moved_is_not_visited_again_and_is_no_partner_anywhere() -> None:
    networks = [
        network(id, "o" * (1 + id % 2), relative_fitness=0.3, fitness=id / 100) for id in range(1, 31)
    ]
    before = state(networks, average=ALWAYS_MUTATE)
    matings = 0
    for generation in range(30):
        family = BeadFamily(
            mutation=lambda beads, rng: into("oo" if beads.colours == "o" else "o")(beads, rng)
        )
        result = visited(before, family, generation=generation)
        matings += result.offspring
        assert max(Counter(mutated(family)).values()) == 1
        used = [call[name].tag for call in family.called("cross") for name in ("one", "other")]
        used += [call["phenotype"].tag for call in family.called("clone")]
        assert not [tag for tag in used if "changed" in tag]
    assert matings > 50


def test_a_network_mutated_within_its_species_is_a_partner_as_it_is_now() -> None:
    networks = [network(id, relative_fitness=0.3, fitness=id / 100) for id in range(1, 31)]
    before = state(networks, average=ALWAYS_MUTATE)
    partners = set()
    for generation in range(10):
        family = BeadFamily(mutation=into("o"))
        visited(before, family, generation=generation)
        assert max(Counter(mutated(family)).values()) == 1
        partners |= {call["other"].tag for call in family.called("cross")}
    assert any("changed" in tag for tag in partners)
    assert any("changed" not in tag for tag in partners)


# --- the species limit ---


def three_networks() -> EcosystemState:
    networks = [
        network(1, "o", fitness=0.9, relative_fitness=LITTLE),
        network(2, "o", fitness=0.5, relative_fitness=LITTLE),
        network(3, "oa", fitness=0.4, relative_fitness=LITTLE),
    ]
    return state(networks, average=ALWAYS_MUTATE)


def changing(only: int, colours: str) -> Callable[[Beads, Rng], Mutation[Beads]]:
    def mutation(phenotype: Beads, rng: Rng) -> Mutation[Beads]:
        return into(colours)(phenotype, rng) if phenotype.tag == str(only) else nothing(phenotype, rng)

    return mutation


def test_at_the_limit_a_mutation_that_would_found_a_species_is_refused_and_rolled_back_whole() -> None:
    before = three_networks()
    result = visited(before, BeadFamily(mutation=changing(2, "ob")), max_species=2)
    after = by_id(result)[2]
    assert after.phenotype is before.networks[1].phenotype
    assert after.species == 1
    assert after.events == (Event("bead", "grow", 2, "refused"),)
    assert (result.mutations, result.refused, result.failed) == (0, 1, 1)
    assert (result.founded, result.extinct, result.state.next_species) == (0, 0, 3)


def test_below_the_limit_it_founds_one() -> None:
    result = visited(three_networks(), BeadFamily(mutation=changing(2, "ob")), max_species=3)
    assert by_id(result)[2].species == 3
    assert (result.mutations, result.refused, result.founded) == (1, 0, 1)


def test_at_the_limit_moving_to_an_existing_species_is_allowed() -> None:
    result = visited(three_networks(), BeadFamily(mutation=changing(2, "oa")), max_species=2)
    assert by_id(result)[2].species == 2
    assert (result.mutations, result.refused, result.founded, result.extinct) == (1, 0, 0, 0)


def test_at_the_limit_a_species_only_member_may_leave_and_found_another() -> None:
    result = visited(three_networks(), BeadFamily(mutation=changing(3, "ob")), max_species=2)
    assert by_id(result)[3].species == 3
    assert [(one.id, one.key) for one in result.state.species] == [(1, "o"), (3, "ob")]
    assert (result.mutations, result.refused, result.founded, result.extinct) == (1, 0, 1, 1)


def test_a_mutation_past_max_parameters_is_refused() -> None:
    result = visited(three_networks(), BeadFamily(mutation=changing(2, "oa")), max_parameters=1)
    assert by_id(result)[2].species == 1
    assert by_id(result)[2].events[0].outcome == "refused"
    assert (result.mutations, result.refused) == (0, 1)
    exactly = visited(three_networks(), BeadFamily(mutation=changing(2, "oa")), max_parameters=2)
    assert (exactly.mutations, exactly.refused) == (1, 0)


# --- the failed ---


@pytest.mark.parametrize("speciation", [True, False])
def test_the_failed_are_neither_visited_nor_partners_nor_champions(speciation: bool) -> None:
    failed = [
        replace(network(id), fitness=None, relative_fitness=None, relative_complexity=None, failed="too long")
        for id in (1, 2)
    ]
    healthy = [network(id, relative_fitness=0.4, fitness=id / 10) for id in (3, 4, 5)]
    before = state([*failed, *healthy], speciation=speciation)
    for generation in range(50):
        family = BeadFamily()
        result = visited(before, family, generation=generation, speciation=speciation)
        tags = {value.tag for _, call in family.calls for value in call.values() if isinstance(value, Beads)}
        assert not tags & {"1", "2"}
        after = by_id(result)
        assert [after[id].phenotype for id in (1, 2)] == [one.phenotype for one in failed]
        assert all(not {1, 2} & set(one.parents) for one in result.state.networks)
        assert after[1].age == 4


# --- what controls take away ---


def first_pairs(times: int, **changes: Any) -> Counter[tuple[int, ...]]:
    """Who the parents of the only child are, if there is one, of two networks as unequal as can be."""
    before = state(
        [network(1, relative_fitness=0.99), network(2, relative_fitness=0.01)], average=NEVER_MUTATE
    )
    seen: Counter[tuple[int, ...]] = Counter()
    for generation in range(times):
        result = visited(before, BeadFamily(), generation=generation, **changes)
        born = [one.parents for one in result.state.networks if one.birth == generation and one.id > 2]
        seen[born[0] if born else ()] += 1
    return seen


def test_parents_drawn_evenly_mate_without_regard_to_fitness() -> None:
    times = 4000
    # Whoever comes first mates with probability ½, then the other one; each has either as its partner.
    expected = {(): 0.25, (1,): 3 / 16, (2,): 3 / 16, (1, 2): 3 / 16, (2, 1): 3 / 16}
    even, by_fitness = first_pairs(times, parents="even"), first_pairs(times)
    figures = [times * part for part in expected.values()]
    assert chisquare([even[way] for way in expected], figures).pvalue > 1e-3
    assert chisquare([by_fitness[way] for way in expected], figures).pvalue < 1e-9


def test_species_come_in_any_order_alike_where_parents_are_drawn_evenly() -> None:
    networks = []
    for species, mean in {1: 0.1, 2: 0.5, 3: 0.9}.items():
        colours = "o" * species
        networks.append(network(species, colours, fitness=mean - 0.05, relative_fitness=LITTLE))
        networks.append(network(10 + species, colours, fitness=mean + 0.05, relative_fitness=LITTLE))
    before = state(networks, average=ALWAYS_MUTATE)
    seen: Counter[tuple[int, ...]] = Counter()
    for generation in range(3000):
        family = BeadFamily(mutation=nothing)
        visited(before, family, generation=generation, parents="even")
        seen[tuple(id for id in mutated(family) if id < 10)] += 1
    # Now and then a child is born instead of a mutation; the others tell the order.
    whole = [seen[way] for way in permutations((1, 2, 3))]
    assert sum(whole) > 500
    assert chisquare(whole).pvalue > 1e-3


def test_parents_that_stay_alone_have_clones_only() -> None:
    networks = [network(id, "ob", relative_fitness=0.5, fitness=id / 100) for id in range(1, 41)]
    for speciation in (True, False):
        before = state(networks, average=NEVER_MUTATE, speciation=speciation)
        family = BeadFamily()
        born = []
        for generation in range(20):
            result = visited(before, family, generation=generation, parents="alone", speciation=speciation)
            born += [one for one in result.state.networks if one.id > 40]
        assert len(born) > 20
        assert all(len(one.parents) == 1 for one in born)
        assert not family.called("cross")
        assert len(family.called("clone")) == len(born)


def test_shares_are_even_where_asked_for() -> None:
    one, other = network(1, relative_fitness=0.9, fitness=0.9), network(2, relative_fitness=0.1, fitness=0.1)
    assert share(one, other, settings(parent_shares="even").selection) == 0.5
    assert share(other, one, settings(parent_shares="even").selection) == 0.5


def test_without_evolution_all_grow_older_and_nothing_else_happens() -> None:
    before = state([network(id, "o" * (1 + id % 3)) for id in range(1, 20)], average=ALWAYS_MUTATE)
    family = BeadFamily()
    result = visited(before, family, evolve=False)
    assert not family.calls
    assert (result.offspring, result.mutations, result.refused, result.failed) == (0, 0, 0, 0)
    assert [one.age for one in result.state.networks] == [one.age + 1 for one in before.networks]
    assert [one.phenotype for one in result.state.networks] == [one.phenotype for one in before.networks]
    assert result.state.species == before.species


# --- the draws of a visit ---


def test_a_visit_draws_the_partner_then_mating_then_mutation_from_one_generator() -> None:
    """The order of the draws is part of what a seed means: another order gives other runs."""
    weights = {id: 0.1 * id for id in range(1, 9)}
    members = [network(id, fitness=0.1 * id, relative_fitness=w) for id, w in weights.items()]
    before = state(members, average=MovingAverage(0.45))
    seen: Counter[str] = Counter()
    for generation in range(200):
        family = BeadFamily(mutation=nothing)
        visited(before, family, generation=generation)
        happened = [
            (name, *(call[who].tag for who in ("one", "other", "phenotype") if who in call))
            for name, call in family.calls
            if name in ("cross", "clone", "mutate")
        ]
        assert happened == _foretold(weights, generation)
        seen.update(name for name, *_ in happened)
    assert min(seen[name] for name in ("cross", "clone", "mutate")) > 20


def _foretold(weights: dict[int, float], generation: int) -> list[tuple[str, ...]]:
    """What one species does that is mutated with probability 1/2, and whose fittest network is spared."""
    seed = settings().evolution.seed
    order = generator(seed, "visiting order", generation=generation, network=1)
    urn, ids, born = draws.Urn(weights), list(weights), 0
    happens: list[tuple[str, ...]] = []
    for id in (ids[place] for place in draws.order(list(weights.values()), order)):
        rng = generator(seed, "visit", generation=generation, network=id)
        partner = urn.draw(rng)
        mating, mutation = rng.random(), rng.random()
        chance = mating_probability(weights[id], weights[partner], born=born)
        if born < len(ids) // 2 and mating < chance:
            happens.append(("clone", str(id)) if partner == id else ("cross", str(id), str(partner)))
            born += 1
        elif mutation < 0.5 and id != max(ids):
            happens.append(("mutate", str(id)))
    return happens
