"""The loop of the paper, ask and tell: `ask` says what to train, `tell` takes what came back and evolves.

An `Evolution` holds no state of its own: everything is in the frozen `EcosystemState` that goes in and comes
out. Training, engines and files are left to others, so one's own fitness function will do:

    evolution = Evolution(config, family)
    state = evolution.start()
    while not stop_reason(state, config.evolution, elapsed_minutes=0):
        outcomes = [train_and_score(job) for job in evolution.ask(state)]
        state = evolution.tell(state, outcomes).state
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from epicortex.config import Config, EvolutionConfig
from epicortex.ecosystem import census, stopping
from epicortex.ecosystem.calibration import mean_fitness
from epicortex.ecosystem.history import History
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.ecosystem.outcomes import record
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState, Individual, Tally
from epicortex.ecosystem.stopping import Progress
from epicortex.ecosystem.strategies import Culled, Planner, Prepares, Selected, Strategies
from epicortex.errors import RunError
from epicortex.families.family import Family
from epicortex.randomness import generator


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One generation, seen twice."""

    evaluated: EcosystemState
    """After calibration, before evolution: every network's figures, and its events since the last time."""
    state: EcosystemState
    """After culling: what the next generation begins with. Its tally says what happened."""


@dataclass(frozen=True, slots=True, eq=False)
class Evolution:
    """The rules of a run, for one kind of network. An ancestor, if given, becomes network 1 as it is.

    The strategies are those that the config names, unless others are handed over.
    """

    config: Config
    family: Family[Any]
    ancestor: Any | None = None
    own: InitVar[Strategies | None] = None
    strategies: Strategies = field(init=False)

    def __post_init__(self, own: Strategies | None) -> None:
        object.__setattr__(self, "strategies", own or Strategies.from_config(self.config))

    def start(self) -> EcosystemState:
        """The founders: generation 0, nothing evaluated yet."""
        return self.strategies.speciation.start(self.family, ancestor=self.ancestor)

    def plan(self, state: EcosystemState, history: History, *, elapsed: float) -> Plan | None:
        """How the next generation is to be spent, where the budget plans; `elapsed` seconds are gone."""
        budget = self.strategies.budget
        if not isinstance(budget, Planner):
            return None
        return budget.plan(state, history, family=self.family, elapsed=elapsed)

    def planned(self, state: EcosystemState, plan: Plan) -> EcosystemState:
        """The state with a plan for its next generation, and the population that this asks for."""
        state = replace(state, plan=plan)
        selection = self.strategies.selection
        return selection.prepare(state, family=self.family) if isinstance(selection, Prepares) else state

    def ask(self, state: EcosystemState) -> tuple[Job, ...]:
        """What the next generation needs: a job for every network, in the order of their ids.

        1. Newborns are scored before any training.
        2. Every network is trained, newborns too (or only scored, in that reading).
        3. Every network is evaluated: this gives its absolute fitness.
        """
        if state.generation > 0 and state.tally is None:
            raise RunError("this is the evaluated half of a step, before evolution; go on with its `state`")
        jobs = self.strategies.budget.jobs(state, generation=state.generation + 1)
        return tuple(replace(job, sums=state.sums) for job in jobs) if state.sums else tuple(jobs)

    def tell(self, state: EcosystemState, outcomes: Iterable[Outcome]) -> Step:
        """The rest of the generation, from the outcomes of all jobs, which may come in any order.

        Outcomes that are missing, unknown, doubled or of another generation raise `RunError`, as does a
        generation in which all networks failed. The state that goes in is never changed.
        """
        family, rules = self.family, self.strategies
        generation = state.generation + 1

        # 4. Calibration: fitness relative to the species, complexity relative to the ecosystem.
        recorded = record(state, self.ask(state), outcomes, family=family)
        calibrated = rules.selection.calibrate(recorded, family=family)
        if isinstance(rules.selection, Prepares):
            evaluated = _with_latest(calibrated, rules.selection.champion(calibrated.networks, family))
        else:
            evaluated = _with_champion(calibrated, family)
        if evaluated.champion_generation == generation:
            evaluated = replace(evaluated, champion_sums=state.sums)

        # 5. Evolution: all age; networks mate or mutate; those whose key changes move or found a species.
        before = _without_events(evaluated)
        register = rules.speciation.register(before, generation=generation)
        selected = rules.selection.select(before, generation=generation, family=family, register=register)

        # 6. Culling: the failed go, then the ecosystem shrinks to its limit.
        rng = generator(self.config.evolution.seed, "culling", generation=generation)
        culled = rules.culling.cull(selected.state, generation=generation, family=family, rng=rng)
        tally = _tally(evaluated, selected, culled, family)
        return Step(evaluated, replace(culled.state, tally=tally))


