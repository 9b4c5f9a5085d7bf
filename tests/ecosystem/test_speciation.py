"""The register of species against a model that recounts everything from scratch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.ecosystem import world
from tests.ecosystem.world import network, settings, state

KEYS = ["o", "oa", "ob", "oab", "oba", "obb"]


@given(
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from(["move", "birth"]), st.integers(0), st.sampled_from(KEYS))),
    st.integers(0, 2),
)
def test_moves_and_refusals_equal_a_recount_from_scratch(
    keys: list[str], events: list[tuple[str, int, str]], room: int
) -> None:
    """The model knows only each network's key: a move is refused when too many keys would be left."""
    limit = len(set(keys)) + room
    start = state([network(id, key) for id, key in enumerate(keys, 1)])
    register = world.register(start, generation=8, settings=settings(max_networks=1000, max_species=limit))
    homes = [one.species for one in start.networks]
    founded = extinct = 0

    for kind, number, key in events:
        place = number % len(keys)
        if kind == "birth":
            register.birth(homes[place], keys[place])
            keys, homes = [*keys, keys[place]], [*homes, homes[place]]
            continue
        after = [*keys[:place], key, *keys[place + 1 :]]
        allowed = len(set(after)) <= limit or key in keys
        species = register.move(homes[place], key)
        assert (species is not None) == allowed
        if species is None:
            continue
        founded += key not in keys
        extinct += keys[place] not in after
        if key in keys:
            assert species == homes[keys.index(key)]
        else:
            assert species not in homes
        keys, homes = after, [*homes[:place], species, *homes[place + 1 :]]

    assert {one.key: one.id for one in register.species} == dict(zip(keys, homes, strict=True))
    assert [one.id for one in register.species] == sorted(set(homes))
    assert all(register.members(home) == homes.count(home) for home in homes)
    assert (register.founded, register.extinct) == (founded, extinct)
    assert register.next_species == len(start.species) + 1 + founded
    assert len(register.species) <= limit


def test_the_limit_in_force_is_at_most_half_of_the_networks() -> None:
    start = state([network(1, "o"), network(2, "oa"), network(3, "o")])
    refused = world.register(start, generation=1, settings=settings(max_networks=5, max_species=4))
    assert refused.move(1, "ob") is None
    allowed = world.register(start, generation=1, settings=settings(max_networks=6, max_species=4))
    assert allowed.move(1, "ob") == 3


def test_in_the_published_reading_nobody_moves_at_the_limit_but_who_is_alone_in_a_species() -> None:
    start = state([network(1, "o"), network(2, "o"), network(3, "oa"), network(4, "ob")])
    own = settings(max_networks=100, max_species=3)
    assert world.register(start, generation=1, settings=own).move(1, "oa") == 2
    strict = settings(max_networks=100, max_species=3, refused="structural")
    register = world.register(start, generation=1, settings=strict)
    assert register.move(1, "o") == 1, "a resized kernel changes no key"
    assert register.move(1, "oa") is None
    assert register.move(1, "oab") is None
    assert register.move(2, "oab") == 4, "alone in its species, which dies out"
    assert register.move(3, "o") == 1
    assert register.move(1, "oab") == 4, "below the limit all is allowed"


def test_a_species_notes_when_it_was_founded_and_starts_its_own_average() -> None:
    register = world.register(state([network(1), network(2)]), generation=8, settings=settings())
    register.move(1, "oa")
    assert register.species[1].founded == 8
    assert register.species[1].average is None


def test_a_key_that_died_out_comes_back_as_a_new_species() -> None:
    register = world.register(state([network(1, "o")]), generation=8, settings=settings())
    assert register.move(1, "oa") == 2
    assert register.move(2, "o") == 3
    assert [one.id for one in register.species] == [3]
    assert (register.founded, register.extinct) == (2, 2)


def test_without_speciation_nobody_moves() -> None:
    start = state([network(1, "o"), network(2, "oa")], speciation=False)
    register = world.register(start, generation=8, settings=settings(speciation=False))
    assert register.move(0, "something new") == 0
    assert (register.species, register.founded, register.extinct) == ((), 0, 0)
