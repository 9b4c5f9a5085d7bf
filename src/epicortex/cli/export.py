"""`epicortex export`: the champion as a file for others. The work is done in `champion.exporting`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from epicortex.cli.parsing import Parser, UsageError, add_plugin
from epicortex.text import clean, plural

if TYPE_CHECKING:
    from epicortex.champion.file import Champion


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
    parser.add_argument(
        "--pixels",
        action="store_true",
        help="take uint8 [batch, height, width, channels], as pictures come (.onnx, .pt2)",
    )
    parser.add_argument("--max-parameters", metavar="N", type=int, help="the best model that is so small")
    parser.add_argument(
        "--max-milliseconds", metavar="X", type=float, help="the best model that is so quick for one sample"
    )
    parser.add_argument(
        "--smallest-within",
        metavar="P%",
        type=_part,
        help="the smallest model whose fitness is so little below that of the best, such as 0.5%%",
    )
    add_plugin(parser)


def _part(text: str) -> float:
    """A part of the whole, as a percentage or a fraction.

    >>> _part("0.5%"), _part("0.01")
    (0.005, 0.01)
    """
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= number <= 1:
        raise ValueError("not a part")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say what it takes and gives."""
    if arguments.to is None:
        raise UsageError("--to FILE is missing: its ending, .onnx, .pt2 or .safetensors, says what to write")
    from epicortex import registry
    from epicortex.champion import front
    from epicortex.champion.exporting import check_target, export
    from epicortex.run.record import load_champion

    check_target(arguments.to)
    parts = registry.load(arguments.plugin).parts
    limits = {
        name: getattr(arguments, name) for name in ("max_parameters", "max_milliseconds", "smallest_within")
    }
    if any(limit is not None for limit in limits.values()):
        champion = front.chosen(front.read(arguments.run, parts), **limits)
    else:
        champion = load_champion(arguments.run, parts)
    path = export(champion, arguments.to, pixels=arguments.pixels)
    shape = ", ".join(map(str, champion.outline.input_shape))
    print(f"wrote {clean(str(path))} ({path.stat().st_size:,} bytes)")
    if path.suffix == ".safetensors":
        print(f"with {clean(str(path.with_name('genome.json')))}; epicortex.load reads it")
    else:
        if arguments.pixels:
            channels, height, width = champion.outline.input_shape
            print(f"input   uint8 [batch, {height}, {width}, {channels}], pixels: scaling is part of it")
            return _say_output(champion)
        white = f" from 0 to {champion.scaling.divisor:g}" if len(champion.outline.input_shape) == 3 else ""
        print(f"input   float32 [batch, {shape}], raw values{white}: scaling is part of it")
        return _say_output(champion)
    return 0


def _say_output(champion: Champion) -> int:
    classes = plural(len(champion.classes), "class", "classes")
    print(f"output  logits [batch, {len(champion.classes)}] of {classes}, whose names are part of it")
    return 0
