"""Figures and texts of a report as people read them; what a file says stays one short printable line."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from epicortex.text import NOTHING, one_line

#: With a space that no line ends at.
PERCENT: Final = "\xa0%"
_PERCENT: Final = frozenset({"accuracy", "balanced_accuracy"})


@dataclass(frozen=True, slots=True)
class Measure:
    """How a fitness is written: in percent where it is a fraction by its nature, else as it is."""

    percent: bool
    name: str

    @classmethod
    def of(cls, fitness: str) -> Measure:
        """The measure of a fitness by its name in the config.

        >>> Measure.of("accuracy").text(0.97834), Measure.of("per_millisecond").text(3.20001)
        ('97.83\xa0%', '3.2')
        """
        return cls(fitness in _PERCENT, one_line(fitness).replace("_", " "))

    def value(self, fitness: float | None) -> float | None:
        """The figure that is plotted."""
        if fitness is None or not math.isfinite(100 * fitness):
            return None
        return round(100 * fitness if self.percent else fitness, 6)

    def text(self, fitness: float | None) -> str:
        """The figure in words."""
        value = self.value(fitness)
        if value is None:
            return NOTHING
        return f"{value:.2f}{PERCENT}" if self.percent else f"{value:.4g}"

    def change(self, difference: float | None) -> str:
        """A difference of two figures.

        >>> Measure.of("accuracy").change(-0.0123)
        '−1.23'
        """
        value = self.value(difference)
        if value is None:
            return NOTHING
        return (f"{value:+.2f}" if self.percent else f"{value:+.4g}").replace("-", "−")


def times(shape: Iterable[int]) -> str:
    """A shape.

    >>> times((3, 5))
    '3×5'
    """
    return "×".join(map(str, shape))


def share(part: float, whole: float) -> str:
    """A part in percent.

    >>> share(1, 3), share(0, 0), share(9999, 10000)
    ('33.3\xa0%', '–', '99.99\xa0%')
    """
    if whole <= 0:
        return NOTHING
    percent = 100 * part / whole
    return f"{percent:.{2 if 99 < percent < 100 else 1}f}{PERCENT}"


def label(text: str) -> str:
    """A text from a file for a plot, which would take `<` for markup.

    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(one_line(text), quote=False)
