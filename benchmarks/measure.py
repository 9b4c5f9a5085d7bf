"""Ratios of two things measured alternately in one process: what is left when the machine is noisy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ratio:
    """Median seconds of both sides, and the median of the ratios of neighbouring measurements."""

    ours: float
    theirs: float
    ratio: float
    spread: tuple[float, float]
    """The lower and the upper quartile of the ratios."""

    def __str__(self) -> str:
        low, high = self.spread
        return (
            f"{self.ours * 1e3:9.3f} ms against {self.theirs * 1e3:9.3f} ms: {self.ratio:.3f} "
            f"(quartiles {low:.3f} to {high:.3f})"
        )


def row(what: str, seen: str) -> None:
    """Print a figure as a line of the table that `make bench` ends with."""
    print(f"| {what} | {seen} |", flush=True)


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], object]) -> float:
    """How much of a processor one call takes, whoever else is running."""
    start = time.process_time()
    work()
    return time.process_time() - start


def matrix_speed(for_seconds: float = 0.5) -> float:
    """Multiplications a second of numpy's matrix product, as fast as it gets: the machine's speed just now.

    >>> matrix_speed(0.01) > 1e6
    True
    """
    matrix = np.ones((1024, 1024), np.float32)
    end, best = time.perf_counter() + for_seconds, seconds(lambda: matrix @ matrix)
    while time.perf_counter() < end:
        best = min(best, seconds(lambda: matrix @ matrix))
    return float(matrix.shape[0]) ** 3 / best


def alternate(ours: Callable[[], object], theirs: Callable[[], object], *, rounds: int = 20) -> Ratio:
    """Measure both, turn and turn about, after one warm-up call of each."""
    ours()
    theirs()
    pairs = []
    for index in range(rounds):
        # whoever goes first meets a colder cache: take turns at that as well
        if index % 2:
            pairs.append((seconds(ours), seconds(theirs)))
        else:
            second = seconds(theirs)
            pairs.append((seconds(ours), second))
    ratios = sorted(a / b for a, b in pairs)
    quartiles = statistics.quantiles(ratios, n=4)
    return Ratio(
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(ratios),
        (quartiles[0], quartiles[2]),
    )
