"""Tasks with a reward: what `epicortex evolve xor` and the like evolve networks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epicortex.errors import DataError
from epicortex.tasks.gym import PREFIX, gym_task
from epicortex.tasks.own import OwnTask, is_own
from epicortex.tasks.physics import Policy
from epicortex.tasks.poles import DOUBLE, HIDDEN, POLE
from epicortex.tasks.task import Task
from epicortex.tasks.xor import Xor

__all__ = ["TASKS", "Policy", "Task", "find", "given", "is_task", "preset_for"]

_OURS: Final[tuple[Task, ...]] = (Xor(), POLE, DOUBLE, HIDDEN)
TASKS: Final = {task.name: task for task in _OURS}


def is_task(name: object) -> bool:
    """Whether this is the name of a task of ours, or of an environment of gymnasium.

    >>> is_task("xor"), is_task("gym:CartPole-v1"), is_task("mnist")
    (True, True, False)
    """
    return isinstance(name, str) and (name in TASKS or name.startswith(PREFIX))


def find(name: str) -> Task:
    """The task of this name.

    >>> find("double-pole").problem.input_shape
    (6,)
    """
    if name.startswith(PREFIX):
        return gym_task(name)
    if name not in TASKS:
        raise DataError(f"there is no task {name!r}; there are {', '.join(TASKS)} and {PREFIX}NAME")
    return TASKS[name]


def given(data: object, own: Mapping[str, Any] | None = None) -> Task | None:
    """The task that somebody names or hands over; None where it is data. `own` are their own, by name."""
    if isinstance(data, str) and data in (own or {}):
        return OwnTask.made(data, (own or {})[data])
    if is_own(data):
        return OwnTask(str(getattr(data, "name", type(data).__name__)), data)
    return find(str(data)) if is_task(data) else None


def preset_for(data: object, own: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """The preset where nobody names one, and the settings that suit a task.

    >>> preset_for("digits"), preset_for("pole")[0]
    (('default', {}), 'task')
    """
    task = given(data, own)
    if task is None:
        return "default", {}
    solved = {} if task.solved is None else {"evolution.target": task.solved}
    return "task", {**solved, **task.settings}
