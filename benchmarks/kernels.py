"""How the kernels of a run change over its generations, and what its convolutions come to.

`python -m benchmarks.kernels RUN` reads a run folder: nothing is timed, so every machine says the same.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from epicortex.families.family import Shape
from epicortex.families.layered.genome import Genome
from epicortex.run.record import read_run


def genomes(run: Path, wanted: Sequence[int]) -> dict[int, list[Genome]]:
    """The genomes of all networks of some generations; a line that has only a hash has the genome before."""
    found: dict[int, list[Genome]] = {generation: [] for generation in wanted}
    known: dict[int, Genome] = {}
    for line in read_run(run).networks():
        if not isinstance(line.genome, str):
            known[line.id] = Genome.from_dict(line.genome)
        if line.generation in found:
            found[line.generation].append(known[line.id])
    return {generation: own for generation, own in found.items() if own}


def multiplications(genome: Genome) -> int:
    """What the convolutions of a network take for one picture, without the zeros around small kernels."""
    return sum(
        connections * math.prod(output[1:])
        for layer, connections, output in zip(
            genome.layers, genome.layer_connections, genome.output_shapes, strict=True
        )
        if layer.type == "conv"
    )


def described(generation: int, networks: Sequence[Genome]) -> str:
    """A row of the table."""
    layers = [layer for genome in networks for layer in genome.hidden if layer.type == "conv"]
    kernels: Counter[Shape] = Counter(kernel for layer in layers for kernel in layer.kernels)
    total = kernels.total()
    area = sum(math.prod(shape) * number for shape, number in kernels.items()) / total
    single = sum(number for shape, number in kernels.items() if math.prod(shape) == 1) / total
    oblong = sum(number for shape, number in kernels.items() if len(set(shape)) > 1) / total
    shapes = sum(len(set(layer.kernels)) for layer in layers) / len(layers)
    work = sum(map(multiplications, networks)) / len(networks)
    return (
        f"{generation:>10}  {area:>9.1f}  {single:>8.0%}  {oblong:>10.0%}  {total / len(layers):>13.1f}  "
        f"{shapes:>14.1f}  {work:>25,.0f}"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--generations", type=int, nargs="+", default=[1, 25, 30, 50, 100])
    given = parser.parse_args()
    print(
        f"{'generation':>10}  {'mean area':>9}  {'size 1':>8}  {'not square':>10}  {'kernels/layer':>13}  "
        f"{'shapes/layer':>14}  {'multiplications/picture':>25}"
    )
    for generation, networks in genomes(given.run, given.generations).items():
        print(described(generation, networks))


if __name__ == "__main__":
    main()
