"""Tasks with a reward: what `epicortex evolve xor` and the like evolve networks for."""

from __future__ import annotations

from typing import Any, Final

from epicortex.errors import DataError
from epicortex.tasks.physics import Policy
from epicortex.tasks.poles import DOUBLE, HIDDEN, POLE
from epicortex.tasks.task import Task
from epicortex.tasks.xor import Xor

__all__ = ["TASKS", "Policy", "Task", "find", "given", "is_task", "preset_for"]

TASKS: Final[dict[str, Task]] = {task.name: task for task in (Xor(), POLE, DOUBLE, HIDDEN)}


def is_task(name: object) -> bool:
    """Whether a person means a task, not data.

    >>> is_task("xor"), is_task("mnist")
    (True, False)
    """
    return isinstance(name, str) and name in TASKS


def preset_for(data: object) -> tuple[str, dict[str, Any]]:
    """The preset where nobody names one, and the settings that suit a task.

    >>> preset_for("digits"), preset_for("pole")[0]
    (('default', {}), 'task')
    """
    if not is_task(data):
        return "default", {}
    task = find(str(data))
    solved = {} if task.solved is None else {"evolution.target": task.solved}
    return "task", {**solved, **task.settings}


def given(data: object) -> Task | None:
    """The task that somebody names; None where it is data."""
    return find(str(data)) if is_task(data) else None


def find(name: str) -> Task:
    """The task of this name."""
    if name not in TASKS:
        raise DataError(f"there is no task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]
