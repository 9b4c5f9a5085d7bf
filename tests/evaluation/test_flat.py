"""A network's parameters as one: the same bits from every optimiser that is said to allow it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from epicortex.evaluation.flat import flattened
from epicortex.evaluation.optimisers import find_optimiser, torch_optimisers
from epicortex.evaluation.training import ELEMENTWISE
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.network import Network

GENOME = Genome((2, 6, 6), (ConvLayer(((3, 3), (1, 3), (1, 1)), (1, 1)), FullLayer(7)), 3)


def trained(network: Network, parameters: list[Any], optimiser: str, steps: int = 4) -> list[Tensor]:
    updates = find_optimiser(optimiser)(parameters)
    for step in range(steps):
        x = torch.randn(16, 2, 6, 6, generator=torch.Generator().manual_seed(step))
        updates.zero_grad(set_to_none=False)
        network(x).square().mean().backward()
        updates.step()
    return [parameter.detach().clone() for parameter in network.parameters()]


@pytest.mark.parametrize("optimiser", sorted(ELEMENTWISE))
def test_one_parameter_gives_the_bits_of_many(optimiser: str) -> None:
    network = Network(draw_phenotype(GENOME, rng=np.random.default_rng(1)))
    twin = copy.deepcopy(network)
    start = [parameter.detach().clone() for parameter in network.parameters()]
    ours = trained(network, [flattened(list(network.parameters()))], optimiser)
    theirs = trained(twin, list(twin.parameters()), optimiser)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert not any(torch.equal(one, other) for one, other in zip(ours, start, strict=True))


def test_all_of_them_exist() -> None:
    assert set(torch_optimisers()) >= ELEMENTWISE


def test_parameters_begin_where_memory_is_aligned() -> None:
    network = Network(draw_phenotype(GENOME, rng=np.random.default_rng(1)))
    flat = flattened(list(network.parameters()))
    for parameter in network.parameters():
        assert (parameter.data_ptr() - flat.data_ptr()) % 64 == 0
