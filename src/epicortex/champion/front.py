"""The Pareto front of a run: the champion and smaller networks that are as good for their size.

Members are models like the champion, in folders of their own below RUN/front. How long one takes depends on
the machine, so that it is measured when somebody asks, and never stored.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from epicortex.champion import file as champions
from epicortex.champion.file import Champion
from epicortex.errors import StorageError
from epicortex.registry import Parts
from epicortex.storage import atomic

FOLDER: Final = "front"
_REPEATS: Final = 15


def write(run: Path, members: Sequence[Champion]) -> None:
    """Write the members, the smallest first, and remove whatever an earlier end of the run has left."""
    folder = run / FOLDER
    atomic.make_folder(folder)
    for number, member in enumerate(sorted(members, key=lambda one: one.outline.parameters), 1):
        place = folder / str(number)
        atomic.make_folder(place)
        champions.write(place, member)
    for place in _places(folder)[len(members) :]:
        atomic.remove_tree(place)


def read(run: Path, parts: Parts | None = None) -> list[Champion]:
    """All models of a run, the champion among them, from the smallest on; a file is a front of one."""
    champion = champions.read(run, parts)
    folder = run / FOLDER
    others = [] if not folder.is_dir() else _places(folder)
    members = [champions.read(place / "model.safetensors", parts) for place in others]
    return sorted((*members, champion), key=lambda one: (one.outline.parameters, one.outline.cost))


def chosen(
    members: Sequence[Champion],
    *,
    max_parameters: int | None = None,
    max_milliseconds: float | None = None,
    smallest_within: float | None = None,
) -> Champion:
    """The best member within limits; or the smallest whose fitness is so little below that of the best."""
    fitting = [one for one in members if max_parameters is None or one.outline.parameters <= max_parameters]
    if max_milliseconds is not None:
        fitting = [one for one in fitting if milliseconds(one) <= max_milliseconds]
    if not fitting:
        sizes = ", ".join(f"{one.outline.parameters:,}" for one in members)
        raise StorageError(
            f"no model of this run is so small or so quick; there are models of {sizes} parameters: evolve "
            "with --max-parameters to get smaller ones"
        )
    best = max(fitting, key=lambda one: one.facts.fitness)
    if smallest_within is None:
        return best
    enough = [one for one in fitting if one.facts.fitness >= best.facts.fitness - smallest_within]
    return min(enough, key=lambda one: one.outline.parameters)


def milliseconds(champion: Champion) -> float:
    """How long a single sample takes here, on one core: the median of a few."""
    import torch

    from epicortex.champion.module import Classifier

    model, threads = Classifier(champion), torch.get_num_threads()
    sample = torch.from_numpy(np.zeros((1, *champion.outline.input_shape), np.float32))
    try:
        torch.set_num_threads(1)
        with torch.inference_mode():
            model(sample)
            return 1000 * statistics.median(_seconds(lambda: model(sample)) for _ in range(_REPEATS))
    finally:
        torch.set_num_threads(threads)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _places(folder: Path) -> list[Path]:
    with atomic.explained(folder, "read"):
        found: Iterable[Path] = (entry for entry in folder.iterdir() if entry.name.isdecimal())
        return sorted(found, key=lambda entry: int(entry.name))
