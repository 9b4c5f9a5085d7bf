"""Native arithmetic against torch, alternating in one process, one core.

- `mnist`: one generation (build, train on a tenth, score, export) of the 64 networks of `genomes.json`,
  against today's torch trainer; `svhn`: the same of eight grown networks at SVHN sizes.
- `residual`: training steps of residual networks of widths 12-24-48 and 16-32-64 at CIFAR sizes, all
  kernels 3×3, against a careful torch loop in channels_last; and with kernels of mixed shapes averaging 5
  entries.
- `sets`: what AVX2 and the portable code take, against the best instruction set; `peak`: shares of it.

Run it with `python -m benchmarks.native [mnist svhn residual sets]`; `--rounds` and `--networks` make it
shorter or longer. The data is noise: what is measured does not depend on what it shows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks import real
from benchmarks.measure import processor_seconds, row
from benchmarks.workers import MNIST, networks, random_data, setup
from epicortex import native, randomness
from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job
from epicortex.engines.serving import keep_freed_memory
from epicortex.evaluation.samples import draw_batches
from epicortex.families.activations import Activations
from epicortex.families.layered import programs
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.native.library import library

SVHN = ((3, 32, 32), 73_257, 26_032)
BATCH = 128
SMALL = ((3, 3), (3, 1), (1, 3))  # 5 entries on average


def generation(job: Job, data: DataSet, simd: str | None = None) -> Phenotype:
    """Build, train on a tenth, score and export one network, natively."""
    scaling = native.Scaling(data.scaling.divisor, data.scaling.mean, data.scaling.std)
    genome = job.phenotype.genome
    program = native.Program(genome.input_shape, programs.operations(genome, Activations()))
    parameters = program.flatten(programs.tensors(job.phenotype))
    network = native.Network(program, parameters, simd=simd)
    optimiser = native.Adadelta()
    rng = randomness.generator(job.seed, "training", generation=job.generation, network=job.network)
    x, y = data.x_train, data.y_train
    for rows in draw_batches(len(x), TrainingConfig(), rng):
        network.step(x, rows, y[rows], scaling=scaling, optimiser=optimiser)
    scores = network.score(data.x_test, scaling=scaling)
    float((scores.argmax(1) == data.y_test).mean())
    return programs.with_tensors(job.phenotype, program.unflatten(parameters))


def work(genome: Genome, trained: int, scored: int) -> float:
    """The multiplications and additions of one generation."""
    total = 0.0
    shapes = zip(
        genome.input_shapes, genome.layers, genome.output_shapes, genome.layer_connections, strict=True
    )
    for index, (_, layer, above, connections) in enumerate(shapes):
        times = int(np.prod(above[1:])) if layer.kernels else 1
        total += 2.0 * connections * times * (trained * (3 if index else 2) + scored)
    return total


def peak(simd: str | None = None) -> float:
    """Multiplications and additions a second, if nothing had to be loaded."""
    name = (simd or native.instruction_set()).encode()
    width = {"avx512": 16, "avx2": 8}.get(name.decode(), 16)
    rounds = 2_000_000
    library().epx_peak(name, rounds)
    return max(
        2.0 * 12 * width * rounds / processor_seconds(lambda: library().epx_peak(name, rounds))
        for _ in range(5)
    )


def generations(what: str, phenotypes: Sequence[Phenotype], data: DataSet, rounds: int) -> None:
    """Native against the trainer, network by network."""
    trainer = setup(data).evaluator()
    ours, theirs, ratios, done = 0.0, 0.0, [], 0.0
    for number, phenotype in enumerate(phenotypes, 1):
        job = Job(number, 2, 1, phenotype)
        pairs = []
        for index in range(rounds):
            order = (0, 1) if index % 2 else (1, 0)
            taken = [0.0, 0.0]
            for side in order:
                task = partial(trainer.run, job) if side else partial(generation, job, data)
                taken[side] = processor_seconds(task)
            pairs.append(taken)
        mine, other = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ours, theirs = ours + mine, theirs + other
        ratios.append(mine / other)
        done += work(phenotype.genome, round(len(data.x_train) * 0.1), len(data.x_test))
        print(
            f"{number:3d} {mine * 1e3:8.1f} ms against {other * 1e3:8.1f} ms: {mine / other:.3f}", flush=True
        )
    row(f"{what}, native / torch trainer", f"{ours / theirs:.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    best = peak()
    row(f"{what}, GFLOP/s of true work", f"{done / ours / 1e9:.1f} (trainer {done / theirs / 1e9:.1f})")
    row(f"{what}, share of measured peak ({best / 1e9:.0f} GFLOP/s)", f"{done / ours / best:.0%}")


def residual(widths: Sequence[int], kernels: Sequence[tuple[int, int]] = ((3, 3),)) -> native.Program:
    """Stages of a strided convolution and one block, batch norm everywhere, global pooling."""
    operations: list[native.Operation] = []

    def conv(width: int, stride: int) -> list[native.Operation]:
        shapes = [kernels[k % len(kernels)] for k in range(width)]
        return [native.Conv(shapes, (stride, stride), bias=False), native.Norm()]

    for stage, width in enumerate(widths):
        operations += [*conv(width, 1 if stage == 0 else 2), native.Activation("relu")]
        begin = len(operations)
        operations += [*conv(width, 1), native.Activation("relu"), *conv(width, 1)]
        operations += [native.Add(begin), native.Activation("relu")]
    operations += [native.Pool(factor=4.0), native.Full(10)]
    return native.Program((3, 32, 32), operations, native.CrossEntropy(label_smoothing=0.1))


class Block(nn.Module):
    """The same block in torch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, maps: Tensor) -> Tensor:
        inner = functional.relu(self.norm1(self.conv1(maps)), inplace=True)
        return functional.relu(maps + self.norm2(self.conv2(inner)), inplace=True)


