"""The figures of the paper (Hadjiivanov and Blair, Table I): best, mean and deviation over 10 runs.

All are percentages after generation 100, with 64 networks at the start and 111 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Measure: TypeAlias = Literal["highest_fitness", "average_fitness", "offspring_fitness"]

#: The measures of the table, as fields of history.jsonl, and their names in the paper.
MEASURES: Final[dict[Measure, str]] = {
    "highest_fitness": "highest fitness",
    "average_fitness": "average fitness",
    "offspring_fitness": "average offspring fitness before BP",
}
#: The data sets, in the order of the table.
DATA: Final = {"mnist": "MNIST", "svhn": "SVHN", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
RUNS: Final = 10
GENERATIONS: Final = 100
INITIAL_NETWORKS: Final = 64
MAX_NETWORKS: Final = 111
#: A mean this many published deviations away from the published one counts as different.
BAND: Final = 2.0


@dataclass(frozen=True, slots=True)
class Published:
    """One cell of the table, in percent."""

    best: float
    mean: float
    deviation: float

    @property
    def low(self) -> float:
        """The lower end of the band."""
        return self.mean - BAND * self.deviation

    @property
    def high(self) -> float:
        """The upper end of the band."""
        return self.mean + BAND * self.deviation


def published(data: str, speciation: bool, measure: Measure) -> Published | None:
    """A cell of the table; None for data that the paper does not use.

    >>> published("mnist", True, "highest_fitness")
    Published(best=98.32, mean=98.13, deviation=0.15)
    """
    row = _TABLE.get((data, speciation))
    return row[list(MEASURES).index(measure)] if row else None


_TABLE: Final = {
    ("mnist", True): (
        Published(98.32, 98.13, 0.15),
        Published(97.14, 96.8, 0.4),
        Published(97.28, 95.6, 1.8),
    ),
    ("mnist", False): (
        Published(98.14, 97.98, 0.13),
        Published(95.31, 93.7, 1.1),
        Published(82.98, 72.5, 10.7),
    ),
    ("svhn", True): (
        Published(82.84, 79.86, 2.06),
        Published(76.9, 70.2, 7.5),
        Published(77.25, 66.5, 8.0),
    ),
    ("svhn", False): (
        Published(81.20, 80.22, 0.89),
        Published(70.62, 66.5, 3.1),
        Published(55.53, 44.4, 7.4),
    ),
    ("fashion-mnist", True): (
        Published(89.49, 88.54, 0.70),
        Published(87.89, 85.3, 1.4),
        Published(88.18, 82.0, 4.3),
    ),
    ("fashion-mnist", False): (
        Published(88.88, 88.44, 0.36),
        Published(85.53, 83.3, 1.1),
        Published(83.61, 64.9, 7.8),
    ),
    ("cifar10", True): (
        Published(55.52, 51.35, 3.44),
        Published(46.45, 43.9, 4.8),
        Published(45.94, 42.7, 5.1),
    ),
    ("cifar10", False): (
        Published(54.4, 52.44, 0.85),
        Published(43.87, 41.9, 1.1),
        Published(35.8, 32.4, 1.8),
    ),
}
