"""All parameters of a network as one, so that an optimiser takes one step instead of one for each tensor.

A step costs some ten calls of torch for every tensor, and much of what a small network's step takes is calls.
Optimisers that treat every number by itself give the same bits either way.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import nn

#: The optimisers of torch.optim that treat every number by itself.
ELEMENTWISE: Final = frozenset(
    {"ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"}
)
#: Every parameter begins on such a multiple of numbers, as it would by itself: 64 bytes.
_ALIGNMENT: Final = 16


def flattened(network: nn.Module) -> nn.Parameter:
    """One parameter that the network's parameters, and their gradients, are views of from now on.

    >>> linear = nn.Linear(3, 2)
    >>> flat = flattened(linear)
    >>> linear(torch.ones(1, 3)).sum().backward()
    >>> flat.grad[:6].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    parameters = list(network.parameters())
    sizes = [-(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT for parameter in parameters]
    flat = nn.Parameter(parameters[0].new_zeros(sum(sizes)))
    flat.grad = torch.zeros_like(flat)
    places = zip(torch.split(flat.data, sizes), torch.split(flat.grad, sizes), strict=True)
    for parameter, (values, gradient) in zip(parameters, places, strict=True):
        count = math.prod(parameter.shape)
        own = values[:count].view(parameter.shape)
        parameter.data = own.copy_(parameter.data)
        parameter.grad = gradient[:count].view(parameter.shape)
    return flat
