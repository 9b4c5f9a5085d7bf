"""Species without a limit: nothing is refused, and those that improve least lose their places."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import zscore

from epicortex.ecosystem.improvement import ImprovementCulling, improvements
from epicortex.ecosystem.state import EcosystemState, Individual, MovingAverage
from epicortex.ecosystem.strategies import Culled, Strategies
from tests.ecosystem import world
from tests.ecosystem.world import BeadFamily, network, settings, state


def cull(before: EcosystemState, most: int, seed: int = 1, **changes: object) -> Culled:
    own = settings(max_networks=most, initial_species=1, culling="improvement", **changes)
    rng = np.random.default_rng(seed)
    return ImprovementCulling(own).cull(before, generation=8, family=BeadFamily(), rng=rng)


def with_averages(before: EcosystemState, *means: float) -> EcosystemState:
    """Each species with a moving average below (it improves) or above (it gets worse) its fitness, 0.5."""
    averages = [MovingAverage(mean, 0.01) for mean in means]
    species = (replace(one, average=own) for one, own in zip(before.species, averages, strict=True))
    return replace(before, species=tuple(species))


def ecosystem(members: int) -> list[Individual]:
    return [
        network(10 * place + number, colours, age=3)
        for place, colours in enumerate(("o", "oa", "ob"))
        for number in range(1, members + 1)
    ]


def test_how_species_improve_is_their_standing_made_relative() -> None:
    before = with_averages(state(ecosystem(2)), 0.3, 0.5, 0.6)
    standings = [(0.5 - mean) / 0.1 for mean in (0.3, 0.5, 0.6)]
    assert list(improvements(before).values()) == pytest.approx(list(expit(zscore(standings))))


def test_species_that_improve_least_lose_places_in_proportion() -> None:
    before = with_averages(state(ecosystem(10)), 0.3, 0.5, 0.6)
    own = improvements(before)
    lost: Counter[int] = Counter()
    times = 1500
    for seed in range(times):
        left = {one.id for one in cull(before, 29, seed).state.networks}
        lost.update(one.species for one in before.networks if one.id not in left)
    assert lost.total() == times
    # Of the species that improves one is safe: the champion, of equals the lowest id.
    weights = {species: (9 if own[species] >= 0.5 else 10) / own[species] for species in own}
    for species, weight in weights.items():
        assert lost[species] / times == pytest.approx(weight / sum(weights.values()), abs=0.05)


def test_a_species_that_does_not_improve_may_die_out_but_the_best_network_never_goes() -> None:
    networks = [network(1, "o", fitness=0.9, age=50), network(2, "oa", fitness=0.5), network(3, "ob")]
    before = with_averages(state(networks), 1.5, 1.5, 0.3)
    for seed in range(20):
        done = cull(before, 2, seed)
        assert [one.id for one in done.state.networks] == [1, 3]
        assert (done.culled, done.extinct) == (1, 1)


def test_a_species_just_founded_is_safe_until_it_was_trained() -> None:
    before = with_averages(state(ecosystem(4)), 0.3, 0.3, 0.9)
    newest = replace(before.species[2], founded=8, average=None)
    before = replace(before, species=(*before.species[:2], newest))
    for seed in range(20):
        left = cull(before, 6, seed).state.networks
        assert sum(one.species == newest.id for one in left) == 4


def test_without_a_limit_no_mutation_is_refused_however_many_species_there_are() -> None:
    own = settings(max_networks=8, max_species=1, refused="nothing")
    register = world.register(state([network(id) for id in range(1, 7)]), generation=8, settings=own)
    founded = [register.move(1, "o" + "ab" * number) for number in range(1, 6)]
    assert len(set(founded)) == 5
    assert None not in founded


def test_without_species_it_is_the_papers_rule() -> None:
    networks = [network(id, "o" * id, age=id, fitness=id / 20) for id in range(1, 11)]
    before = state(networks, speciation=False)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        own = settings(max_networks=6, speciation=False)
        paper = Strategies.from_config(own).culling.cull(before, generation=8, family=BeadFamily(), rng=rng)
        left = cull(before, 6, seed, speciation=False).state.networks
        assert [one.id for one in left] == [one.id for one in paper.state.networks]
