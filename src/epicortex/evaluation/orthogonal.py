"""SGD with orthogonal steps, for where networks are trained by torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch

#: Of the odd polynomial that Newton–Schulz steps apply to singular values, and how many steps there are.
_FIRST, _THIRD, _FIFTH = 3.4445, -4.7750, 2.0315
_STEPS: Final = 5
#: The native arithmetic takes its numbers in 32 bits.
_LARGEST: Final = torch.finfo(torch.float32).max


class OrthogonalSGD(torch.optim.Optimizer):
    """SGD that takes orthogonal steps for convolutions: `native.OrthogonalSGD`, computed by torch.

    >>> weight = torch.nn.Parameter(torch.zeros(2, 2, 1))
    >>> weight.grad = torch.tensor([[[3.0], [0.0]], [[0.0], [0.1]]])
    >>> OrthogonalSGD([weight], lr=1.0, matrix_rate=0.5).step()
    >>> [round(entry, 1) for entry in weight.flatten().tolist()]
    [-0.3, 0.0, 0.0, -0.6]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        matrix_rate: float = 0.3,
        matrix_decay: float = 0.02,
    ) -> None:
        for number in (lr, momentum, weight_decay, matrix_rate, matrix_decay):
            if isinstance(number, bool) or not 0 <= number <= _LARGEST:
                raise ValueError("rates, momentum and decays must be numbers from 0 on, within 32 bits")
        if nesterov and not momentum:
            raise ValueError("nesterov needs a momentum")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "nesterov": nesterov,
                "weight_decay": weight_decay,
                "matrix_rate": matrix_rate,
                "matrix_decay": matrix_decay,
            },
        )

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; `closure` is there because torch asks for it."""
        del closure
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._step(parameter, parameter.grad, group)

    def _step(self, parameter: torch.Tensor, gradient: torch.Tensor, group: Mapping[str, Any]) -> None:
        matrix, momentum, rate = parameter.ndim > 2, group["momentum"], group["lr"]
        if not matrix:
            gradient = gradient + group["weight_decay"] * parameter
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        memory = state["momentum_buffer"].mul_(momentum).add_(gradient)
        ahead = gradient + momentum * memory if group["nesterov"] else memory
        if not matrix:
            parameter.sub_(rate * ahead)
            return
        rows = ahead.flatten(1)
        rate *= group["matrix_rate"]
        step = rate * max(1.0, rows.shape[0] / rows.shape[1]) ** 0.5
        parameter.mul_(1 - rate * group["matrix_decay"]).sub_(step * _orthogonal(rows).view(parameter.shape))


def _orthogonal(rows: torch.Tensor) -> torch.Tensor:
    """A matrix with its singular values brought near 1."""
    upright = rows.shape[0] > rows.shape[1]
    x = rows.T if upright else rows
    x = x / (x.square().sum().sqrt() + 1e-12)
    for _ in range(_STEPS):
        square = x @ x.T
        x = _FIRST * x + (_THIRD * square + _FIFTH * square @ square) @ x
    return (x.T if upright else x).contiguous()
