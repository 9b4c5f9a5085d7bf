"""`epicortex report`: writes the page about a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from epicortex.cli.parsing import Parser, add_plugin, add_trust
from epicortex.text import clean


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex report RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run, also of one going on")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write it (RUN/report.html)")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where the built-in data sets are")
    add_plugin(parser)
    add_trust(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from epicortex import registry, report

    path = report.write(
        arguments.folder,
        out=arguments.out,
        data_dir=arguments.data_dir,
        parts=registry.load(arguments.plugin).parts,
        trust=arguments.trust,
    )
    print(clean(str(path)))
    return 0
