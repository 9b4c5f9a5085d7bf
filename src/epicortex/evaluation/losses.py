"""The losses of each task as torch computes them: of a batch, and of each sample."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from epicortex.measures import TaskKind


def batch_loss(
    task: TaskKind, outputs: Tensor, y: Tensor, *, weight: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    """The mean loss of a batch; weights and smoothing are for classes alone."""
    if task == "classes":
        return functional.cross_entropy(outputs, y, weight=weight, label_smoothing=smoothing)
    if task == "regression":
        return functional.mse_loss(outputs, y)
    return functional.binary_cross_entropy_with_logits(outputs, y)


def sample_losses(task: TaskKind, outputs: Tensor, y: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """The loss of each sample, without class weights; of several outputs the mean."""
    if task == "classes":
        return functional.cross_entropy(outputs, y, reduction="none", label_smoothing=smoothing)
    if task == "regression":
        return functional.mse_loss(outputs, y, reduction="none").mean(1)
    return functional.binary_cross_entropy_with_logits(outputs, y, reduction="none").mean(1)
