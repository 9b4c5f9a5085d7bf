"""A table as pages show it, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row names the row."""

    caption: str
    head: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    words: frozenset[int] = frozenset()
    """The columns that hold words, not figures."""


def markdown(table: Table) -> str:
    """A table in Markdown.

    >>> print(markdown(Table("", ("run", "fitness"), [("a|b", 0.5)])))
    | run | fitness |
    | --- | ---: |
    | a\\|b | 0.5 |
    """

    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    aligned = ["---" if place in {0, *table.words} else "---:" for place in range(len(table.head))]
    return "\n".join([line(table.head), line(aligned), *map(line, table.rows)])
