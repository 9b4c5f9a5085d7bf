"""How a fitness is written, by what it measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from epicortex.measures import is_error, is_percent, named
from epicortex.text import NOTHING, PERCENT, one_line, plain

if TYPE_CHECKING:
    from epicortex.config import Config


@dataclass(frozen=True, slots=True)
class Unit:
    """How a fitness is written: in percent where it is a fraction by its nature, else as it is."""

    percent: bool
    name: str
    trained: bool = True
    """Whether networks are trained before they are scored."""
    error: bool = False
    """Whether fitness is minus the figure that people read."""

    @classmethod
    def of(cls, fitness: str) -> Unit:
        """The unit of a fitness by its name in the config.

        >>> Unit.of("accuracy").text(0.97834), Unit.of("per_millisecond").text(3.20001)
        ('97.83\xa0%', '3.2')
        """
        return cls(is_percent(fitness), one_line(named(fitness)), error=is_error(fitness))

    @classmethod
    def of_config(cls, config: Config) -> Unit:
        """The unit of a run: that of `training.fitness` where networks are trained, else a reward.

        >>> from epicortex.config.resolving import resolve
        >>> Unit.of_config(resolve("task")).text(100000.0)
        '100,000'
        """
        unit = cls.of(config.fitness_name)
        return replace(unit, trained=config.evaluator != "episodes")

    @property
    def work(self) -> str:
        """What a network's fitness costs once, in a word."""
        return "training" if self.trained else "evaluation"

    @property
    def effort(self) -> str:
        """What the time goes into."""
        return "training and scoring" if self.trained else "evaluating networks"

    def value(self, fitness: float | None) -> float | None:
        """The figure that is plotted."""
        if fitness is None or not math.isfinite(100 * fitness):
            return None
        return round(100 * fitness if self.percent else -fitness if self.error else fitness, 6)

    def text(self, fitness: float | None) -> str:
        """The figure in words."""
        value = self.value(fitness)
        if value is None:
            return NOTHING
        return f"{value:.2f}{PERCENT}" if self.percent else plain(value)

    def change(self, difference: float | None) -> str:
        """A difference of two figures.

        >>> Unit.of("accuracy").change(-0.0123)
        '−1.23'
        """
        value = self.value(difference)
        if value is None:
            return NOTHING
        sign = "+" if value >= 0 else ""
        return (f"{value:+.2f}" if self.percent else f"{sign}{plain(value)}").replace("-", "−")
