"""One network through one job: scored while newborn, trained, scored; whatever arithmetic does the work.

Everything that is drawn for a job is drawn here: which samples, how they are moved and mirrored. What
computes is a `Model`, which a `Workshop` makes: torch's is in `trainer`, the native one in `compiled`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from epicortex import randomness
from epicortex.config import TrainingConfig
from epicortex.ecosystem.jobs import CHANGED, MIRRORED_CLASS, Course, Job, Outcome
from epicortex.evaluation.augmentation import Augmenter, Scale
from epicortex.evaluation.evaluator import NetworkFailed, Pace, Stopped, finite, reason
from epicortex.evaluation.fitness import FitnessFunction, Values, balanced_accuracy
from epicortex.evaluation.goals import Goal
from epicortex.evaluation.samples import MOST_SHIFT, draw_batches, draw_flips, draw_moves, spread, stream
from epicortex.families.family import Family, HasRecipe, Shape

#: The optimisers of torch.optim that treat every number by itself: they may work on one vector.
ELEMENTWISE: Final = frozenset(
    {"ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"}
)
#: The average of weights follows the last steps: this part of a course.
_HORIZON: Final = 0.25
#: A class says whether it may be mirrored if so many samples are scored, and such a part of them is known.
_MANY: Final = 100
#: Whoever knows less than this, from 0 to 1, cannot say what changes of samples take away.
_KNOWS: Final = 0.3
_KNOWN: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What one training step looks at."""

    rows: NDArray[np.int64]
    """Samples of the part that is learnt from, by their place in it."""
    moves: NDArray[np.int64] | None = None
    """How far each image is moved in each dimension."""
    flips: NDArray[np.bool_] | None = None
    """Which images are mirrored."""
    size: Shape | None = None
    """What images are averaged down to."""
    augment: Augmenter | None = None
    """Changes the raw samples before all else, once."""


@dataclass(frozen=True, slots=True)
class View:
    """Which samples of the part that fitness is measured on a network is shown, and how."""

    most: int | None = None
    size: Shape | None = None
    mirrored: bool = False
    augment: Augmenter | None = None


class Model(Protocol):
    """A network that learns and answers."""

    def begin(self) -> None:
        """Get ready to train."""

    def step(self, batch: Batch, rate: float) -> float:
        """One training step, with the learning rate times `rate`; the loss before it."""

    def average(self, weight: float) -> None:
        """Move the average of the weights by so much of its distance to those of now."""

    def end(self) -> None:
        """Training is over. From here on it answers with the average, where there is one."""

    def answers(self, view: View, pace: Pace) -> Values:
        """The outputs [samples, outputs] for the samples that fitness is measured on."""

    def losses(self, answers: Values, labels: Values) -> NDArray[np.float32]:
        """How far off each of the answers is."""

    def phenotype(self) -> Any:
        """What the network became."""


class Workshop(Protocol):
    """Makes models of phenotypes, over one data set."""

    family: Family[Any]
    training: TrainingConfig
    fitness: FitnessFunction | None
    samples: int
    """How many samples there are to learn from."""
    spatial: Shape
    """The spatial size of a sample."""
    goal: Goal
    labels: Values
    """Those of the samples that fitness is measured on."""
    taught: Values
    """Those of the samples that are learnt from."""

    @property
    def scaling(self) -> Scale:
        """The mean and the deviation of raw values."""

    def model(self, job: Job) -> Model:
        """The network of a job."""


