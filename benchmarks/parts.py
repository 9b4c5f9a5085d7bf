"""Where the time of native training steps and of scoring goes, by kind of work, and the share of the peak.

- `mnist` and `svhn`: sixteen networks of a real run, and eight grown ones, as in `benchmarks.native`;
- `12-24-48`, `16-32-64@20`: residual networks of these widths, all 3×3, on images averaged down to 20×20;
  with `m` at the end of the widths, of mixed kernels that average 5 entries.

Every part's time is the lowest tenth of many steps, so other work on the machine counts little. Run it
with `python -m benchmarks.parts [names]`; `--detail` adds a line for each convolution.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks import real
from benchmarks.measure import row
from benchmarks.native import BATCH, SMALL, peak, residual
from benchmarks.workers import networks
from epicortex import native
from epicortex.families.activations import Activations
from epicortex.families.layered import programs
from epicortex.native.network import WORK

CONV = [WORK.index(name) for name in ("conv", "conv_weights", "conv_input")]


@dataclass
class Total:
    """What several networks took together."""

    seconds: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(WORK)))
    operations: float = 0.0

    def __str__(self) -> str:
        parts = sorted(zip(self.seconds / self.seconds.sum(), WORK, strict=True), reverse=True)
        return ", ".join(f"{name} {part:.1%}" for part, name in parts if part >= 0.001)


def built(name: str) -> Iterator[tuple[native.Network, native.Optimiser]]:
    """The networks of a name, ready to train."""
    if name in ("mnist", "svhn"):
        phenotypes = real.phenotypes()[::4] if name == "mnist" else networks((3, 32, 32), 8)
        for phenotype in phenotypes:
            genome = phenotype.genome
            program = native.Program(genome.input_shape, programs.operations(genome, Activations()))
            parameters = program.flatten(programs.tensors(phenotype))
            yield native.Network(program, parameters), native.Adadelta()
        return
    rng = np.random.default_rng(1)
    widths, _, size = name.partition("@")
    program = residual(
        [int(width) for width in widths.removesuffix("m").split("-")],
        SMALL if widths.endswith("m") else ((3, 3),),
    )
    program = program.resized((int(size), int(size))) if size else program
    start = [rng.normal(0, 0.1, s) if len(s) > 1 else np.ones(s) for s in program.tensor_shapes()]
    sgd = native.SGD(lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
    yield native.Network(program, program.flatten(start)), sgd


def seconds_of(
    network: native.Network, optimiser: native.Optimiser | None, shape: tuple[int, ...], rounds: int
) -> NDArray[np.float64]:
    """Seconds [parts, WORK] of one batch; without an optimiser, of scoring it."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (10 * BATCH, *shape), dtype=np.uint8), rng.integers(0, 10, 10 * BATCH)
    scaling, seen = native.Scaling(255.0, [0.5], [0.25]), []
    for _ in range(rounds + 2):
        rows = rng.permutation(len(x))[:BATCH]
        network.start_times()
        if optimiser is None:
            network.score(x, rows, scaling=scaling)
        else:
            network.step(x, rows, y[rows], scaling=scaling, optimiser=optimiser)
        seen.append(network.times())
    found: NDArray[np.float64] = np.quantile(np.array(seen[2:]), 0.1, axis=0)
    return found


def operations_of(program: native.Program) -> list[float]:
    """Multiplications and additions of a batch's way forward, in each operation."""
    pairs = zip(program.operations, program.sizes, program.shapes[1:], strict=True)
    return [
        2.0 * BATCH * weights * (int(np.prod(shape[1:])) if isinstance(operation, native.Conv) else 1)
        if isinstance(operation, native.Conv | native.Full)
        else 0.0
        for operation, (weights, _), shape in pairs
    ]


def convolutions(program: native.Program, seconds: NDArray[np.float64]) -> None:
    """A line for each: what it computes, and GFLOP/s forward, of its weights and of its input."""
    ways = [seconds[part][CONV] for part in range(len(seconds)) if seconds[part][CONV[0]] > 0]
    found = [
        (operation, shape, work)
        for operation, shape, work in zip(
            program.operations, program.shapes[1:], operations_of(program), strict=True
        )
        if isinstance(operation, native.Conv)
    ]
    for (operation, shape, work), own in zip(found, ways, strict=True):
        speeds = " ".join(f"{work / taken / 1e9:6.1f}" if taken > 1e-6 else "     -" for taken in own)
        kinds = sorted(set(operation.kernels))
        share = own.sum() / seconds.sum()
        print(
            f"  {len(operation.kernels)} kernels {kinds}, to {shape}, stride {operation.stride}: "
            f"{speeds}, {share:.1%}"
        )


def main() -> None:
    """Print a line for each name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["mnist", "svhn", "12-24-48", "16-32-64", "16-32-64@20"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--detail", action="store_true")
    options = parser.parse_args()
    for name in options.names:
        shape = (1, 28, 28) if name == "mnist" else (3, 32, 32)
        trained, scored = Total(), Total()
        for network, optimiser in built(name):
            work = operations_of(network.program)
            for total, stepper in ((trained, optimiser), (scored, None)):
                seconds = seconds_of(network, stepper, shape, options.rounds)
                total.seconds += seconds.sum(0)
                total.operations += sum(work) if stepper is None else 3 * sum(work) - work[0]
                if options.detail:
                    convolutions(network.program, seconds)
        for what, total in (("training", trained), ("scoring", scored)):
            speed, best = total.operations / total.seconds.sum(), peak()
            taken = f"{total.seconds.sum() * 1e3:.2f} ms"
            row(f"{name}, {what}", f"{taken}, {speed / 1e9:.1f} GFLOP/s, {speed / best:.0%} of peak: {total}")


if __name__ == "__main__":
    main()
