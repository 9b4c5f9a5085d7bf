"""What goes to a worker and what comes back: the plain data that every engine carries.

Both hold arrays and plain values only. A job names everything its result depends on, so that it gives the
same outcome wherever and however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from epicortex.families.family import Array, Shape

Sums: TypeAlias = Mapping[str, tuple[float, ...]]
"""What evaluations add up for those after them, by name; what the numbers mean is the evaluator's affair."""

#: With the number of a class, a measure: what part of its recall a network keeps on mirrored images.
MIRRORED_CLASS: Final = "mirrored "
#: With the name of a change, a measure: what part of what a network knows is left on samples changed so.
CHANGED: Final = "changed "


@dataclass(frozen=True, slots=True)
class Course:
    """How a network is trained in one generation of a planned run: counted work, nothing from a clock.

    Batches come from an endless stream: one order of all samples after another. Networks on the same stream
    see the same samples in the same order.
    """

    steps: int
    start: int = 0
    """How many batches of the stream went before."""
    stream: int = 0
    size: Shape | None = None
    """The spatial size that images are averaged down to while training and scoring; None leaves them."""
    rates: tuple[float, float] = (1.0, 1.0)
    """What the learning rate is multiplied by at the first step and after the last; on a line between."""
    flip: bool = False
    spared: tuple[int, ...] = ()
    """Classes whose images are not mirrored, where others are."""
    augment: tuple[str, ...] = ()
    """How else samples are changed."""
    average: bool = False
    """Whether the mean of the last weights is what is scored, and kept beside the weights themselves."""
    scored: int | None = None
    """How many samples fitness is measured on; None: all."""
    mirrored: bool = False
    """Whether the fitness on mirrored images is measured, too, as the measure `mirrored`, and what part of
    its recall the network keeps there in each class (`MIRRORED_CLASS` and the number of the class)."""
    changed: tuple[str, ...] = ()
    """For which changes of samples it is measured, too, how much a network still knows (`CHANGED` and the
    name). One that knows little is not asked, nor is what answers in numbers or sets of labels."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Evaluate one network in one generation."""

    network: int
    generation: int
    seed: int
    phenotype: Any
    """Known to the evaluator through the run's family."""
    newborn: bool = False
    """Newborns are scored before any training."""
    train: bool = True
    """False where newborns are only scored in their first generation."""
    rate: float = 1.0
    """What the optimiser's learning rate is multiplied by."""
    course: Course | None = None
    """How it is trained where the run is planned; None: as the section `training` says."""
    sums: Sums = field(default_factory=dict)
    """What the outcomes of all generations before this one have added up."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of a job. A failed network has a reason and neither weights nor fitness."""

    network: int
    generation: int
    phenotype: Any | None = None
    """The trained network; the job's own where it was only scored."""
    fitness: float | None = None
    fitness_before: float | None = None
    """A newborn's fitness before any training."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """What else was measured, by name."""
    losses: Array | None = None
    """The loss of each sample that fitness was measured on, in their order: for paired comparisons."""
    sums: Sums = field(default_factory=dict)
    """What this evaluation adds to the sums of all."""
    failed: str | None = None
    samples: int = 0
    """How many samples it was trained on, repetitions included."""
    train_seconds: float = 0.0
    score_seconds: float = 0.0
