"""`epicortex data`: list, check and get the built-in data sets. The work is done in `epicortex.data`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli.parsing import Parser, UsageError, unknown

if TYPE_CHECKING:
    from epicortex.data.inventory import Status
    from epicortex.data.options import Progress

_ACTIONS: Final = ("list", "check", "get")


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex data [list | check [NAME ...] | get NAME ...] [options]"
    parser.add_argument("action", nargs="?", default="list", help="list (the default), check or get")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="data sets; check takes all if none is named"
    )
    parser.add_argument("--data-dir", metavar="FOLDER", type=Path, help="where the data sets are")
    parser.add_argument("--mirror", metavar="URL", action="append", help="get from here: URL/NAME/FILE")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 2 if a data set is damaged, or one that was named is not there."""
    from epicortex.data import inventory

    folder: Path | None = arguments.data_dir
    names: Sequence[str] = arguments.names
    for name in names:
        inventory.built_in(name)
    if arguments.action == "list":
        found = [one for one in inventory.status(folder) if not names or one.name in names]
    elif arguments.action == "check":
        every = [one.name for one in inventory.status(folder)]
        found = [inventory.check(name, data_dir=folder) for name in names or every]
    elif arguments.action == "get":
        if not names:
            raise UsageError("epicortex data get needs the name of a data set; epicortex data lists them")
        with _progress(quiet=arguments.json) as progress:
            found = [
                inventory.get(name, data_dir=folder, mirrors=arguments.mirror, progress=progress)
                for name in names
            ]
    else:
        raise UsageError(f"{unknown('action', arguments.action, _ACTIONS)}; there are {', '.join(_ACTIONS)}")
    _print(found, as_json=arguments.json)
    if arguments.action == "list":
        return 0
    return 2 if any(one.state == "damaged" or (names and one.state == "missing") for one in found) else 0


def _print(found: Sequence[Status], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(one) for one in found], default=str, indent=2))
        return
    for one in found:
        print(f"{one.name:<14} {one.state:<8} {one.summary}")
        if one.state == "missing":
            print(f"{'':<14} epicortex data get {one.name} fetches it to {one.where}")
        elif one.files:
            print(f"{'':<14} in {one.where}")
        for note in one.notes:
            print(f"{'':<14} note: {note}")


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress | None]:
    """A bar for each file in a terminal, a line for each elsewhere."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        started: set[str] = set()

        def line(what: str, _done: int, total: int) -> None:
            if what not in started:
                started.add(what)
                print(f"getting {what} ({total / 1e6:.1f} MB)", file=sys.stderr)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, int] = {}

        def bar(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total or None)  # type: ignore[arg-type]

        yield bar
