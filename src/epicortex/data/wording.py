"""Names from files as they may be shown: on one line, without control characters, not too long."""

from __future__ import annotations

from collections.abc import Sequence


def shown(name: object, most: int = 100) -> str:
    """The text of `name`, fit for a message.

    >>> shown("two\\nlines")
    'two?lines'
    """
    text = str(name)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def listing(items: Sequence[object], most: int = 5) -> str:
    """The first few items, and how many more there are.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(shown(item, 250) for item in items[:most]) + more
