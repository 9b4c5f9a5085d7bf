"""Makes tests/fixtures/run-format-N anew: a small run in the middle of its third generation.

Run it only when the format changes, under a new number; the folders of older formats stay as they are.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from epicortex.config import FORMAT_VERSION
from epicortex.config import resolving as settings
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.run.lifecycle import evolve
from epicortex.run.loop import Watcher

FIXTURES = Path(__file__).parents[1] / "fixtures"
#: What the networks of these runs are, in every format.
FAMILY = LayeredFamily(Problem((1, 8, 8), 10))
SMALL = {
    "evolution.generations": 3,
    "evolution.initial_networks": 4,
    "evolution.max_networks": 4,
    "evolution.initial_species": 2,
    "evolution.max_species": 2,
    "evolution.max_parameters": 2000,
    "evolution.seed": 7,
    "training.engine": "serial",
    "training.backend": "torch",
    "training.fitness_on": "validation",
}


class StopLate(Watcher):
    """Stops the run when the first network of its last generation is back; those under way are waited for."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._seen = 0

    def progress(self, done: int, total: int, failed: str | None = None) -> None:
        """Count generations by their first networks."""
        self._seen += done == 1
        if self._seen == 3:
            self.stop.set()


def make(place: Path) -> Path:
    """A run that was stopped in its third generation, after two checkpoints, with a journal."""
    watcher = StopLate()
    config = settings.resolve("paper", SMALL)
    evolve("digits", config, out=place, watcher=watcher, stop=watcher.stop, command="epicortex evolve digits")
    shutil.rmtree(place / "tensorboard")
    (place / "lock").unlink()
    return place


if __name__ == "__main__":
    fixture = FIXTURES / f"run-format-{FORMAT_VERSION}"
    shutil.rmtree(fixture, ignore_errors=True)
    make(fixture)
