"""Numbers as people read them: fitness in percent, times in hours and minutes, counts with separators."""

from __future__ import annotations

from typing import Final

NOTHING: Final = "–"


def percent(fraction: float | None) -> str:
    """A fitness for people.

    >>> percent(0.97834), percent(None)
    ('97.83 %', '–')
    """
    return NOTHING if fraction is None else f"{100 * fraction:.2f} %"


def duration(seconds: float | None) -> str:
    """A time for people, no more precise than of use.

    >>> [duration(seconds) for seconds in (0.42, 8, 83, 3600, 90_061)]
    ['0.4 s', '8.0 s', '1 min 23 s', '1 h 0 min', '25 h 1 min']
    """
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def count(number: float | None) -> str:
    """A count with separators.

    >>> count(21034), count(21034.6)
    ('21,034', '21,035')
    """
    return NOTHING if number is None else f"{round(number):,}"


def plural(number: int, word: str, words: str | None = None) -> str:
    """A number with its noun.

    >>> plural(1, "network"), plural(3, "network"), plural(2, "species", "species")
    ('1 network', '3 networks', '2 species')
    """
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def clean(text: str) -> str:
    """One line without control characters: what a file or a file name says must not steer a terminal.

    >>> clean("a\\nb \\x1b[31mred")
    'a b ?[31mred'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
