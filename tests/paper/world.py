"""Experiments made up by hand: histories with known figures, and results that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from epicortex.config import resolving as settings
from epicortex.paper.plan import Experiment, Plan, PlannedRun
from epicortex.paper.published import DATA
from epicortex.paper.results import BegunRun, ComparedGeneration, Figures, Results
from tests.generations import generation

#: Runs of about a second.
SMALL = (
    *("--engine", "serial", "--evolution.initial-networks", "5", "--evolution.max-networks", "7"),
    *("--evolution.initial-species", "2", "--evolution.max-species", "3", "--generations", "4"),
)
Curve = Callable[[int], float | None]


def level(value: float | None) -> Curve:
    """The same in all generations."""
    return lambda generation: value


def slope(start: float, step: float) -> Curve:
    """So much more in each generation."""
    return lambda generation: start + step * generation


_HIGHEST, _AVERAGE, _OFFSPRING, _PARAMETERS = map(level, (0.9, 0.8, 0.7, 1e5))


def history(
    *,
    generations: int = 20,
    highest: Curve = _HIGHEST,
    average: Curve = _AVERAGE,
    untrained: Curve | None = None,
    offspring: Curve = _OFFSPRING,
    parameters: Curve = _PARAMETERS,
    refused: int = 3,
) -> tuple[ComparedGeneration, ...]:
    """The generations of a run."""
    plain = {"networks": 10, "offspring": 2, "champion_parameters": 1000, "mutations": 5, "seconds": 1.5}
    return tuple(
        ComparedGeneration(
            **asdict(
                generation(
                    number,
                    highest_fitness=highest(number),
                    average_fitness=average(number),
                    offspring_fitness=offspring(number) if number > 1 else None,
                    mean_parameters=parameters(number),
                    mutations_refused=refused,
                    **plain,
                )
            ),
            average_untrained=(untrained or average)(number),
        )
        for number in range(1, generations + 1)
    )


def figures(lines: tuple[ComparedGeneration, ...] | None = None, **changes: Any) -> Figures:
    """A run with this history."""
    lines = history() if lines is None else lines
    plain: dict[str, Any] = {
        "spent": [10 * generation for generation in range(1, len(lines) + 1)],
        "whole": len(lines),
        "seconds": 1.5 * len(lines),
        "champion": max(line.highest_fitness or 0.0 for line in lines),
        "champion_parameters": 1000,
        "test": lines[-1].highest_fitness,
        "tried": 100,
        "refused": 60,
    }
    return Figures(history=lines, **{**plain, **changes})


def plan(**changes: Any) -> Plan:
    """The paper's experiments, one run of each."""
    plain: dict[str, Any] = {
        "config": settings.resolve("paper"),
        "data": tuple(DATA),
        "speciation": (True, False),
        "runs": 1,
    }
    return Plan(**{**plain, **changes})


def results(runs: Mapping[Experiment, Sequence[Figures]], planned: Plan | None = None) -> Results:
    """These runs, and nothing else, with seeds from 1."""
    gathered = tuple(
        BegunRun(PlannedRun(experiment, seed), len(one.history), "epicortex evolve …", one)
        for experiment, several in runs.items()
        for seed, one in enumerate(several, 1)
    )
    begun = {one.run for one in gathered}
    planned = planned or plan()
    due = tuple(run for run in planned.planned() if run not in begun)
    return Results(planned, gathered, due, {name: tuple(several) for name, several in runs.items()})
