"""Another planned run, to be repeated: its settings and its plans, for the same data.

What decides where a run reads, and on which machine it trains, is left to whoever repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from epicortex.config import fields
from epicortex.data.options import TOTAL_PIXELS
from epicortex.ecosystem.plan import Plan
from epicortex.errors import ConfigError, StorageError
from epicortex.storage import plans
from epicortex.storage.folder import read_config

#: Sections and settings that a run's files do not decide for others.
_LEFT: Final = ("data.", "ray.", "mpi.", "training.engine", "training.workers", "training.device")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A planned run that another one repeats, bit for bit, on any number of workers."""

    folder: Path
    settings: Mapping[str, object]
    """By dotted name."""
    plans: Mapping[int, Plan]
    data: str
    data_digest: str

    def check(self, digest: str) -> None:
        """Refuse data that the plans were not made for."""
        if digest != self.data_digest:
            raise ConfigError(
                f"--plan: {self.folder} was planned for other data ({self.data}); its work can be repeated "
                "on the same samples only, read with the same options"
            )


def repeated(folder: Path) -> Repeated:
    """A run as something to repeat; a `StorageError` where it has no plans."""
    config, info = read_config(folder)
    found = plans.read(folder)
    if not found:
        raise StorageError(f"{folder} has no {plans.NAME}: it is no planned run, or has not begun")
    own = {
        name: fields.value_of(config, name)
        for name in fields.settings()
        if name != "preset" and not name.startswith(_LEFT)
    }
    # By default pictures get larger with the minutes: those that the run began with, which are not told.
    own["data.total_pixels"] = config.data.total_pixels or TOTAL_PIXELS
    # Runs of before this was a setting did not settle it.
    own["residual.start_decay"] = config.residual.start_decay or 1.0
    return Repeated(folder, own, found, info.data, info.data_digest)
