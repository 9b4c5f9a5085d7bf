"""Control (c): Optuna searches the same space, with our arithmetic and recipe, then its best is trained.

Two fifths of the time go into trials: short trainings on small images, one on each core, all of the same
number of steps, which the median pruner ends early. TPE proposes structures that fit the limits ours begins
with. The first trial is a network like the middle founder of ours. The best structure is then trained with
new weights for the rest of the time.

It needs `pip install optuna`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import evolved
from epicortex import engines
from epicortex.config import Config
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Course, Job
from epicortex.ecosystem.planned import rate
from epicortex.errors import ConfigError, RunError
from epicortex.families.family import Problem, Shape
from epicortex.families.residual.founders import skeletons
from epicortex.families.residual.genome import Block, Genome, Recipe, Stage
from epicortex.run import assembly
from epicortex.run.assembly import Extensions

SEARCH: Final = 0.4
#: So many trials fit into the search of a run of ten minutes if none is pruned; in others by the root.
_TRIALS: Final = 16
_LEAST_TRIALS: Final = 4
_SLICES: Final = 5
_STAGES: Final = 4
_SMALLEST: Final = 12
_WIDEST: Final = 256


@dataclass(frozen=True, slots=True)
class Space:
    """The structures for one problem, within limits of cost and of parameters."""

    problem: Problem
    cost: int
    parameters: int
    most: int | None = None
    """No structure has more parameters than this."""

    @property
    def middle(self) -> dict[str, Any]:
        """The choice that gives a network like the middle founder of ours."""
        usual = skeletons(self.problem.input_shape)[0][0]
        blocks = dict(enumerate(usual.blocks))
        return {
            "size": 0.5,
            "strides": "usual",
            "widening": usual.widening,
            **{f"blocks{stage}": blocks.get(stage, 1) for stage in range(_STAGES)},
            **{f"width{stage}": 1.0 for stage in range(_STAGES)},
            "kernel_mix": 0.1,
            "rate": 1.0,
            "decay": 1.0,
            "augmentation": 1.0,
        }

    def suggest(self, trial: Any) -> dict[str, Any]:
        """What a trial is made of."""
        return {
            "size": trial.suggest_float("size", 0.2, 1.4, log=True),
            "strides": trial.suggest_categorical("strides", ["usual", "last kept", "one fewer"]),
            "widening": trial.suggest_float("widening", 1.0, 3.0),
            **{f"blocks{at}": trial.suggest_int(f"blocks{at}", 0, 2) for at in range(_STAGES)},
            **{f"width{at}": trial.suggest_float(f"width{at}", 0.7, 1.4, log=True) for at in range(_STAGES)},
            "kernel_mix": trial.suggest_float("kernel_mix", 0.0, 0.5),
            "rate": trial.suggest_float("rate", 0.5, 2.0, log=True),
            "decay": trial.suggest_float("decay", 0.5, 2.0, log=True),
            "augmentation": trial.suggest_float("augmentation", 0.5, 2.0, log=True),
        }

    def genome(self, choice: Mapping[str, Any], seed: int) -> Genome:
        """The widest structure of a choice that fits into its part of the limits."""
        low, high = 1, _WIDEST
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._fits(self._built(choice, middle, None), choice["size"])
            low, high = (middle, high) if fits else (low, middle - 1)
        return self._built(choice, low, np.random.default_rng(seed))

    def _fits(self, genome: Genome, size: float) -> bool:
        parameters = size * self.parameters if self.most is None else min(size * self.parameters, self.most)
        return genome.cost <= size * self.cost and genome.parameters <= parameters

    def _built(self, choice: Mapping[str, Any], width: int, rng: np.random.Generator | None) -> Genome:
        shape = self.problem.input_shape
        strides = _strides(skeletons(shape)[0][0].strides, choice["strides"])
        stages = []
        for at, stride in enumerate(strides):
            wide = max(1, round(width * choice["widening"] ** at * choice[f"width{at}"]))
            ids = tuple(range(wide))
            kernels = [
                _kernels(wide, len(shape) - 1, choice["kernel_mix"], rng)
                for _ in range(1 + 2 * choice[f"blocks{at}"])
            ]
            pairs = zip(kernels[1::2], kernels[2::2], strict=True)
            blocks = tuple(Block(number, ids, *pair) for number, pair in enumerate(pairs))
            stages.append(Stage(at, stride, ids, kernels[0], blocks))
        recipe = Recipe(choice["rate"], choice["decay"], choice["augmentation"])
        return Genome(shape, tuple(stages), tuple(range(self.problem.outputs)), recipe=recipe)


def _strides(usual: tuple[Shape, ...], choice: str) -> tuple[Shape, ...]:
    if choice == "last kept":
        return (*usual[:-1], tuple(1 for _ in usual[-1]))
    return usual[:-1] if choice == "one fewer" and len(usual) > 1 else usual


def _kernels(nodes: int, spatial: int, mix: float, rng: np.random.Generator | None) -> tuple[Shape, ...]:
    """3×3 (5 for signals), a part of them narrow in one dimension; without a generator none."""
    usual = (5 if spatial == 1 else 3,) * spatial
    if rng is None or not spatial:
        return (usual,) * nodes
    narrow, axes = rng.random(nodes) < mix, rng.integers(spatial, size=nodes)
    return tuple(
        tuple(1 if narrow[node] and axes[node] == axis else size for axis, size in enumerate(usual))
        for node in range(nodes)
    )


def run(
    data: DataSet | str,
    ours: Mapping[str, Any],
    *,
    seed: int,
    minutes: float,
    cores: int,
    began: float,
    folder: Path,
    most_parameters: int | None = None,
) -> dict[str, Any]:
    """Trials, then the best structure for the rest of the time."""
    flips = evolved.flips(ours)
    config = evolved.settings(flips, seed=seed, minutes=minutes, cores=cores)
    end = began + SEARCH * 60 * minutes
    subject = assembly.subject(data, config)
    space = Space(subject.problem, ours["start_cost"], ours["start_parameters"], most_parameters)
    family = assembly.make_family(config, subject, Extensions())
    config = assembly.with_backend(config, family, subject, Extensions(), print)
    setup = engines.WorkerSetup(
        recipe=assembly.make_recipe(config, family, subject, Extensions()), family=family, data=subject.data
    )
    with engines.create(config.training.engine, setup, config) as engine:
        trials = Trials(config, space, engine, began, end)
        choice, tried = trials.search()
    genome = space.genome(choice, seed).to_dict()
    found = evolved.fixed(
        data, genome, flips=flips, seed=seed, minutes=minutes, cores=cores, began=began, folder=folder
    )
    return {**found, "curve": trials.curve + found["curve"], "choice": choice, "trials": tried}


@dataclass(slots=True)
class Trials:
    """The search, with all that a trial needs."""

    config: Config
    space: Space
    engine: engines.Engine
    began: float
    end: float
    curve: list[list[float]] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))
    steps: int = 1

    def search(self) -> tuple[dict[str, Any], dict[str, int]]:
        """The best choice, and how many trials came to what."""
        optuna = _optuna()
        seed = self.config.evolution.seed
        self.steps = self._affordable()
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=6
            ),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
        )
        study.enqueue_trial(self.space.middle)
        left = self.end - time.monotonic()
        if left > 0:
            study.optimize(self.objective, timeout=left, n_jobs=self.engine.workers)
        states: dict[str, int] = {}
        for trial in study.trials:
            states[trial.state.name.lower()] = states.get(trial.state.name.lower(), 0) + 1
        return best(study.trials), states

    def _affordable(self) -> int:
        """The steps of a trial, from the speed of the middle founder with all workers busy."""
        total = self.end - self.began
        trials = max(_LEAST_TRIALS, round(_TRIALS * math.sqrt(total / (SEARCH * 600))))
        network, steps = self._network(self.space.middle, 0), 2
        while True:
            before = time.monotonic()
            jobs = [self._job(network, Course(steps=steps, size=self._size)) for _ in self._workers]
            for future in [self.engine.submit(job) for job in jobs]:
                future.result()
            took = time.monotonic() - before
            if took > 0.5 or steps > 1000:
                seconds = (self.end - time.monotonic()) * self.engine.workers / trials
                return max(_SLICES, round(0.9 * steps * seconds / took))
            steps *= 4

    @property
    def _workers(self) -> range:
        return range(self.engine.workers)

    @property
    def _size(self) -> Shape | None:
        """The size of images in the search of ours."""
        spatial = self.space.problem.input_shape[1:]
        smaller = tuple(round(self.config.budget.small_size * side) for side in spatial)
        return smaller if len(spatial) == 2 and min(smaller) >= _SMALLEST else None

    def _network(self, choice: Mapping[str, Any], number: int) -> Any:
        seed = self.config.evolution.seed
        return evolved.drawn(self.space.genome(choice, seed).to_dict(), seed + 1000 * number)

    def _job(self, network: Any, course: Course) -> Job:
        return Job(next(self.numbers), 0, self.config.evolution.seed, network, course=course)

    def objective(self, trial: Any) -> float:
        """The validation loss after a short training."""
        optuna = _optuna()
        network = self._network(self.space.suggest(trial), trial.number + 1)
        value = math.inf
        for part in range(_SLICES):
            if time.monotonic() > self.end:
                raise optuna.TrialPruned
            start, stop = (self.steps * at // _SLICES for at in (part, part + 1))
            rates = rate(start / self.steps), rate(stop / self.steps)
            course = Course(
                stop - start,
                start,
                size=self._size,
                rates=rates,
                flip=self.config.training.flip is True,
                spared=self.config.training.unflipped,
                average=True,
            )
            outcome = self.engine.submit(self._job(network, course)).result()
            if outcome.fitness is None or outcome.losses is None:
                raise optuna.TrialPruned
            network, value = outcome.phenotype, float(np.mean(outcome.losses))
            self._point(outcome.fitness)
            trial.report(value, part)
            if part + 1 < _SLICES and trial.should_prune():
                raise optuna.TrialPruned
        return value

    def _point(self, fitness: float) -> None:
        """The best so far belongs to the curve."""
        best = max([fitness, *(self.curve[-1][1:] if self.curve else ())])
        self.curve.append([round(time.monotonic() - self.began, 2), best])


def best(trials: list[Any]) -> dict[str, Any]:
    """The trial that ended with the lowest loss; where none came to its end, the one that came furthest."""
    scored = [trial for trial in trials if trial.intermediate_values]
    if not scored:
        raise RunError("no trial was scored in the time for trials; give it more minutes")

    def rank(trial: Any) -> tuple[int, float]:
        last = max(trial.intermediate_values)
        return -last, trial.intermediate_values[last]

    return dict(min(scored, key=rank).params)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError("the arm optuna needs Optuna: pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", module="optuna")
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
