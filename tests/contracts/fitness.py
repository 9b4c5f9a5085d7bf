"""Functions of a user's own that a worker calls: slow ones, deadly ones, ones that take notes."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from epicortex.engines.serving import ENVIRONMENT
from epicortex.evaluation.optimisers import find_optimiser


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
class Held:
    """The first call passes; all others wait for a file called `go`. Each leaves a file when it begins."""

    folder: Path

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        (self.folder / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        while len(list(self.folder.iterdir())) > 1 and not (self.folder / "go").exists():
            time.sleep(0.02)
        return right(logits, labels)


@dataclass(frozen=True)
class Plodding:
    """Makes optimisers that rest after every step, and add a byte to a file for it."""

    steps: Path
    seconds: float = 0.05

    def __call__(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        optimiser = find_optimiser("SGD")(parameters, lr=0.01)
        step = optimiser.step

        def resting() -> None:
            step()
            with self.steps.open("ab", 0) as stream:
                stream.write(b"x")
            time.sleep(self.seconds)

        optimiser.step = resting  # type: ignore[method-assign,assignment]
        return optimiser


@dataclass(frozen=True)
class Noting:
    """Writes down under what conditions it runs, into a file for each process."""

    folder: Path

    def __call__(self, logits: Tensor, labels: Tensor) -> float:
        conditions = {
            "threads": torch.get_num_threads(),
            "denormals flushed": float(torch.tensor([1e-39]) * 1.0) == 0.0,
            "precision": torch.get_float32_matmul_precision(),
            "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
            "large blocks come from the heap": not _own_mapping(16 * 2**20),
        }
        (self.folder / str(os.getpid())).write_text(json.dumps(conditions))
        return right(logits, labels)


def _own_mapping(size: int) -> bool:
    """Whether glibc takes a block of this size from the system, to give it back when it is freed."""

    class Mallinfo(ctypes.Structure):
        _fields_ = [(f"field{number}", ctypes.c_size_t) for number in range(10)]

    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    before = libc.mallinfo2().field3
    block = libc.malloc(size)
    mapped = libc.mallinfo2().field3 > before
    libc.free(block)
    return bool(mapped)


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
