"""`epicortex export`: the champion as a file for others. The work is done in `champion.exporting`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicortex.cli.parsing import Parser, UsageError, add_plugin, add_trust
from epicortex.measures import USUAL, figure, named
from epicortex.text import clean, plural, shell

if TYPE_CHECKING:
    from epicortex.champion.file import Champion
    from epicortex.data import DataSet


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
        name = USUAL[champion.facts.task]
        before, after = (
            figure(name, _worth(quantising.answers(one, data.x_test), data)) for one in (whole, small)
        )
        tests = plural(len(data.y_test), "test sample")
        print(f"{named(name)}  {before} with 32 bits, {after} with 8 bits, on {tests}")
    return 0


def _worth(outputs: Any, data: DataSet) -> float:
    """The usual figure of what an ONNX file gives for the test set."""
    from epicortex.evaluation.tallies import labelled, regressed

    if data.task == "regression":
        return regressed(outputs, data.y_test, data.y_train.mean(0)).r2
    if data.task == "multilabel":
        return labelled(outputs >= 1 / 2, data.y_test).f1
    return float((outputs.argmax(1) == data.y_test).mean())


def _say_graph(champion: Champion, *, pixels: bool = False) -> None:
    shape = champion.outline.input_shape
    if pixels:
        channels, height, width = shape
        print(f"input   uint8 [batch, {height}, {width}, {channels}], pixels: scaling is part of it")
    else:
        white = f" from 0 to {champion.scaling.divisor:g}" if len(shape) == 3 else ""
        sizes = ", ".join(map(str, shape))
        print(f"input   float32 [batch, {sizes}], raw values{white}: scaling is part of it")
    from epicortex.champion.exporting import OUTPUT

    one, more = {
        "classes": ("class", "classes"),
        "regression": ("target, in its unit", "targets, in their units"),
        "multilabel": ("label", "labels"),
    }[champion.facts.task]
    what, names = OUTPUT[champion.facts.task], plural(len(champion.classes), one, more)
    print(f"output  {what} [batch, {len(champion.classes)}] of {names}, whose names are part of it")
    if champion.facts.table is not None and not champion.facts.table.plain:
        print("table   columns of text are inputs of 0 and 1: the key table of its metadata says which")


def _say_c(champion: Champion, path: Path) -> None:
    from epicortex.champion.c_source import identifier, measure

    size, name = measure(champion), identifier(path.stem)
    program = shell(["cc", "-std=c99", "-O2", f"-D{name.upper()}_MAIN", str(path), "-lm", "-o", name])
    print(f"with {clean(str(path.with_suffix('.h')))}, which says what to call")
    print(f"flash   {size.flash:,} bytes of constants; the code comes on top")
    print(f"RAM     {size.ram:,} bytes")
    print(f"work    {size.multiplications:,} multiplications for a sample")
    print(f"try it  {program}")
