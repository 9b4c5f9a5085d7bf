"""`epicortex export`: the champion as a file for others. The work is done in `champion.exporting`."""

from __future__ import annotations

import argparse
from pathlib import Path

from epicortex.cli.parsing import Parser, UsageError, add_plugin
from epicortex.text import clean, plural


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex export RUN --to FILE"
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run, or a .safetensors file")
    parser.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        help=".onnx, .pt2 (torch.export) or .safetensors, which gets a genome.json beside it",
    )
    add_plugin(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what it takes and gives."""
    if arguments.to is None:
        raise UsageError("--to FILE is missing: its ending, .onnx, .pt2 or .safetensors, says what to write")
    from epicortex import registry
    from epicortex.champion.exporting import check_target, export
    from epicortex.run.record import load_champion

    check_target(arguments.to)
    champion = load_champion(arguments.run, registry.load(arguments.plugin).parts)
    path = export(champion, arguments.to)
    shape = ", ".join(map(str, champion.outline.input_shape))
    print(f"wrote {clean(str(path))} ({path.stat().st_size:,} bytes)")
    if path.suffix == ".safetensors":
        print(f"with {clean(str(path.with_name('genome.json')))}; epicortex.load reads it")
    else:
        white = f" from 0 to {champion.scaling.divisor:g}" if len(champion.outline.input_shape) == 3 else ""
        print(f"input   float32 [batch, {shape}], raw values{white}: scaling is part of it")
        classes = plural(len(champion.classes), "class", "classes")
        print(f"output  logits [batch, {len(champion.classes)}] of {classes}, whose names are part of it")
    return 0
