"""Figures and texts as people read them; what a file says stays one printable line."""

from __future__ import annotations

import html
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Final

NOTHING: Final = "–"
#: With a space that no line ends at.
PERCENT: Final = "\xa0%"
_LONGEST: Final = 80


def percent(fraction: float | None) -> str:
    """A fitness for people.

    >>> percent(0.97834), percent(None)
    ('97.83 %', '–')
    """
    return NOTHING if fraction is None else f"{points(fraction)} %"


def directed(type: str, direction: str) -> str:
    """A mutation's type with what it does to the size of a network.

    >>> directed("node", "grow"), directed("node", "shrink"), directed("weights", "same")
    ('node +', 'node −', 'weights')
    """
    return f"{type} {({'grow': '+', 'shrink': '−'}).get(direction, '')}".rstrip()


def plain(figure: float | None) -> str:
    """A fitness that is no fraction, such as a reward.

    >>> plain(100000.0), plain(3.20001), plain(-12.34567), plain(None)
    ('100,000', '3.2', '-12.35', '–')
    """
    if figure is None:
        return NOTHING
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"


def times(shape: Iterable[int]) -> str:
    """A shape.

    >>> times((3, 5))
    '3×5'
    """
    return "×".join(map(str, shape))


def points(fraction: float | None) -> str:
    """A fitness in percent for a table whose heading says so.

    >>> points(0.97834), points(None)
    ('97.83', '–')
    """
    return NOTHING if fraction is None else f"{100 * fraction:.2f}"


def share(part: float, whole: float) -> str:
    """A part in percent.

    >>> share(1, 3), share(0, 0), share(9999, 10000)
    ('33.3\xa0%', '–', '99.99\xa0%')
    """
    if whole <= 0:
        return NOTHING
    percent = 100 * part / whole
    return f"{percent:.{2 if 99 < percent < 100 else 1}f}{PERCENT}"


def duration(seconds: float | None) -> str:
    """A time, no more precise than of use.

    >>> [duration(seconds) for seconds in (0, 0.42, 8, 83, 1234, 90_061)]
    ['0.00 s', '0.42 s', '8.0 s', '1 min 23 s', '21 min', '25 h 1 min']
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 1:
        return f"{seconds:.2f} s"
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


def span(words: Callable[[float], str], numbers: Sequence[float]) -> str:
    """From the least to the greatest, or just what they all are.

    >>> span(count, [1200, 900]), span(count, [900])
    ('900 to 1,200', '900')
    """
    low, high = words(min(numbers)), words(max(numbers))
    return low if low == high else f"{low} to {high}"


def plural(number: int, word: str, words: str | None = None) -> str:
    """A number with its noun.

    >>> plural(1, "network"), plural(3000, "network"), plural(2, "species", "species")
    ('1 network', '3,000 networks', '2 species')
    """
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def listed(words: Iterable[str]) -> str:
    """Words with commas and an "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The name that was most likely meant, if any is near.

    >>> nearest("validaton", ["test", "validation"])
    'validation'
    """
    import difflib

    close = difflib.get_close_matches(name, list(names), 1, cutoff)
    return close[0] if close else None


def apart(names: Sequence[str], most: int = 12) -> list[str]:
    """Names without a long beginning that all of them share: where there is little room, the rest says more.

    >>> apart(["leaf of Quercus robur", "leaf of Quercus rubra"]), apart(["cats", "cars"])
    (['… robur', '… rubra'], ['cats', 'cars'])
    """
    ends = min(names, default=""), max(names, default="")  # what these share, all share
    same = next((at for at, pair in enumerate(zip(*ends, strict=False)) if pair[0] != pair[1]), 0)
    start = ends[0][: ends[0].rfind(" ", 0, same) + 1]
    if len(start) < most:
        return list(names)
    return [f"… {name[len(start) :]}" for name in names]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What a message that refuses a name ends with; nothing where no name is near.

    >>> did_you_mean("evolv", ["evolve", "show"]), did_you_mean("x", ["evolve"])
    (' (did you mean evolve?)', '')
    """
    guess = nearest(name, names)
    return "" if guess is None else f" (did you mean {guess}?)"


def clean(text: str) -> str:
    """One line without control characters: what a file or a file name says must not steer a terminal.

    >>> clean("a\\nb \\x1b[31mred")
    'a b ?[31mred'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def shell(words: Iterable[str]) -> str:
    """Words as a command that can be copied into a shell; what cannot be printed is written as an escape.

    >>> print(shell(["epicortex", "show", "my run"]))
    epicortex show 'my run'
    >>> print(shell(["show", "a\\x1b[31m'b"]))
    show $'a\\x1b[31m\\'b'
    """
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_shell_letter, word))}'"


def _shell_letter(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))


def json_text(value: object) -> str:
    """Plain data as JSON that a terminal can show: what it could take for a command is escaped.

    >>> print(json_text({"name": "Zürich \\x9b31m"}))
    {
      "name": "Zürich \\u009b31m"
    }
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return re.sub(r"[^ -~\n]", lambda letter: _json_letter(letter[0]), text)


def _json_letter(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


def markdown(text: str) -> str:
    """A text from a file for a page in Markdown: one line, in which nothing is markup.

    >>> markdown("<b>*cat*</b>\\n")
    '&lt;b&gt;\\\\*cat\\\\*&lt;/b&gt;'
    """
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(clean(text), quote=False))


def one_line(text: str, longest: int = _LONGEST) -> str:
    """A text from a file for a page or a message: clean, and cut where it is too long.

    >>> one_line("abcdef\\n", 4)
    'abc…'
    """
    line = clean(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def cell(text: str) -> str:
    """A text that a spreadsheet takes for a text: one that would begin a formula gets an apostrophe.

    >>> cell("=1+1"), cell("cat")
    ("'=1+1", 'cat')
    """
    line = clean(text)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
