"""Names from files as they may be shown: on one line, without control characters, not too long."""

from __future__ import annotations

from collections.abc import Sequence

from epicortex.text import did_you_mean


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


def column_names(header: Sequence[str], most: int = 10) -> str:
    """The names of columns: the first few, and the last, where labels often stand.

    >>> column_names(["a", "b", "c", "label"], most=2)
    'a, b and 2 more (the last is label)'
    """
    last = f" (the last is {shown(header[-1], 250)})" if len(header) > most else ""
    return listing(header, most) + last


def no_column(where: object, name: str, header: Sequence[str]) -> str:
    """What a person is told who asks for a column that is not there.

    >>> no_column("birds.csv", "specie", ["photo", "species"])
    "birds.csv has no column 'specie' (did you mean species?); it has photo, species"
    """
    meant = shown(did_you_mean(name, header), 250)
    return f"{where} has no column {shown(name)!r}{meant}; it has {column_names(header)}"
