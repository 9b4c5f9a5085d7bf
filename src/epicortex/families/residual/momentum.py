"""Momentum as a part of the genes: what SGD remembers goes from an optimiser to a phenotype and back."""

from __future__ import annotations

import numpy as np
import torch

from epicortex.errors import GenomeError
from epicortex.families.genes import Genes
from epicortex.families.residual.network import Network
from epicortex.families.residual.phenotype import Phenotype


def with_momentum(network: Network, optimiser: torch.optim.SGD) -> Phenotype:
    """What the network has learned, with the momentum of its optimiser; zeros where it has none yet."""
    learned = network.phenotype()
    arrays = [dict(genes) for genes in learned.genes]
    for index, name, parameter in network.gene_parameters():
        buffer = optimiser.state.get(parameter, {}).get("momentum_buffer")
        known = np.zeros(parameter.shape, np.float32) if buffer is None else buffer.cpu().numpy()
        target = learned.genes[index][name].shape
        arrays[index][f"momentum_{name}"] = np.array(known, np.float32, order="C").reshape(target)
    return Phenotype(learned.genome, tuple(Genes(**named) for named in arrays))


def give_momentum(phenotype: Phenotype, network: Network, optimiser: torch.optim.SGD) -> None:
    """Have the optimiser of a phenotype's network continue with the momentum that the genes carry, if any."""
    if network.genome != phenotype.genome:
        raise GenomeError("momentum can only go to the network of the same genome")
    if "momentum" not in phenotype.states:
        return
    for index, name, parameter in network.gene_parameters():
        array = phenotype.genes[index][f"momentum_{name}"]
        buffer = torch.empty_like(parameter)
        buffer.copy_(torch.from_numpy(np.array(array)).reshape(parameter.shape))
        optimiser.state[parameter]["momentum_buffer"] = buffer