def stop_reason(
    state: EcosystemState, settings: EvolutionConfig, elapsed_minutes: float, trainings: int = 0
) -> str | None:
    """Why the run ends here, between two generations, in words; None while it goes on.

    `trainings` are those done so far, where the settings limit them.
    """
    progress = Progress.of_state(state, trainings=trainings, minutes=elapsed_minutes)
    return stopping.reason(progress, settings)


def _with_champion(state: EcosystemState, family: Family[Any]) -> EcosystemState:
    """Keep this generation's champion by value, unless one before was fitter, or as fit and smaller.

    Of equals of one size the later has learned longer.
    """
    best, before = census.champion(state.networks, family), state.champion
    if best is None:
        return state
    rises = before is None or census.fitness(best) > census.fitness(before)
    if before is not None and not rises:
        larger = family.parameters(best.phenotype) > family.parameters(before.phenotype)
        if census.fitness(best) < census.fitness(before) or larger:
            return state
    rise = state.generation if rises else state.last_rise
    return replace(state, champion=best, champion_generation=state.generation, last_rise=rise)


def _with_latest(state: EcosystemState, best: Individual | None) -> EcosystemState:
    """Where a plan trains the same networks on and on, the best of the last generation is the run's."""
    if best is None:
        return state
    return replace(state, champion=best, champion_generation=state.generation, last_rise=state.generation)


def _without_events(state: EcosystemState) -> EcosystemState:
    """The events have been shown in the evaluated state; from here on new ones are gathered."""
    networks = (replace(one, events=()) if one.events else one for one in state.networks)
    return replace(state, networks=tuple(networks))


def _tally(evaluated: EcosystemState, selected: Selected, culled: Culled, family: Family[Any]) -> Tally:
    fit = census.evaluated(evaluated.networks)
    best = census.champion(fit, family)
    sizes = [family.parameters(network.phenotype) for network in fit]
    return Tally(
        generation=evaluated.generation,
        networks=len(evaluated.networks),
        species=len(evaluated.species),
        highest_fitness=best.fitness if best else None,
        average_fitness=mean_fitness(fit) if fit else None,
        offspring_fitness=_offspring_fitness(fit),
        offspring=selected.offspring,
        mutations=selected.mutations,
        mutations_refused=selected.refused,
        mutations_failed=selected.failed,
        species_founded=selected.founded,
        species_extinct=selected.extinct + culled.extinct,
        culled=culled.culled,
        failed=len(evaluated.networks) - len(fit),
        champion=best.id if best else None,
        champion_parameters=family.parameters(best.phenotype) if best else None,
        mean_parameters=sum(sizes) / len(sizes) if sizes else None,
        warnings=(*selected.warnings, *culled.warnings),
    )


def _offspring_fitness(networks: list[Individual]) -> float | None:
    """The paper's key figure: the mean fitness of newborns before any training."""
    scores = [one.fitness_before for one in networks if one.fitness_before is not None]
    return math.fsum(scores) / len(scores) if scores else None
