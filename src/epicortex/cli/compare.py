"""`epicortex compare`: two sets of runs. The work is done in `epicortex.paper.comparison`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex.cli.parsing import Parser, UsageError
from epicortex.text import clean, json_text

if TYPE_CHECKING:
    from epicortex.paper.comparison import Comparison


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex compare A ... --with B ... [options]"
    parser.add_argument("first", metavar="A", type=Path, nargs="*", help="run folders, or folders of them")
    parser.add_argument(
        "--with", dest="second", metavar="B", type=Path, nargs="+", action="extend", help="the other set"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        default=Path("comparison.html"),
        help="the page (comparison.html), or with the ending .svg only the plots",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and write the page."""
    if not arguments.first or not arguments.second:
        raise UsageError("two sets of runs are needed: epicortex compare A ... --with B ...")
    if arguments.out.suffix not in (".html", ".svg"):
        raise UsageError(f"--out is {str(arguments.out)!r}; it must end in .html or .svg")
    from epicortex.paper.comparison import compare, write

    comparison = compare(arguments.first, arguments.second)
    written = write(comparison, arguments.out)
    if arguments.json:
        print(json_text(as_json(comparison)))
        return 0
    _print(comparison)
    print(f"written   {', '.join(clean(str(path)) for path in written)}")
    return 0


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data. Fitness is a fraction from 0 to 1."""
    return {
        "format": 1,
        "a": [str(path) for path in comparison.folders[0]],
        "b": [str(path) for path in comparison.folders[1]],
        "measures": [
            {
                "name": one.quantity.name,
                "values": {"a": one.values[0], "b": one.values[1]},
                "difference": None if one.found is None else asdict(one.found),
                "p_holm": one.adjusted,
                "effect": None if one.found is None else one.found.effect,
            }
            for one in comparison.compared
        ],
        "notes": list(comparison.notes),
    }


def _print(comparison: Comparison) -> None:
    from rich.table import Table

    from epicortex.cli.display import plain_console
    from epicortex.paper.comparison import ABOUT, table

    console = plain_console()
    found = table(comparison)
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, name in enumerate(found.head):
        first = place == 0
        shown.add_column(name, justify="left" if first else "right", no_wrap=first, overflow="fold")
    for row in found.rows:
        shown.add_row(*map(clean, map(str, row)))
    console.print(clean(found.caption))
    console.print(shown)
    for note in comparison.notes:
        console.print(clean(note))
    console.print(ABOUT)
