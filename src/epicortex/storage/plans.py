"""plan.jsonl: the plan of every generation of a planned run, durable before the generation begins.

A run that was broken off goes on with the plan that is written here; one that has another's repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from epicortex.ecosystem.plan import Plan
from epicortex.errors import StorageError
from epicortex.storage import atomic, strict

NAME: Final = "plan.jsonl"
_MOST: Final = 100_000_000


def read(folder: Path) -> dict[int, Plan]:
    """The plans of a run by generation; what a crash left unfinished at the end is left out."""
    path = folder / NAME
    if not path.exists():
        return {}
    text = atomic.read_file(path, limit=_MOST)
    plans: dict[int, Plan] = {}
    for number, line in enumerate(text[: text.rfind(b"\n") + 1].splitlines(), 1):
        where = f"{path}, line {number}"
        plan = strict.build(Plan, strict.parse(line, where), where)
        if plan.generation in plans:
            raise StorageError(f"{where}: generation {plan.generation} is planned twice")
        plans[plan.generation] = plan
    return plans


def write(folder: Path, plans: Mapping[int, Plan]) -> None:
    """Replace the file: all plans in the order of their generations, durable when this returns."""
    lines = [strict.dump(strict.plain(plans[generation])) + b"\n" for generation in sorted(plans)]
    atomic.replace_file(folder / NAME, lines)
