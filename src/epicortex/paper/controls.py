"""The controls: what is left when a part of evolution is taken away, at the same cost.

Each belongs to one run of the experiment proper, with the same data, mode and seed, and may spend exactly as
many network-trainings as that run did (see `budget`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from epicortex.config import Config, changed
from epicortex.config.fields import by_section
from epicortex.ecosystem import budget
from epicortex.run import lineage
from epicortex.run.lineage import Ancestor
from epicortex.run.record import RunRecord


@dataclass(frozen=True, slots=True)
class Control:
    """One control."""

    name: str
    """As in options and folders."""
    title: str
    about: str
    changes: Callable[[RunRecord, int], dict[str, Any]]
    """The settings that differ, by dotted name, from the original run and its trainings."""


def configured(control: Control, original: RunRecord, config: Config) -> Config:
    """The config of a control: its original's, with what the control takes away, at the same cost."""
    trainings = budget.spent(original.history, original.config)
    # Of a generation at least one network is trained, so the budget ends the run and never this number.
    cost = {"evolution.trainings": trainings, "evolution.generations": trainings}
    return changed(config, **by_section(cost | control.changes(original, trainings)))


def ancestors(original: RunRecord) -> tuple[Ancestor, ...]:
    """The champion of a run and all networks that it descends from."""
    facts = original.champion().facts
    return lineage.trace(original.networks(), facts.network, until=facts.generation)


def lineage_trainings(
    family: Iterable[Ancestor], *, newborns_trained: bool = True, founders_trained: bool = True
) -> int:
    """How often the champion and its ancestors were trained, each until it last passed on its genes.

    Each training is on one portion of the training set, so this also counts the samples that they saw.
    """
    return sum(
        one.until - one.birth - (0 if (newborns_trained if one.parents else founders_trained) else 1)
        for one in family
    )


def of_lineage(original: RunRecord) -> int:
    """The trainings of the lineage of a run's champion."""
    settings = original.config.budget
    trainings = lineage_trainings(
        ancestors(original),
        newborns_trained=settings.newborns == "trained",
        founders_trained=settings.founders == "trained",
    )
    return max(1, trainings)


def _founders(_original: RunRecord, _trainings: int) -> dict[str, Any]:
    return {"evolution.evolve": False}


def _champion(original: RunRecord, trainings: int) -> dict[str, Any]:
    networks = max(1, trainings // of_lineage(original))
    return {
        "evolution.evolve": False,
        "speciation.founders": "alike",
        "evolution.start_genome": json.dumps(original.champion().description, separators=(",", ":")),
        "evolution.initial_networks": networks,
        "evolution.initial_species": 1,
        "evolution.max_networks": max(2, networks),
    }


def _mutation(_original: RunRecord, _trainings: int) -> dict[str, Any]:
    return {"selection.parents": "alone"}


def _random(_original: RunRecord, _trainings: int) -> dict[str, Any]:
    return {"selection.parents": "even", "selection.parent_shares": "even"}


def _drift(original: RunRecord, trainings: int) -> dict[str, Any]:
    return {
        **_random(original, trainings),
        "selection.champions": "mutated",
        "evolution.culling": "age",
    }


CONTROLS: Final[dict[str, Control]] = {
    control.name: control
    for control in (
        Control(
            "founders",
            "founders only",
            "The founders are trained, generation after generation: nobody mates, mutates or is culled.",
            _founders,
        ),
        Control(
            "champion",
            "champion's structure",
            "As many networks with the structure of the run's champion and new weights as can each be given "
            "as many samples as the champion's whole lineage saw; what is left of the budget trains them on.",
            _champion,
        ),
        Control(
            "mutation",
            "mutation only",
            "No crossover: every child is a clone of one parent with a kernel resized. Without speciation "
            "more are born, since a network is wholly similar to itself; all else is as ever.",
            _mutation,
        ),
        Control(
            "random",
            "random parents",
            "Parents mate, and pass on genes, without regard to fitness: the orders of visits, the partners, "
            "the chance to mate and the parents' shares are even. Mutation and culling are as ever.",
            _random,
        ),
        Control(
            "drift",
            "drift only",
            "Whatever mutation does is kept regardless of fitness: as random parents, and champions are not "
            "spared, and culling goes by age alone. Mutation goes on as ever, so this is what chance alone "
            "makes of kernels (`all` does not include it).",
            _drift,
        ),
    )
}
#: What `all` stands for: the controls that take something away from evolution to see what is left.
ALL: Final = tuple(name for name in CONTROLS if name != "drift")
