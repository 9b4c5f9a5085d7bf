"""Every promise of a generation, checked on what went in and what came out.

Only the state between evolution and culling, which nobody outside sees, is taken from the rules themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from epicortex.config import Config
from epicortex.ecosystem.state import EcosystemState, Individual, Tally
from epicortex.evolution import Step
from epicortex.families.family import Family
from tests.ecosystem.world import reproduce


@dataclass(slots=True)
class Witness:
    """Follows a run from its start and remembers whom it has seen."""

    family: Family[Any]
    config: Config
    start: EcosystemState
    ids: set[int] = field(default_factory=set)
    species: set[int] = field(default_factory=set)
    highest: float = -math.inf
    totals: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.ids = {one.id for one in self.start.networks}
        self.species = {one.id for one in self.start.species}
        self.check_structure(self.start)

    def check(self, before: EcosystemState, step: Step) -> None:
        """All invariants after one generation."""
        evaluated, after = step.evaluated, step.state
        tally = after.tally
        assert tally is not None
        assert after.generation == evaluated.generation == tally.generation == before.generation + 1
        self.check_structure(after)
        self.check_evaluated(before, evaluated, tally)
        children = self.check_births(evaluated, after, tally)
        self.check_survivors(evaluated, after)
        self.check_champions(evaluated, after, tally)
        self.check_limits(evaluated, after, tally)
        self.check_counts(before, evaluated, after, tally)
        self.ids |= children
        self.species |= {one.id for one in after.species}
        for name in ("offspring", "mutations", "mutations_refused", "mutations_failed", "culled", "failed",
                     "species_founded", "species_extinct"):  # fmt: skip
            self.totals[name] += getattr(tally, name)
        self.totals["warnings"] += len(tally.warnings)

    def check_structure(self, state: EcosystemState) -> None:
        """Ids, species and keys fit together."""
        ids = [one.id for one in state.networks]
        assert ids == sorted(set(ids)), "ids are unique and in order"
        assert max(ids) < state.next_network
        species = [one.id for one in state.species]
        assert species == sorted(set(species)), "species are unique and in order"
        assert len({one.key for one in state.species}) == len(species), "no two species have one key"
        assert not species or max(species) < state.next_species
        if self.config.evolution.has_species:
            keys = {one.id: one.key for one in state.species}
            for one in state.networks:
                assert self.family.key(one.phenotype) == keys[one.species], (
                    "a network is of its key's species"
                )
            assert {one.species for one in state.networks} == set(species), "no species is empty"
            limits = self.config.evolution
            assert len(species) <= min(limits.max_species, limits.max_networks / 2)
        else:
            assert species == []
            assert {one.species for one in state.networks} == {0}

    def check_evaluated(self, before: EcosystemState, evaluated: EcosystemState, tally: Tally) -> None:
        """Nobody came, went, aged or moved before evolution; events are those since the last line."""
        assert [one.id for one in evaluated.networks] == [one.id for one in before.networks]
        for old, new in zip(before.networks, evaluated.networks, strict=True):
            for name in ("parents", "birth", "species", "age", "events"):
                assert getattr(new, name) == getattr(old, name)
            figures = (new.fitness, new.relative_fitness, new.relative_complexity)
            assert all((figure is None) == (new.failed is not None) for figure in figures)
        fit = [one for one in evaluated.networks if one.failed is None]
        scores = [one.fitness or 0.0 for one in fit]
        assert tally.highest_fitness == max(scores)
        assert tally.average_fitness is not None
        assert math.isclose(tally.average_fitness, sum(scores) / len(scores))
        newborn = [one for one in fit if one.birth == before.generation > 0]
        if newborn:
            assert tally.offspring_fitness is not None
            mean = sum(one.fitness_before or 0.0 for one in newborn) / len(newborn)
            assert math.isclose(tally.offspring_fitness, mean)
        else:
            assert tally.offspring_fitness is None

    def check_births(self, evaluated: EcosystemState, after: EcosystemState, tally: Tally) -> set[int]:
        """Newborns live, have new ids, and known parents, of their own species, who did not fail."""
        old = {one.id: one for one in evaluated.networks}
        children = [one for one in after.networks if one.birth == after.generation]
        assert len(children) == tally.offspring <= len(old) / 2, "every newborn lives"
        for child in children:
            assert child.id not in self.ids, "no id is given twice"
            assert (child.age, child.fitness, child.average) == (0, None, None)
            assert len(child.parents) in {1, 2}
            assert len(child.events) <= (len(child.parents) == 1), "only a clone is changed at birth"
            assert len(set(child.parents)) == len(child.parents)
            parents = [old[parent] for parent in child.parents]
            assert all(parent.failed is None for parent in parents)
            if self.config.evolution.has_species:
                assert {parent.species for parent in parents} == {child.species}
        assert {one.id for one in after.networks} <= set(old) | {one.id for one in children}
        assert all(set(one.parents) <= self.ids for one in after.networks), "every parent is known"
        return {one.id for one in children}

    def check_survivors(self, evaluated: EcosystemState, after: EcosystemState) -> None:
        """Who lives on is a generation older, has its figures still, and at most one event."""
        old = {one.id: one for one in evaluated.networks}
        for one in after.networks:
            assert one.failed is None, "the failed are gone"
            if one.id not in old:
                continue
            assert one.age == old[one.id].age + 1
            for name in ("fitness", "relative_fitness", "relative_complexity", "average", "birth", "parents"):
                assert getattr(one, name) == getattr(old[one.id], name)
            assert len(one.events) <= 1
            changed = one.phenotype is not old[one.id].phenotype
            assert changed == (one.events != () and one.events[0].outcome == "applied")
            if one.species != old[one.id].species:
                assert changed

    def check_champions(self, evaluated: EcosystemState, after: EcosystemState, tally: Tally) -> None:
        """The champion lives, unmutated; so do those of species after all moves; the run's is kept."""
        best = self.best(list(evaluated.networks))
        survivors = {one.id: one for one in after.networks}
        assert survivors[best.id].phenotype is best.phenotype
        assert tally.champion == best.id
        assert tally.champion_parameters == self.family.parameters(best.phenotype)
        if (best.fitness or 0.0) > self.highest:
            assert after.champion is best
            assert after.champion_generation == after.generation
            self.highest = best.fitness or 0.0
        assert after.champion is not None
        assert after.champion.fitness == self.highest
        moved = reproduce(
            evaluated, generation=after.generation, family=self.family, settings=self.config
        ).state.networks
        for group in self.groups(moved):
            champion = self.best(group)
            if self.config.culling.spared == "species" or champion.fitness == best.fitness:
                assert champion.id in survivors, "the champion of each species lives"
        crowd = Counter(one.species for one in moved)
        homes = {one.id: one.species for one in moved}
        for group in self.groups(evaluated.networks):
            champion = self.best(group)
            events = survivors[champion.id].events if champion.id in survivors else ()
            stayed = [one for one in group if homes[one.id] == champion.species]
            if events and homes[champion.id] == champion.species:
                assert crowd[champion.species] == 1 or len(stayed) == 1, "only alone is a champion mutated"

    def groups(self, networks: tuple[Individual, ...]) -> list[list[Individual]]:
        """The evaluated networks, species by species."""
        fit = [one for one in networks if one.fitness is not None]
        return [[one for one in fit if one.species == id] for id in {one.species for one in fit}]

    def check_limits(self, evaluated: EcosystemState, after: EcosystemState, tally: Tally) -> None:
        """The size limit holds, or only newborns and champions are left and there is a warning."""
        if len(after.networks) <= self.config.evolution.max_networks:
            assert tally.warnings == ()
            if tally.culled:
                assert len(after.networks) == self.config.evolution.max_networks, (
                    "no more are culled than needed"
                )
            return
        assert len(tally.warnings) == 1
        for one in after.networks:
            group = [
                peer for peer in after.networks if peer.species == one.species and peer.fitness is not None
            ]
            assert one.birth == after.generation or self.best(group).id == one.id

    def check_counts(
        self, before: EcosystemState, evaluated: EcosystemState, after: EcosystemState, tally: Tally
    ) -> None:
        """The tally adds up."""
        assert tally.networks == len(before.networks)
        assert tally.species == len(before.species)
        assert tally.failed == sum(one.failed is not None for one in evaluated.networks)
        assert len(after.networks) == tally.networks + tally.offspring - tally.failed - tally.culled
        assert len(after.species) == tally.species + tally.species_founded - tally.species_extinct
        assert after.next_network == before.next_network + tally.offspring
        assert after.next_species == before.next_species + tally.species_founded
        changed = [one for one in after.networks if one.birth < after.generation]
        outcomes = Counter(event.outcome for one in changed for event in one.events)
        lost = tally.culled
        assert outcomes["applied"] <= tally.mutations <= outcomes["applied"] + lost
        assert outcomes["refused"] <= tally.mutations_refused <= outcomes["refused"] + lost
        assert outcomes["failed"] <= tally.mutations_failed <= outcomes["failed"] + lost
        sizes = [self.family.parameters(one.phenotype) for one in evaluated.networks if one.failed is None]
        assert tally.mean_parameters is not None
        assert math.isclose(tally.mean_parameters, sum(sizes) / len(sizes))
        limit = self.config.evolution.max_parameters
        assert limit is None or all(self.family.parameters(one.phenotype) <= limit for one in after.networks)
        new = {one.id for one in after.species} - {one.id for one in before.species}
        assert not new & self.species, "no species id is given twice"
        assert all(one.founded == after.generation for one in after.species if one.id in new)

    def best(self, networks: list[Individual]) -> Individual:
        """Sorted out the slow way: fitness, then parameters, then id."""
        fit = [one for one in networks if one.fitness is not None]
        return sorted(
            fit, key=lambda one: (-(one.fitness or 0.0), self.family.parameters(one.phenotype), one.id)
        )[0]
