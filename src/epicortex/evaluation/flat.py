"""The parameters of a network as one, so that an optimiser takes one step instead of one for each tensor.

A step costs some ten calls of torch for every tensor, and much of what a small network's step takes is calls.
Optimisers that treat every number by itself give the same bits either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn

#: Every parameter begins on such a multiple of numbers, as it would by itself: 64 bytes.
_ALIGNMENT: Final = 16


def flattened(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """One parameter that these, and their gradients, are views of from now on.

    >>> linear = nn.Linear(3, 2)
    >>> flat = flattened(list(linear.parameters()))
    >>> linear(torch.ones(1, 3)).sum().backward()
    >>> flat.grad[:6].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    flat = nn.Parameter(parameters[0].new_zeros(sum(_sizes(parameters))))
    flat.grad = torch.zeros_like(flat)
    places = zip(pieces(flat.data, parameters), pieces(flat.grad, parameters), strict=True)
    for parameter, (values, gradient) in zip(parameters, places, strict=True):
        parameter.data = values.copy_(parameter.data)
        parameter.grad = gradient
    return flat


def pieces(flat: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Of something laid out as `flattened` does it, the view that belongs to each parameter."""
    parts = torch.split(flat, _sizes(parameters))
    return [
        part[: math.prod(parameter.shape)].view(parameter.shape)
        for part, parameter in zip(parts, parameters, strict=True)
    ]


def _sizes(parameters: Sequence[nn.Parameter]) -> list[int]:
    return [-(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT for parameter in parameters]
