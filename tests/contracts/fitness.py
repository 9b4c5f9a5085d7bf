"""Fitness functions that misbehave in a worker, each told by what the network puts out."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor


def right(logits: Tensor, labels: Tensor) -> float:
    """Plain accuracy."""
    return int((logits.argmax(1) == labels).sum()) / len(labels)


@dataclass(frozen=True)
class Slow:
    """Takes its time, and leaves a file for each call that began."""

    seconds: float
    folder: Path

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        (self.folder / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(self.seconds)
        return right(logits, labels)


@dataclass(frozen=True)
class Deadly:
    """Sends its own process a signal where the network is a marked one, so many times."""

    folder: Path
    times: int = 1_000_000
    number: int = signal.SIGKILL

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        if float(logits.abs().max()) > 1e5 and len(list(self.folder.iterdir())) < self.times:
            (self.folder / str(time.monotonic_ns())).touch()
            os.kill(os.getpid(), self.number)
        return right(logits, labels)
