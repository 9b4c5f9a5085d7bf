"""Hypothesis strategies for states and outcomes, and one small fixed state."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from epicortex.ecosystem.jobs import Outcome
from epicortex.ecosystem.state import EcosystemState, Event, Individual, MovingAverage, Species, Tally
from epicortex.errors import StorageError
from epicortex.families.family import Array, Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from tests.strategies import families, members

T = TypeVar("T")

#: Set for the long version of the tests that damage files.
THOROUGH = bool(os.environ.get("EPICORTEX_THOROUGH"))

finite = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.none() | finite
counts = st.integers(0, 2**40)
texts = st.text(max_size=20)
measures = st.dictionaries(texts, finite, max_size=2)
averages = st.none() | st.builds(MovingAverage, finite, finite)
events = st.builds(
    Event,
    texts,
    st.sampled_from(["grow", "shrink"]),
    st.none() | counts,
    st.sampled_from(["applied", "refused", "failed"]),
)
tallies = st.builds(
    Tally,
    **dict.fromkeys(("generation", "networks", "species", "offspring", "mutations"), counts),
    **dict.fromkeys(("mutations_refused", "mutations_failed", "species_founded"), counts),
    **dict.fromkeys(("species_extinct", "culled", "failed"), counts),
    **dict.fromkeys(("highest_fitness", "average_fitness", "offspring_fitness"), maybe),
    champion=st.none() | counts,
    champion_parameters=st.none() | counts,
    mean_parameters=maybe,
    warnings=st.lists(texts, max_size=2).map(tuple),
)


def of_a_family(
    kind: Callable[[LayeredFamily], st.SearchStrategy[T]],
) -> st.SearchStrategy[tuple[LayeredFamily, T]]:
    """A family, and what is made for it: all networks of a state are of one family."""
    return families().flatmap(lambda family: st.tuples(st.just(family), kind(family)))


@st.composite
def losses(draw: st.DrawFn) -> Array | None:
    numbers = draw(st.none() | st.lists(st.floats(width=32), max_size=4))
    return None if numbers is None else np.array(numbers, np.float32)


@st.composite
def individuals(draw: st.DrawFn, family: LayeredFamily, id: int, species: int) -> Individual:
    return Individual(
        id=id,
        phenotype=draw(members(family)),
        parents=tuple(draw(st.lists(counts, max_size=2))),
        birth=draw(counts),
        species=species,
        age=draw(counts),
        average=draw(averages),
        fitness=draw(maybe),
        fitness_before=draw(maybe),
        relative_fitness=draw(maybe),
        relative_complexity=draw(maybe),
        measures=draw(measures),
        losses=draw(losses()),
        failed=draw(st.none() | texts),
        events=tuple(draw(st.lists(events, max_size=2))),
    )


@st.composite
def states(draw: st.DrawFn, family: LayeredFamily) -> EcosystemState:
    ids = sorted(draw(st.sets(st.integers(1, 10**6), max_size=3)))
    kinds = sorted(draw(st.sets(st.integers(1, 1000), max_size=2)))
    networks = [draw(individuals(family, id, draw(st.sampled_from(kinds or [0])))) for id in ids]
    return EcosystemState(
        generation=draw(st.integers(0, 10**6)),
        networks=tuple(networks),
        species=tuple(Species(id, draw(texts), draw(counts), draw(averages)) for id in kinds),
        next_network=10**6 + 1,
        next_species=1001,
        champion=draw(st.none() | individuals(family, 7, 3)),
        champion_generation=draw(counts),
        average=draw(averages),
        tally=draw(st.none() | tallies),
    )


@st.composite
def outcomes(draw: st.DrawFn, family: LayeredFamily, generation: int = 3) -> Outcome:
    network = draw(st.integers(1, 10**6))
    if draw(st.booleans()):
        return Outcome(network, generation, failed=draw(texts))
    return Outcome(
        network,
        generation,
        phenotype=draw(members(family)),
        fitness=draw(finite),
        fitness_before=draw(maybe),
        measures=draw(measures),
        losses=draw(losses()),
        samples=draw(counts),
        train_seconds=draw(finite),
        score_seconds=draw(finite),
    )


#: The family of `small_state` and `small_phenotype`.
SMALL_FAMILY = LayeredFamily(Problem((1, 4, 4), 2))


def small_phenotype(seed: int = 1) -> Phenotype:
    genome = Genome((1, 4, 4), (ConvLayer(((1, 1),), (2, 2)), FullLayer(2)), 2)
    return draw_phenotype(genome, rng=np.random.default_rng(seed))


def small_state(generation: int = 1) -> EcosystemState:
    """Two networks, a few hundred bytes."""
    networks = tuple(
        Individual(
            id=id,
            phenotype=small_phenotype(id),
            parents=(),
            birth=0,
            species=1,
            fitness=0.1 * id + generation,
        )
        for id in (1, 2)
    )
    return EcosystemState(generation, networks, (Species(1, "key", 0),), 3, 2, networks[1], generation)


def offsets(length: int) -> range:
    """Places in a file of this length: all of them in the long version, else enough to meet every kind."""
    return range(0, length, 1 if THOROUGH else 11)


def refusal(action: Callable[[], object]) -> str | None:
    """What a `StorageError` said, or None if there was none; any other exception is a bug."""
    try:
        action()
    except StorageError as error:
        return str(error)
    return None


def identity(value: Any) -> Any:
    """All that a state or an outcome holds, in a form that compares bit for bit."""
    if isinstance(value, Phenotype):
        return value.genome, [identity(dict(layer)) for layer in value.weights]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return [(name, identity(item)) for name, item in value.items()]
    if isinstance(value, tuple | list):
        return [identity(item) for item in value]
    if isinstance(value, float):
        return value.hex()
    if hasattr(value, "__dataclass_fields__"):
        return {name: identity(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
