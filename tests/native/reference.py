"""The slow, obvious reference: a program interpreted by torch in float64, operation by operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from epicortex.native import (
    Activation,
    Add,
    Conv,
    CrossEntropy,
    Full,
    Norm,
    Pool,
    Program,
    SigmoidCrossEntropy,
)

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.01),
    "relu": functional.relu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "tanh": torch.tanh,
    "smooth": lambda x: 0.5 * (torch.sqrt(x * x + 4.0) + x) - 1.0,
}
#: Those with a kink at 0: beside it, float32 and float64 may be on different sides.
KINKED = ("leaky_relu", "relu")


class Reference:
    """A program in float64, with tensors as torch would hold them."""

    def __init__(
        self,
        program: Program,
        parameters: NDArray[np.float32],
        state: NDArray[np.float32],
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.program, self.dtype = program, dtype
        self.tensors = [
            torch.from_numpy(np.array(tensor)).to(dtype).requires_grad_()
            for tensor in program.unflatten(parameters)
        ]
        self.state = torch.from_numpy(state.copy()).to(dtype)
        self.nearest_kink = float("inf")

    def __call__(self, x: Tensor, *, training: bool) -> Tensor:
        slots, rest, place = [x], iter(self.tensors), 0
        for operation, slot in zip(self.program.operations, self.program.inputs, strict=True):
            value = slots[slot]
            if isinstance(operation, Conv):
                weight = next(rest)
                bias = next(rest) if operation.bias else None
                value = _convolved(value, weight, bias, operation.stride)
            elif isinstance(operation, Norm):
                channels = value.shape[1]
                mean, variance = self.state[place : place + 2 * channels].chunk(2)
                place += 2 * channels
                value = functional.batch_norm(
                    value,
                    mean,
                    variance,
                    next(rest),
                    next(rest),
                    training,
                    operation.momentum,
                    operation.epsilon,
                )
            elif isinstance(operation, Activation):
                if operation.name in KINKED:
                    # exactly 0 is 0 in any precision: a rectifier's zeros where a block adds none
                    far = value.detach().abs()
                    far = torch.where(far > 0, far, math.inf)
                    self.nearest_kink = min(self.nearest_kink, float(far.min()))
                value = ACTIVATIONS[operation.name](value)
            elif isinstance(operation, Add):
                value = value + slots[operation.other]
            elif isinstance(operation, Pool):
                pool: Any = (
                    functional.adaptive_avg_pool2d if value.ndim == 4 else functional.adaptive_avg_pool1d
                )
                value = pool(value, operation.size or (1,) * (value.ndim - 2)) * operation.factor
            elif isinstance(operation, Full):
                value = functional.linear(
                    value.flatten(1), next(rest), next(rest) if operation.bias else None
                )
            slots.append(value)
        return slots[-1].flatten(1)

    def loss(self, outputs: Tensor, answers: NDArray[Any], *, reduction: str = "mean") -> Tensor:
        loss = self.program.loss
        if isinstance(loss, CrossEntropy):
            weights = (
                None if loss.class_weights is None else torch.tensor(loss.class_weights, dtype=self.dtype)
            )
            return functional.cross_entropy(
                outputs,
                torch.from_numpy(answers),
                weights,
                label_smoothing=loss.label_smoothing,
                reduction=reduction,
            )
        targets = torch.from_numpy(answers).to(self.dtype)
        compare: Any = (
            functional.binary_cross_entropy_with_logits
            if isinstance(loss, SigmoidCrossEntropy)
            else functional.mse_loss
        )
        losses: Tensor = compare(outputs, targets, reduction=reduction)
        return losses if reduction == "mean" else losses.mean(1)

    def gradients(self) -> list[NDArray[np.float64]]:
        """Of each tensor, with zeros around small kernels."""
        masks = self.program.unflatten(np.ones(self.program.parameters))
        return [
            tensor.grad.double().numpy() * mask if tensor.grad is not None else np.zeros(mask.shape)
            for tensor, mask in zip(self.tensors, masks, strict=True)
        ]


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int] | None) -> Tensor:
    padding = tuple(size // 2 for size in weight.shape[2:])
    convolve: Any = functional.conv2d if x.ndim == 4 else functional.conv1d
    result: Tensor = convolve(x, weight, bias, tuple(stride) if stride else 1, padding)
    return result
