"""Modules of torch that families share: the activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

from epicortex.errors import ConfigError
from epicortex.text import nearest


class SmoothRectifier(nn.Module):
    """½(√(x²+4)+x)−1: close to x for large inputs and to −1 for very negative ones; 0 at 0.

    >>> SmoothRectifier()(torch.tensor([0.0, 1.5])).tolist()
    [0.0, 1.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply it to every element."""
        return 0.5 * (torch.sqrt(x * x + 4.0) + x) - 1.0


_MODULES: Final[dict[str, Callable[[], nn.Module]]] = {
    "leaky_relu": lambda: nn.LeakyReLU(0.01),
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
    "smooth": SmoothRectifier,
}
#: Those whose gradient can be had from their result, so that it may take the place of their input.
_IN_PLACE: Final[dict[str, Callable[[], nn.Module]]] = {
    "leaky_relu": lambda: nn.LeakyReLU(0.01, inplace=True),
    "relu": lambda: nn.ReLU(inplace=True),
    "elu": lambda: nn.ELU(inplace=True),
}


def activation(name: str, *, inplace: bool = False) -> nn.Module:
    """A module that applies the activation of this name, in place if that is asked for and can be done."""
    try:
        return _IN_PLACE[name]() if inplace and name in _IN_PLACE else _MODULES[name]()
    except KeyError:
        near = nearest(name, _MODULES) or min(_MODULES)
        raise ConfigError(f"unknown activation {name!r}; did you mean {near!r}?") from None
