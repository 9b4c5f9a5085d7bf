"""When a run ends: one rule, for a state that evolves and for the history of a run on disk.

How far a run has come is a `Progress`; which limit of the settings it has reached follows from that alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from epicortex.config import Config, EvolutionConfig
from epicortex.ecosystem import budget, census
from epicortex.ecosystem.history import History, total_seconds
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState
from epicortex.measures import figure, is_percent

Limit: TypeAlias = Literal["target", "generations", "trainings", "plateau", "minutes"]
"""The setting in the section `evolution` that ends a run."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come, between two generations."""

    generations: int
    highest: float | None
    """The highest fitness of any generation; None before the first."""
    last_rise: int
    """The generation in which it last rose. A tie is no rise, even though it makes a new champion."""
    trainings: int = 0
    minutes: float = 0.0
    plan: Plan | None = None
    """The plan of the last generation, where the run is planned: it says whether that was the end."""

    @classmethod
    def of_state(cls, state: EcosystemState, *, trainings: int = 0, minutes: float = 0.0) -> Progress:
        """That of a state; what it cost is not in it."""
        best = state.champion
        highest = None if best is None else census.fitness(best)
        return cls(state.generation, highest, state.last_rise, trainings, minutes, state.plan)

    @classmethod
    def of_history(cls, history: History, config: Config, plan: Plan | None = None) -> Progress:
        """That of a run with these complete generations, in whatever process they ran, and its last plan."""
        highest, last_rise = -math.inf, 0
        # the generations of a planned run are scored on different samples, so that only the last counts
        for generation in history if plan is None else history[-1:]:
            if generation.highest_fitness is not None and generation.highest_fitness > highest:
                highest, last_rise = generation.highest_fitness, generation.generation
        return cls(
            history[-1].generation if history else 0,
            highest if last_rise else None,
            last_rise,
            budget.spent(history, config),
            total_seconds(history) / 60,
            plan,
        )


def limit_reached(progress: Progress, settings: EvolutionConfig) -> Limit | None:
    """What ends the run here; None while it goes on.

    >>> limit_reached(Progress(generations=9, highest=0.5, last_rise=4), EvolutionConfig(plateau=5))
    'plateau'
    """
    plan = progress.plan
    # a planned run scores but a few samples on the way
    whole = plan is None or plan.scored is None or plan.judge
    target, highest = settings.target, progress.highest
    if whole and target is not None and highest is not None and highest >= target:
        return "target"
    if progress.plan is not None or settings.budget == "planned":
        return _planned_limit(progress.plan, settings)
    reached: tuple[tuple[Limit, float, float | None], ...] = (
        ("generations", progress.generations, settings.generations),
        ("trainings", progress.trainings, settings.trainings),
        ("plateau", progress.generations - progress.last_rise, settings.plateau),
        ("minutes", progress.minutes, settings.minutes),
    )
    return next((name for name, now, most in reached if most is not None and now >= most), None)


def _planned_limit(plan: Plan | None, settings: EvolutionConfig) -> Limit | None:
    """What ends a planned run: its last plan, unless it was given more since."""
    if plan is None or not plan.ends_run or plan.timed != (settings.minutes is not None):
        return None
    limit: Limit = "generations" if settings.minutes is None else "minutes"
    asked = settings.generations if settings.minutes is None else settings.minutes
    return limit if asked <= plan.until else None


def reason(progress: Progress, settings: EvolutionConfig, *, fitness: str = "accuracy") -> str | None:
    """Why the run ends here, in words; None while it goes on. `fitness` says how the target is written."""
    match limit_reached(progress, settings):
        case "target":
            assert settings.target is not None
            target = figure(fitness, settings.target)
            if is_percent(fitness):
                target = f"{100 * settings.target:g} %"
            return f"the target of {target} is reached"
        case "generations":
            return f"all {settings.generations} generations are done"
        case "trainings":
            return f"all {settings.trainings} trainings are done"
        case "plateau":
            return f"the highest fitness has not risen for {settings.plateau} generations"
        case "minutes":
            return (
                "the minute is over"
                if settings.minutes == 1
                else f"the {settings.minutes:g} minutes are over"
            )
        case None:
            return None
