"""What a run evolves networks for: a data set, a task, or a problem that only an evaluator knows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from epicortex.data import DataSet, Scaling
from epicortex.evaluation.sight import Sight
from epicortex.families.family import Problem
from epicortex.tasks import Task


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """All that a run has to know of its data: what networks take and give, and under which name."""

    name: str
    digest: str
    problem: Problem
    classes: tuple[str, ...]
    """The names of the outputs, in their order."""
    scaling: Scaling
    data: DataSet | None = None
    task: Task | None = None
    sight: Sight = field(default_factory=Sight)
    """How a task's observations are scaled."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Any, name: str = "") -> Subject:
        """A data set, a task, or a bare problem, as the subject of a run.

        >>> Subject.of(Problem((4,), 2), "poles").classes
        ('0', '1')
        """
        if isinstance(given, Problem):
            return cls(
                name=name,
                digest=hashlib.sha256(repr((name, given)).encode()).hexdigest(),
                problem=given,
                classes=tuple(map(str, range(given.outputs))),
                scaling=Scaling(1.0, (0.0,), (1.0,)),
            )
        if hasattr(given, "reward"):
            return cls(
                name=given.name,
                digest=hashlib.sha256(repr((given.name, given.problem)).encode()).hexdigest(),
                problem=given.problem,
                classes=given.answers,
                scaling=Scaling(1.0, (0.0,), (1.0,)),
                task=given,
            )
        return cls(
            name=given.name,
            digest=given.digest,
            problem=Problem(tuple(given.input_shape), len(given.classes)),
            classes=given.classes,
            scaling=given.scaling,
            data=given,
            notes=tuple(given.notes),
        )
