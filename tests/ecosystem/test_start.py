"""The founders."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.ecosystem.start import TRIES, shares
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import ConfigError
from tests.beads import Beads
from tests.ecosystem.world import BeadFamily, fingerprint, settings, start


def founded(
    family: BeadFamily | None = None, *, ancestor: Beads | None = None, **changes: object
) -> EcosystemState:
    return start(settings(**changes), family or BeadFamily(), ancestor=ancestor)


def test_networks_are_spread_evenly_and_the_first_species_get_the_remainder() -> None:
    state = founded(initial_networks=19, initial_species=4)
    assert Counter(one.species for one in state.networks) == {1: 5, 2: 5, 3: 5, 4: 4}
    assert [one.species for one in state.networks] == sorted(one.species for one in state.networks)


@given(st.integers(1, 200), st.integers(1, 50))
def test_shares_differ_by_at_most_one(networks: int, species: int) -> None:
    counts = shares(networks, species)
    assert (len(counts), sum(counts)) == (species, networks)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1


def test_ids_count_from_1_and_nothing_is_evaluated_yet() -> None:
    state = founded(initial_networks=6, initial_species=3)
    assert [one.id for one in state.networks] == [1, 2, 3, 4, 5, 6]
    assert [one.id for one in state.species] == [1, 2, 3]
    assert (state.generation, state.next_network, state.next_species) == (0, 7, 4)
    for one in state.networks:
        assert (one.birth, one.parents, one.age, one.fitness, one.average) == (0, (), 0, None, None)
    assert all((one.founded, one.average) == (0, None) for one in state.species)
    assert (state.champion, state.tally) == (None, None)


def test_the_first_species_is_minimal_and_all_keys_differ() -> None:
    state = founded(initial_networks=16, initial_species=8)
    assert state.species[0].key == "o"
    assert len({one.key for one in state.species}) == 8
    keys = {one.id: one.key for one in state.species}
    assert all(one.phenotype.colours == keys[one.species] for one in state.networks)


def test_each_further_species_grows_from_the_minimal_network_until_its_key_is_new() -> None:
    family = BeadFamily()
    state = founded(family, initial_networks=8, initial_species=8)
    keys = [one.key for one in state.species]
    known: set[str] = set()
    walks: list[list[str]] = []
    for name, arguments in family.calls:
        if name == "minimal":
            walks.append([])
        elif name == "grow":
            walks[-1].append(arguments["phenotype"].colours)
    assert len(walks) == 8, "a start from the minimal network for each species"
    for key, walk in zip(keys, walks, strict=True):
        assert all(seen in known for seen in walk), "it stopped growing as soon as the key was new"
        assert walk[:1] == (["o"] if known else [])
        known.add(key)


def test_in_the_published_reading_each_species_grows_from_the_one_before() -> None:
    family = BeadFamily()
    state = founded(family, initial_networks=8, initial_species=8, grown_from="previous")
    keys = [one.key for one in state.species]
    assert all(key.startswith(before) and key != before for before, key in pairwise(keys))
    grown = [call["phenotype"].colours for call in family.called("grow")]
    assert list(dict.fromkeys(grown)) == keys[:-1], "until its key is new"
    assert len(family.called("minimal")) == 1


def test_each_member_draws_its_own_shapes_and_weights() -> None:
    family = BeadFamily()
    state = founded(family, initial_networks=24, initial_species=3)
    assert len(family.called("redraw")) == 23
    assert len({one.phenotype.sizes for one in state.networks if one.species == 3}) > 4


def test_too_many_species_is_an_error_that_names_the_setting() -> None:
    family = BeadFamily(colours="")
    with pytest.raises(ConfigError, match=r"initial_species = 2.*lower initial_species"):
        founded(family, initial_networks=4, initial_species=2)
    assert len(family.called("grow")) == TRIES == 1000


def test_without_speciation_every_network_is_minimal_with_one_growing_mutation() -> None:
    family = BeadFamily()
    state = founded(family, initial_networks=40, speciation=False)
    grown = family.called("grow")
    assert len(grown) == 40
    assert all(one["phenotype"].colours == "o" for one in grown)
    assert {one.phenotype.colours for one in state.networks} == {"o", "oa", "ob"}
    assert state.species == ()
    assert {one.species for one in state.networks} == {0}
    assert (state.next_network, state.next_species) == (41, 1)


@pytest.mark.parametrize("speciation", [True, False])
def test_an_ancestor_becomes_network_1_as_it_is(speciation: bool) -> None:
    ancestor = Beads("oab", (7, 7, 7))
    state = founded(ancestor=ancestor, initial_networks=6, initial_species=2, speciation=speciation)
    assert state.networks[0].phenotype is ancestor
    if speciation:
        assert state.species[0].key == "oab"
        assert {one.phenotype.colours for one in state.networks if one.species == 1} == {"oab"}
        assert all(one.phenotype.sizes != (7, 7, 7) for one in state.networks[1:])


def test_founders_past_max_parameters_are_not_let_in() -> None:
    for speciation in (True, False):
        state = founded(initial_networks=30, initial_species=3, max_parameters=6, speciation=speciation)
        assert all(sum(one.phenotype.sizes) <= 6 for one in state.networks)


def test_an_ancestor_past_max_parameters_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(ConfigError, match=r"max_parameters = 20.*has 21 parameters; raise max_parameters"):
        founded(ancestor=Beads("oab", (7, 7, 7)), max_parameters=20)


def test_members_that_are_all_too_large_are_an_error_that_names_the_setting() -> None:
    with pytest.raises(ConfigError, match="raise max_parameters"):
        founded(ancestor=Beads("o" * 12, (1,) * 12), initial_networks=2, max_parameters=12)


def test_the_start_follows_from_the_seed() -> None:
    one, same, other = (founded(initial_networks=20, initial_species=4, seed=seed) for seed in (1, 1, 2))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


def test_a_network_draws_the_same_whoever_else_is_there() -> None:
    few, many = founded(initial_networks=3), founded(initial_networks=30)
    assert [one.phenotype.sizes for one in few.networks] == [one.phenotype.sizes for one in many.networks[:3]]
    assert np.unique([one.phenotype.sizes for one in many.networks]).size > 3


def test_founders_that_are_alike_share_a_structure_and_draw_their_own_weights() -> None:
    family = BeadFamily()
    state = founded(family, founders="alike", initial_networks=30, initial_species=4)
    assert not family.called("grow")
    assert not family.called("redraw")
    assert [one.id for one in state.networks] == list(range(1, 31))
    assert [one.key for one in state.species] == ["o"]
    assert {one.species for one in state.networks} == {1}
    assert len({one.phenotype.sizes for one in state.networks}) > 1
    without = founded(founders="alike", initial_networks=5, speciation=False)
    assert (without.species, {one.species for one in without.networks}) == ((), {0})
