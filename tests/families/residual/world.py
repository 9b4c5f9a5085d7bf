"""Small residual networks for the tests: problems of every kind, and networks with a past."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

from epicortex.families.family import Direction, Problem
from epicortex.families.residual import Block, Genome, Phenotype, ResidualFamily, ResidualOptions, Stage
from epicortex.families.residual.mutation import operators
from epicortex.families.residual.network import Network
from epicortex.families.residual.operators import Operator

PROBLEMS: Final = {
    "image": Problem((3, 12, 10), 4),
    "grey image": Problem((1, 8, 8), 10),
    "signal": Problem((2, 24), 3),
    "table": Problem((7,), 3),
    "rectified table": Problem((7,), 3),
    "volume": Problem((1, 5, 6, 4), 2),
}
#: The networks that tables had before they were given linear trunks.
RECTIFIED: Final = Genome(
    (7,), (Stage(1, (), tuple(range(9)), ((),) * 9, (Block(2, (1, 2, 3), ((),) * 3, ((),) * 9),)),), (1, 2, 3)
)
OPERATORS: Final[dict[str, Operator]] = {o.name: o for o in operators(ResidualOptions())}
DIRECTIONS: Final[tuple[Direction, ...]] = ("grow", "shrink")


def family(kind: str = "image", **options: int | float) -> ResidualFamily:
    settings = {"start_parameters": 900, "kernel_mix": 0.3} | options
    start = RECTIFIED if kind == "rectified table" else None
    return ResidualFamily(PROBLEMS[kind], ResidualOptions(**settings), start=start)  # type: ignore[arg-type]


def batch(kind: str = "image", samples: int = 6, seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, *PROBLEMS[kind].input_shape, generator=generator)


def sgd(network: Network) -> torch.optim.SGD:
    return torch.optim.SGD(network.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=5e-3)


def trained(
    network: Network, x: Tensor, steps: int = 2, optimiser: torch.optim.SGD | None = None
) -> torch.optim.SGD:
    """Train a few steps with momentum and weight decay; the network is left in evaluation mode."""
    optimiser = optimiser or sgd(network)
    labels = torch.arange(len(x)) % network.genome.outputs
    network.train()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(x), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network.eval()
    return optimiser


def experienced(kind: str, seed: int, mutations: int = 3) -> Phenotype:
    """A network that was mutated and trained, so that no norm is as it was drawn."""
    rng, kin = np.random.default_rng([seed, 1]), family(kind)
    phenotype = kin.minimal(rng)
    for _ in range(mutations):
        done = kin.mutate(phenotype, grow=0.6, relative_fitness=0.5, rng=rng)
        phenotype = done.phenotype or phenotype
    network = Network(phenotype)
    trained(network, batch(kind, seed=seed))
    return network.phenotype()


def outputs(phenotype: Phenotype, x: Tensor, *, training: bool) -> Tensor:
    with torch.no_grad():
        result: Tensor = Network(phenotype).train(training)(x)
    return result