class Head(nn.Module):
    """Global pooling and the output layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, 10)

    def forward(self, maps: Tensor) -> Tensor:
        return self.out(4 * maps.mean((2, 3)))


def careful(widths: Sequence[int]) -> nn.Module:
    """The same network in torch, channels_last."""
    modules: list[nn.Module] = []
    below = 3
    for stage, width in enumerate(widths):
        stride = 1 if stage == 0 else 2
        modules += [
            nn.Conv2d(below, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
        modules.append(Block(width))
        below = width
    return nn.Sequential(*modules, Head(below)).to(memory_format=torch.channels_last)


def operations_of(program: native.Program) -> float:
    """Multiplications and additions of one sample's training step."""
    total, first = 0.0, True
    pairs = zip(program.operations, program.inputs, program.sizes, program.shapes[1:], strict=True)
    for operation, _, (weights, _), shape in pairs:
        if isinstance(operation, native.Conv):
            total += 2.0 * weights * shape[1] * shape[2] * (2 if first else 3)
            first = False
    return total


def in_turns(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median processor seconds of both, turn and turn about, after one call of each."""
    ours(), theirs()
    pairs = [(processor_seconds(ours), processor_seconds(theirs)) for _ in range(rounds)]
    mine, others = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(others)


def residuals(rounds: int) -> None:
    """Ten steps of SGD each, turn and turn about."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (10 * BATCH, 3, 32, 32), dtype=np.uint8)
    y = rng.integers(0, 10, len(x))
    scaling = native.Scaling(1.0, [120.0] * 3, [64.0] * 3)
    raw, labels = torch.from_numpy(x), torch.from_numpy(y)
    best = peak()
    for widths in ((12, 24, 48), (16, 32, 64)):
        name = "-".join(map(str, widths))
        model = careful(widths)
        optimiser = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)

        def by_torch(model: nn.Module = model, optimiser: torch.optim.SGD = optimiser) -> None:
            for rows in torch.arange(len(raw)).split(BATCH):
                images = (
                    raw[rows].float().sub_(120.0).div_(64.0).contiguous(memory_format=torch.channels_last)
                )
                loss = functional.cross_entropy(model(images), labels[rows], label_smoothing=0.1)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

        for what, kernels in (("all 3×3", ((3, 3),)), ("mixed kernels", SMALL)):
            program = residual(widths, kernels)
            start = [
                rng.normal(0, 0.1, shape) if len(shape) > 1 else np.ones(shape)
                for shape in program.tensor_shapes()
            ]
            network = native.Network(program, program.flatten(start))
            sgd = native.SGD(lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)

            def natively(network: native.Network = network, sgd: native.SGD = sgd) -> None:
                for begin in range(0, len(x), BATCH):
                    rows = np.arange(begin, begin + BATCH)
                    network.step(x, rows, y[rows], scaling=scaling, optimiser=sgd)

            mine, theirs = in_turns(natively, by_torch, rounds)
            speed = operations_of(program) * len(x) / mine
            seen = f"{mine / theirs:.3f} ({mine * 100:.1f} against {theirs * 100:.1f} ms a step)"
            row(f"residual {name}, {what}: native / torch with 3×3", seen)
            row(f"residual {name}, {what}: GFLOP/s, share of peak", f"{speed / 1e9:.1f}, {speed / best:.0%}")


def sets(phenotypes: Sequence[Phenotype], data: DataSet, rounds: int) -> None:
    """Every instruction set against the best."""
    first, *others = native.instruction_sets()
    for other in others:
        count = 1 if other == "portable" else len(phenotypes)
        totals = [0.0, 0.0]
        for number, phenotype in enumerate(phenotypes[:count], 1):
            job = Job(number, 2, 1, phenotype)
            for _ in range(rounds):
                for place, simd in enumerate((other, first)):
                    start = time.process_time()
                    generation(job, data, simd)
                    totals[place] += time.process_time() - start
        row(f"{other} / {first}, {count} of the MNIST networks", f"{totals[0] / totals[1]:.2f}")


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["mnist", "svhn", "residual", "sets"])
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    print(f"instruction set {native.instruction_set()}")
    with tempfile.TemporaryDirectory() as folder:
        if "mnist" in options.what or "sets" in options.what:
            data = random_data(*MNIST, Path(folder) / "mnist")
            chosen = real.phenotypes()[:: max(1, 64 // options.networks)]
            if "mnist" in options.what:
                generations(f"{len(chosen)} MNIST networks", chosen, data, options.rounds)
            if "sets" in options.what:
                sets(chosen[:8], data, options.rounds)
        if "svhn" in options.what:
            data = random_data(*SVHN, Path(folder) / "svhn")
            generations("8 grown networks, SVHN sizes", networks((3, 32, 32), 8), data, options.rounds)
    if "residual" in options.what:
        residuals(options.rounds)


if __name__ == "__main__":
    main()
