"""An irregular layer against a plain one, and the cost of a mutation and of a crossover.

Run it with `python -m benchmarks.core`.
"""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import torch
from torch import nn

from benchmarks.measure import alternate, processor_seconds, row
from epicortex.families.layered import OPERATORS, Rules, cross, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.irregular import IrregularConv


def layer_ratio() -> None:
    """32 kernels from 1×1 to 7×7 over 16 channels of 28×28, batch 128, forward and backward."""
    sizes = list(itertools.product((1, 3, 5, 7), repeat=2))
    kernels = (sizes * 2)[:32]
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(32, 16, 7, 7, generator=generator) * 0.1
    irregular = IrregularConv(16, kernels, (1, 1), weight=weight.clone(), bias=torch.zeros(32))
    plain = nn.Conv2d(16, 32, 7, padding=3)
    x = torch.randn(128, 16, 28, 28, generator=generator, requires_grad=True)

    def step(module: nn.Module) -> None:
        module.zero_grad()
        x.grad = None
        module(x).sum().backward()

    ratio = alternate(lambda: step(irregular), lambda: step(plain), rounds=21)
    row("32 kernels up to 7×7 over 16 channels of 28×28 / nn.Conv2d", str(ratio))


def layout_ratio() -> None:
    """10 kernels over 10 channels of 28×28, batch 128, forward and backward: our layout and torch's."""
    generator = torch.Generator().manual_seed(1)
    plain = torch.randn(128, 10, 28, 28, generator=generator)
    last = plain.contiguous(memory_format=torch.channels_last)
    for size in (1, 3, 5):
        weight = torch.randn(10, 10, size, size, generator=generator, requires_grad=True)

        def step(x: torch.Tensor, weight: torch.Tensor = weight, padding: int = size // 2) -> None:
            torch.nn.functional.conv2d(x.requires_grad_(), weight, padding=padding).sum().backward()

        ratio = alternate(lambda step=step: step(last), lambda step=step: step(plain))
        row(f"{size}×{size} kernels, channels_last / contiguous", str(ratio))


def variation_cost() -> None:
    """Mutations and crossover of networks with 10⁵ parameters."""
    rng, rules = np.random.default_rng(1), Rules()
    genome = Genome(
        (1, 28, 28),
        (
            ConvLayer(tuple(itertools.islice(itertools.cycle([(3, 3), (5, 1), (1, 7)]), 16)), (1, 1)),
            ConvLayer(tuple(itertools.islice(itertools.cycle([(3, 3), (5, 5)]), 16)), (2, 2)),
            FullLayer(31),
        ),
        10,
    )
    one, other = draw_phenotype(genome, rng=rng), draw_phenotype(genome, rng=rng)
    larger = OPERATORS["node"].apply(one, "grow", rules=rules, rng=rng).phenotype
    print(f"network: {genome.parameters:,} parameters, {len(genome.layers)} layers")
    jobs = {
        f"{name} {direction}": lambda operator=operator, direction=direction: operator.apply(
            one, direction, rules=rules, rng=rng
        )
        for name, operator in OPERATORS.items()
        for direction in ("grow", "shrink")
        if operator.possible(genome, direction)
    }
    jobs["crossover in a species"] = lambda: cross(one, other, share=0.5, rules=rules, rng=rng)
    jobs["crossover across species"] = lambda: cross(one, larger, share=0.5, rules=rules, rng=rng)
    for name, job in jobs.items():
        times = [processor_seconds(job) for _ in range(50)]
        row(name, f"median {statistics.median(times) * 1e3:.2f} ms, worst {max(times) * 1e3:.2f} ms")


if __name__ == "__main__":
    torch.set_num_threads(1)
    layer_ratio()
    layout_ratio()
    variation_cost()
