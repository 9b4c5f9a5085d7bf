"""Figures and texts of a report as people read them; what a file says stays one short printable line."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NOTHING: Final = "–"
#: With a space that no line ends at.
PERCENT: Final = "\xa0%"
_LONGEST: Final = 80
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


def duration(seconds: float) -> str:
    """A time, no more precise than of use.

    >>> [duration(seconds) for seconds in (0.42, 8, 83, 1234, 90_061)]
    ['0.42 s', '8.0 s', '1 min 23 s', '21 min', '25 h 1 min']
    """
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if seconds < 600:
        return f"{round(seconds) // 60} min {round(seconds) % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def count(number: float | None) -> str:
    """A count with separators.

    >>> count(21034.6)
    '21,035'
    """
    return NOTHING if number is None else f"{round(number):,}"


def plural(number: int, word: str, words: str | None = None) -> str:
    """A number with its noun.

    >>> plural(1, "network"), plural(3000, "network"), plural(2, "species", "species")
    ('1 network', '3,000 networks', '2 species')
    """
    return f"{number:,} {word if number == 1 else words or word + 's'}"


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


def listed(words: Iterable[str]) -> str:
    """Words with commas and an "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def one_line(text: str, longest: int = _LONGEST) -> str:
    """A text from a file without line breaks and control characters, cut where it is too long.

    >>> one_line("a\\nb \\x1b[31mred"), one_line("abcdef", 4)
    ('a b ?[31mred', 'abc…')
    """
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def label(text: str) -> str:
    """A text from a file for a plot, which would take `<` for markup.

    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(one_line(text), quote=False)
