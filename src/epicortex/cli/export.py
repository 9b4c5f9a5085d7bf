"""`epicortex export`: the champion as a file for others. The work is done in `champion.exporting`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from epicortex.cli.parsing import Parser, UsageError, add_plugin, add_trust
from epicortex.text import clean, percent, plural, shell

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
        help=".onnx, .pt2 (torch.export), .safetensors (and a genome.json beside it) or .c (and a header)",
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
    parser.add_argument(
        "--int8",
        action="store_true",
        help="an ONNX file that computes with 8 bits; ranges are taken from the run's data",
    )
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="where the built-in data sets are")
    add_plugin(parser)
    add_trust(parser)


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
        raise UsageError(
            "--to FILE is missing: its ending, .onnx, .pt2, .safetensors or .c, says what to write"
        )
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
    if arguments.int8:
        return _eight_bits(champion, arguments)
    path = export(champion, arguments.to, pixels=arguments.pixels)
    print(f"wrote {clean(str(path))} ({path.stat().st_size:,} bytes)")
    if path.suffix == ".safetensors":
        print(f"with {clean(str(path.with_name('genome.json')))}; epicortex.load reads it")
    elif path.suffix == ".c":
        _say_c(champion, path)
    else:
        _say_graph(champion, pixels=arguments.pixels)
    return 0


def _eight_bits(champion: Champion, arguments: argparse.Namespace) -> int:
    """Write the file of 8 bits, and say what that costs on the test set."""
    from epicortex.champion import quantising
    from epicortex.champion.exporting import export, onnx_model
    from epicortex.run import own_data
    from epicortex.run.record import read_run

    if not arguments.run.is_dir():
        raise UsageError("--int8 needs the data of the run: give its folder, not a file")
    data = own_data.find(read_run(arguments.run), arguments.data_dir, trust=arguments.trust)
    path = export(champion, arguments.to, int8=data.x_train)
    whole, small = onnx_model(champion), path.read_bytes()
    print(f"wrote {clean(str(path))} ({len(small):,} bytes; with 32 bits it has {len(whole):,})")
    _say_graph(champion)
    if len(data.y_test):
        right = [(quantising.answers(model, data.x_test) == data.y_test).mean() for model in (whole, small)]
        before, after = (percent(float(one)) for one in right)
        tests = plural(len(data.y_test), "test sample")
        print(f"accuracy  {before} with 32 bits, {after} with 8 bits, on {tests}")
    return 0


def _say_graph(champion: Champion, *, pixels: bool = False) -> None:
    shape = champion.outline.input_shape
    if pixels:
        channels, height, width = shape
        print(f"input   uint8 [batch, {height}, {width}, {channels}], pixels: scaling is part of it")
    else:
        white = f" from 0 to {champion.scaling.divisor:g}" if len(shape) == 3 else ""
        sizes = ", ".join(map(str, shape))
        print(f"input   float32 [batch, {sizes}], raw values{white}: scaling is part of it")
    classes = plural(len(champion.classes), "class", "classes")
    print(f"output  logits [batch, {len(champion.classes)}] of {classes}, whose names are part of it")


def _say_c(champion: Champion, path: Path) -> None:
    from epicortex.champion.c_source import identifier, measure

    size, name = measure(champion), identifier(path.stem)
    program = shell(["cc", "-std=c99", "-O2", f"-D{name.upper()}_MAIN", str(path), "-lm", "-o", name])
    print(f"with {clean(str(path.with_suffix('.h')))}, which says what to call")
    print(f"flash   {size.flash:,} bytes of constants; the code comes on top")
    print(f"RAM     {size.ram:,} bytes")
    print(f"work    {size.multiplications:,} multiplications for a sample")
    print(f"try it  {program}")
