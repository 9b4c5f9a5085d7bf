"""One fixed network, trained by several optimisers at equal work, without a search: what a recipe is worth.

`python -m benchmarks.recipes cifar10 --widths 14 35 88 --blocks 0 1 1` trains the same first weights with
each of the optimisers, in the same number of steps, no clock being read. Every figure is a line of JSON;
`--out FILE` keeps them, and what FILE has is not run again. `--steps-only` says what a training step costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import epicortex
from benchmarks import evolved
from benchmarks.arms import PHOTOGRAPHS
from epicortex import native
from epicortex.errors import EpiCortexError
from epicortex.families.residual import programs
from epicortex.families.residual.genome import Block, Genome, Stage
from epicortex.native.optimisers import SGD, OrthogonalSGD

OPTIMISERS: Final[dict[str, dict[str, Any]]] = {
    "SGD": evolved.SGD,
    "OrthogonalSGD": dict(epicortex.configure().training.optimiser_arguments),
}
#: Classes of Fashion-MNIST that point one way: sandals, sneakers and boots.
_UNFLIPPED: Final[Mapping[str, tuple[int, ...]]] = {"fashion-mnist": (5, 7, 9)}
_BATCH: Final = 128


def structure(shape: tuple[int, ...], widths: Sequence[int], blocks: Sequence[int], outputs: int) -> Genome:
    """Stages of 3×3 kernels, of stride 2 but for the first, with so many blocks each.

    >>> str(structure((3, 32, 32), (4, 8), (0, 1), 10))
    'conv 4 (3×3) → conv 8/2×2 (3×3) → block 8 (3×3) → out 10'
    """

    def kernels(count: int) -> tuple[tuple[int, int], ...]:
        return ((3, 3),) * count

    stages = [
        Stage(
            place,
            (1, 1) if place == 0 else (2, 2),
            tuple(range(width)),
            kernels(width),
            tuple(
                Block(number, tuple(range(width)), kernels(width), kernels(width)) for number in range(count)
            ),
        )
        for place, (width, count) in enumerate(zip(widths, blocks, strict=True))
    ]
    return Genome(shape, tuple(stages), tuple(range(outputs)))


def trained(source: str, genome: Genome, optimiser: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a network comes to with an optimiser, by siblings that are averaged, small images first."""
    arguments = {**OPTIMISERS[optimiser]}
    if options.matrix_rate is not None and optimiser == "OrthogonalSGD":
        arguments["matrix_rate"] = options.matrix_rate
    name = Path(source).name
    network = evolved.drawn(genome.to_dict(), options.seed)
    changes = {
        "budget.search": 0.0,
        "budget.siblings": 2,
        "budget.steps": options.steps,
        "evolution.minutes": None,
        "evolution.generations": options.generations,
        "residual.start_cost": genome.cost,
        "residual.start_parameters": genome.parameters,
        "training.flip": name in PHOTOGRAPHS or name in _UNFLIPPED,
        "training.unflipped": _UNFLIPPED.get(name, ()),
        "training.optimiser": optimiser,
        "training.optimiser_arguments": arguments,
        "training.optimiser_state": "inherited",
    }
    config = evolved.settings(changes, seed=options.seed, minutes=10.0, cores=options.cores)
    with tempfile.TemporaryDirectory() as folder:
        found = evolved.figures(
            source, config, began=time.monotonic(), folder=Path(folder) / "run", ancestor=network
        )
    return {name: found[name] for name in ("test", "validation", "parameters", "multiplications", "seconds")}


def step_seconds(genome: Genome, rounds: int = 15) -> dict[str, float]:
    """The processor time of a training step with each optimiser, turn and turn about."""
    program = native.Program(genome.input_shape, programs.operations(genome))
    rng = np.random.default_rng(1)
    parameters = rng.normal(0, 0.1, program.parameters).astype(np.float32)
    images = rng.integers(0, 255, (_BATCH, *genome.input_shape), np.uint8)
    labels = rng.integers(0, genome.outputs, _BATCH)
    optimisers = {"SGD": SGD(lr=0.0, momentum=0.9), "OrthogonalSGD": OrthogonalSGD(lr=0.0, momentum=0.9)}
    assert isinstance(optimisers["OrthogonalSGD"], OrthogonalSGD)
    optimisers["OrthogonalSGD"].matrices = program.matrices()
    networks = {
        name: native.Network(program, parameters.copy(), program.initial_state()) for name in optimisers
    }
    times: dict[str, list[float]] = {name: [] for name in optimisers}
    for _ in range(rounds):
        for name, optimiser in optimisers.items():
            began = time.thread_time()
            networks[name].step(images, np.arange(_BATCH), labels, optimiser=optimiser)
            times[name].append(time.thread_time() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """As the command line says."""
    options = _parsed(arguments)
    try:
        shape, outputs = _problem(options.data)
        genome = structure(shape, options.widths, options.blocks, outputs)
        if options.steps_only:
            seconds = step_seconds(genome)
            print(json.dumps({**seconds, "ratio": seconds["OrthogonalSGD"] / seconds["SGD"]}))
            return 0
        for optimiser in options.optimisers:
            _once(options, genome, optimiser)
    except EpiCortexError as error:
        print(f"recipes: {error}", file=sys.stderr)
        return 2
    return 0


def _once(options: argparse.Namespace, genome: Genome, optimiser: str) -> None:
    key = {
        "data": Path(options.data).name,
        "structure": str(genome),
        "optimiser": optimiser,
        "matrix_rate": options.matrix_rate if optimiser == "OrthogonalSGD" else None,
        "generations": options.generations,
        "steps": options.steps * (options.generations - 1),
        "seed": options.seed,
    }
    if options.out and options.out.exists():
        known = [json.loads(line) for line in options.out.read_text().splitlines()]
        if any(key.items() <= line.items() for line in known):
            print(f"{optimiser}: done already")
            return
    line = json.dumps({**key, **trained(options.data, genome, optimiser, options)})
    print(line, flush=True)
    if options.out:
        with options.out.open("a") as file:
            file.write(line + "\n")


def _problem(source: str) -> tuple[tuple[int, ...], int]:
    data = epicortex.load_data(source)
    return data.input_shape, len(data.classes)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recipes", description=(__doc__ or "").split("\n\n", 1)[0]
    )
    parser.add_argument("data", help="the built-in name or the path of a data set of images")
    parser.add_argument("--widths", type=int, nargs="+", default=[14, 35, 88], help="of the stages")
    parser.add_argument("--blocks", type=int, nargs="+", default=[0, 1, 1], help="in each stage")
    parser.add_argument("--optimisers", nargs="+", choices=list(OPTIMISERS), default=list(OPTIMISERS))
    parser.add_argument("--matrix-rate", type=float, help="of OrthogonalSGD, if not the usual one")
    parser.add_argument("--generations", type=int, default=41)
    parser.add_argument("--steps", type=int, default=68, help="training steps of a generation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep the figures in this file, a line each")
    parser.add_argument("--steps-only", action="store_true", help="only what a step costs")
    options = parser.parse_args(arguments)
    if len(options.widths) != len(options.blocks):
        parser.error("--widths and --blocks are of one length: a number for each stage")
    return options


if __name__ == "__main__":
    sys.exit(main())
