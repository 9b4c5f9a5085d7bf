"""What goes to a worker and what comes back: the plain data that every engine carries.

Both hold arrays and plain values only. A job names everything its result depends on, so that it gives the
same outcome wherever and however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epicortex.families.family import Array


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
    failed: str | None = None
    samples: int = 0
    """How many samples it was trained on, repetitions included."""
    train_seconds: float = 0.0
    score_seconds: float = 0.0
