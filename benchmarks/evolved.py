"""The arms that `evolve` runs: ours as a user has it, its ablations, and single structures.

An arm is a set of settings on top of the preset `default`, and sometimes a structure to train. What a run
found comes back as plain figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import epicortex
from benchmarks import naive
from epicortex.champion import front
from epicortex.config import Config
from epicortex.data import DataSet
from epicortex.ecosystem.history import History
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.state import EcosystemState, Tally
from epicortex.families.family import Problem
from epicortex.families.residual import ResidualFamily
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.reading import genome_from_json
from epicortex.storage.folder import read_config

#: What SGD is given where it takes the place of orthogonal steps.
SGD: Final = {"lr": 0.15, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}
_STILL: Final = ("width", "inner", "block", "stage", "stride", "recipe")
#: What an arm changes in the preset `default`.
SETTINGS: Final[dict[str, dict[str, object]]] = {
    "ours": {},
    "small": {"evolution.max_parameters": 10_000},
    "sgd": {
        "training.optimiser": "SGD",
        "training.optimiser_arguments": SGD,
        "training.optimiser_state": "inherited",
    },
    "no-averaging": {"selection.averaging": False},
    "no-shapes": {"residual.mutations": _STILL},
    "uniform": {"residual.mutations": _STILL, "residual.kernel_mix": 0.0},
    "drawn": {"residual.mutations": _STILL, "residual.kernel_mix": 0.5},
    "naive": naive.SETTINGS,
    "alone": {"budget.search": 0.0, "speciation.classes": (0.5,)},
}


class Curve(epicortex.Watcher):
    """Keeps what a run does on its way: its first networks, its accuracy over time, its last plan."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.points: list[list[float]] = []
        self.founders: list[Any] = []
        self.plan: Plan | None = None

    def begin(self, state: EcosystemState, history: History) -> None:
        """The founders, from the cheapest on."""
        del history
        genomes = [network.phenotype.genome for network in state.networks]
        self.founders = sorted(genomes, key=lambda genome: genome.cost)

    def planned(self, plan: Plan) -> None:
        """The latest plan."""
        self.plan = plan

    def generation(self, tally: Tally, seconds: float) -> None:
        """A point of the curve."""
        del seconds
        if tally.highest_fitness is not None:
            self.points.append([round(time.monotonic() - self.began, 2), tally.highest_fitness])

    def note(self, text: str) -> None:
        """Shown, not raised."""
        print(text, flush=True)


def settings(changes: Mapping[str, object], *, seed: int, minutes: float, cores: int) -> Config:
    """The preset `default` for one run."""
    usual = {"evolution.seed": seed, "evolution.minutes": minutes, "training.workers": cores}
    return epicortex.configure(changes={**usual, **changes})


def run(
    data: DataSet | str,
    arm: str,
    *,
    seed: int,
    minutes: float,
    cores: int,
    began: float,
    folder: Path,
    more: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """One run of an arm of `SETTINGS`, with further settings where it has none of its own."""
    config = settings({**(more or {}), **SETTINGS[arm]}, seed=seed, minutes=minutes, cores=cores)
    return figures(data, config, began=began, folder=folder, parts=naive.PARTS if arm == "naive" else None)


def flips(ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for mirrored images, as a run of ours found them in its search."""
    return {"training.flip": ours["flip"], "training.unflipped": list(ours.get("spared", ()))}


def fixed(
    data: DataSet | str,
    structure: Mapping[str, Any],
    *,
    flips: Mapping[str, Any],
    seed: int,
    minutes: float,
    cores: int,
    began: float,
    folder: Path,
    parts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One structure with new weights, trained as ours is, with small images first, for all of the time."""
    network = drawn(structure, seed)
    changes = {
        "budget.search": 0.0,
        **flips,
        "residual.start_cost": network.genome.cost,
        "residual.start_parameters": network.genome.parameters,
    }
    config = settings(changes, seed=seed, minutes=minutes, cores=cores)
    return figures(data, config, began=began, folder=folder, parts=parts, ancestor=network)


def genome(found: Mapping[str, Any]) -> Genome:
    """A structure as the figures of a run hold it."""
    return genome_from_json(json.dumps(found))


def drawn(found: Mapping[str, Any], seed: int) -> Phenotype:
    """A structure with new weights."""
    structure = genome(found)
    family = ResidualFamily(Problem(structure.input_shape, structure.outputs), start=structure)
    return family.minimal(np.random.default_rng(seed))


def figures(
    data: DataSet | str,
    config: Config,
    *,
    began: float,
    folder: Path,
    parts: Mapping[str, Any] | None = None,
    ancestor: Any | None = None,
) -> dict[str, Any]:
    """Evolve, and say what came of it."""
    curve = Curve(began)
    result = epicortex.evolve(
        data, config, out=folder, parts=parts, ancestor=ancestor, watcher=curve, began=began
    )
    seconds = round(time.monotonic() - began, 2)
    champion, plan = result.champion, curve.plan
    assert champion is not None
    assert plan is not None
    sizes = read_config(folder)[0].residual
    return {
        "test": result.test,
        "validation": champion.facts.fitness,
        "parameters": champion.outline.parameters,
        "multiplications": champion.outline.cost,
        "seconds": seconds,
        "curve": curve.points,
        "structure": str(champion.phenotype.genome),
        "genome": champion.description,
        "founder": curve.founders[len(curve.founders) // 2].to_dict(),
        "flip": plan.flip,
        "spared": list(plan.spared),
        "start_cost": sizes.start_cost,
        "start_parameters": sizes.start_parameters,
        "front": [_member(one) for one in front.read(folder)],
    }


def _member(model: epicortex.Champion) -> dict[str, Any]:
    return {
        "parameters": model.outline.parameters,
        "multiplications": model.outline.cost,
        "validation": model.facts.fitness,
        "test": model.facts.test_accuracy,
    }
