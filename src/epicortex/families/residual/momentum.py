"""Momentum as a part of the genes: what SGD remembers goes from a network's parameters to them and back."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from epicortex.errors import GenomeError
from epicortex.families.family import Memory
from epicortex.families.genes import Genes
from epicortex.families.residual.network import Network
from epicortex.families.residual.phenotype import Phenotype

#: What torch calls it.
_BUFFER: Final = "momentum_buffer"


def with_momentum(network: Network, memory: Memory) -> Phenotype:
    """What the network has learned, with the momentum of its parameters; zeros where there is none yet."""
    learned = network.phenotype()
    arrays = [dict(genes) for genes in learned.genes]
    for index, name, parameter in network.gene_parameters():
        buffer = memory.get(parameter, {}).get(_BUFFER)
        known = np.zeros(parameter.shape, np.float32) if buffer is None else buffer.cpu().numpy()
        target = learned.genes[index][name].shape
        arrays[index][f"momentum_{name}"] = np.array(known, np.float32, order="C").reshape(target)
    return Phenotype(learned.genome, tuple(Genes(**named) for named in arrays))


def momentum(phenotype: Phenotype, network: Network) -> Memory:
    """The momentum that the genes hold, for the parameters of the phenotype's network; nothing if none."""
    if network.genome != phenotype.genome:
        raise GenomeError("momentum can only go to the network of the same genome")
    if "momentum" not in phenotype.states:
        return {}
    found = {}
    for index, name, parameter in network.gene_parameters():
        array = phenotype.genes[index][f"momentum_{name}"]
        buffer = torch.empty_like(parameter, requires_grad=False)
        buffer.copy_(torch.from_numpy(np.array(array)).reshape(parameter.shape))
        found[parameter] = {_BUFFER: buffer}
    return found