def attempt(
    shop: Workshop,
    job: Job,
    *,
    heartbeat: Callable[[], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    arithmetic: AbstractContextManager[None] | None = None,
) -> Outcome:
    """Train and score one network. A network that cannot go on gives an outcome with the reason."""
    pace = Pace(heartbeat, should_stop, shop.training.time_limit)
    try:
        with arithmetic or nullcontext():
            return _perform(shop, job, pace)
    except Stopped:
        raise
    except Exception as error:
        return Outcome(job.network, job.generation, failed=reason(error))


def _perform(shop: Workshop, job: Job, pace: Pace) -> Outcome:
    model = shop.model(job)
    view = View(job.course.scored, job.course.size) if job.course else View()
    outcome = Outcome(job.network, job.generation, job.phenotype)
    start = time.perf_counter()
    if job.newborn or not job.train:
        answers = model.answers(view, pace)
        outcome = _scored(outcome, shop, model, answers, view)
        outcome = replace(outcome, fitness_before=outcome.fitness if job.newborn else None)
    trained = scored = time.perf_counter()
    if job.train:
        model.begin()
        samples = _train(shop, job, model, pace)
        model.end()
        trained = time.perf_counter()
        answers = model.answers(view, pace)
        outcome = _scored(outcome, shop, model, answers, view)
        outcome = replace(outcome, phenotype=model.phenotype(), samples=samples)
    if job.course and job.course.mirrored and len(shop.spatial) == 2:
        mirrored = model.answers(replace(view, mirrored=True), pace)
        outcome = replace(outcome, measures={**outcome.measures, **_mirrored(shop, answers, mirrored, view)})
    if job.course and job.course.changed:
        changed = _changed(shop, job, model, answers, view, pace)
        outcome = replace(outcome, measures={**outcome.measures, **changed})
    seconds = scored - start + time.perf_counter() - trained
    return replace(outcome, train_seconds=trained - scored, score_seconds=seconds)


def _scored(outcome: Outcome, shop: Workshop, model: Model, answers: Values, view: View) -> Outcome:
    """With what a network's answers are worth, and their losses where the settings ask for them."""
    fitness = _fitness(shop, answers, view)
    if not shop.training.losses:
        return replace(outcome, fitness=fitness, measures={}, losses=None)
    losses = model.losses(answers, _labels(shop, view))
    mean = float(losses.astype(np.float64).mean())
    return replace(outcome, fitness=fitness, measures={"loss": mean}, losses=losses)


def _labels(shop: Workshop, view: View) -> Values:
    """Those of the samples of a view."""
    return shop.labels if view.most is None else shop.labels[spread(len(shop.labels), view.most)]


def _fitness(shop: Workshop, answers: Values, view: View) -> float:
    name = shop.training.fitness
    return finite(shop.goal.fitness(name, answers, _labels(shop, view), shop.fitness), name)


def _mirrored(shop: Workshop, plain: Values, mirrored: Values, view: View) -> dict[str, float]:
    """How the network does on mirrored images: in all, and in each class that it knows well enough."""
    labels = _labels(shop, view)
    measures = {"mirrored": _fitness(shop, mirrored, view)}
    for number in range(plain.shape[1] if shop.goal.task == "classes" else 0):
        mine = labels == number
        known, still = (float((part[mine].argmax(1) == number).sum()) for part in (plain, mirrored))
        if int(mine.sum()) >= _MANY and known >= _KNOWN * int(mine.sum()):
            measures[f"{MIRRORED_CLASS}{number}"] = still / known
    return measures


def _changed(
    shop: Workshop, job: Job, model: Model, plain: Values, view: View, pace: Pace
) -> dict[str, float]:
    """What part of what the network knows is left on samples that are changed, one way after another."""
    labels = _labels(shop, view)
    if shop.goal.task != "classes" or (known := _above_chance(plain, labels)) < _KNOWS:
        return {}
    rng = randomness.generator(job.seed, "changed", generation=job.generation, network=job.network)
    measures = {}
    for name in job.course.changed if job.course else ():
        shown = replace(view, augment=Augmenter((name,), shop.scaling, rng))
        measures[CHANGED + name] = _above_chance(model.answers(shown, pace), labels) / known
    return measures


def _above_chance(answers: Values, labels: Values) -> float:
    """The mean recall of the classes, from 0 for any constant answer to 1.

    >>> _above_chance(np.array([[9, 1], [9, 1], [1, 9], [9, 1]]), np.array([0, 0, 1, 1]))
    0.5
    """
    kinds = len(np.unique(labels))
    return (balanced_accuracy(answers.argmax(1), labels) * kinds - 1) / max(1, kinds - 1)


def _train(shop: Workshop, job: Job, model: Model, pace: Pace) -> int:
    """All steps of a job; how many samples that was."""
    seen, course = 0, job.course
    horizon = max(1.0, _HORIZON * course.steps) if course and course.average else 0.0
    for number, (batch, rate) in enumerate(_lessons(shop, job), 1):
        pace()
        loss = model.step(batch, rate)
        if not math.isfinite(loss):
            raise NetworkFailed(f"the loss became {loss} in training step {number}")
        if horizon:
            model.average(1 / min(number, horizon))
        seen += len(batch.rows)
    return seen


def _lessons(shop: Workshop, job: Job) -> Iterator[tuple[Batch, float]]:
    """The batches of a job, and what the learning rate is multiplied by in each."""
    training, course = shop.training, job.course
    rng, shifts, flips, changes = (
        randomness.generator(job.seed, purpose, generation=job.generation, network=job.network)
        for purpose in ("training", "shifts", "flips", "augmentation")
    )
    names = course.augment if course else training.changes
    augment = Augmenter(names, shop.scaling, changes) if names else None
    shift = min(MOST_SHIFT, training.shift * recipe(shop.family, job.phenotype).get("augmentation", 1.0))
    mirrors = (course.flip if course else training.flip is True) and len(shop.spatial) == 2
    spared = course.spared if course else training.unflipped
    may = ~np.isin(shop.taught, spared) if mirrors and spared else None
    chosen = (
        stream(shop.samples, training.batch_size, course.start, course.steps, job.seed, course.stream)
        if course
        else draw_batches(shop.samples, training, rng)
    )
    for number, rows in enumerate(chosen):
        moves = None
        if shift and shop.spatial:
            moves = draw_moves(len(rows), shop.spatial, shift, shifts, part=1.0 if course else 0.5)
        mirrored = draw_flips(len(rows), flips) if mirrors else None
        if mirrored is not None and may is not None:
            mirrored &= may[rows]
        size = course.size if course else None
        yield Batch(rows, moves, mirrored, size, augment), _rate(course, number)


def _rate(course: Course | None, number: int) -> float:
    """The rate in the middle of a step.

    >>> [_rate(Course(steps=2, rates=(1.0, 0.0)), number) for number in (0, 1)]
    [0.75, 0.25]
    """
    if course is None:
        return 1.0
    first, last = course.rates
    return first + (last - first) * (number + 0.5) / course.steps


def recipe(family: Family[Any], phenotype: Any) -> dict[str, float]:
    """The factors that a network brings along; none in a family without."""
    return dict(family.recipe(phenotype)) if isinstance(family, HasRecipe) else {}
