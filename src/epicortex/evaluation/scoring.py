"""Networks on labelled data, without any training: logits batch by batch, and what they amount to.

This is the one place where a network answers many samples; training, the champion and the report use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.evaluation.evaluator import NetworkFailed
from epicortex.evaluation.fitness import accuracy, balanced_accuracy, confusion_matrix
from epicortex.evaluation.tensors import Samples, split
from epicortex.families.family import Family, Outline

if TYPE_CHECKING:
    from epicortex.data import DataSet

#: How many numbers the largest feature map of a batch may hold: about what a cache does.
_NUMBERS: Final = 2**19


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """How a network does on one part of the data."""

    accuracy: float
    balanced_accuracy: float
    confusion: NDArray[np.int64]
    """How often each class (row) was taken for which (column)."""
    predictions: NDArray[np.int64]


def score(
    phenotype: Any,
    family: Family[Any],
    data: DataSet,
    part: str = "test",
    *,
    device: torch.device | None = None,
) -> Score:
    """How a network does on a part of the data as stored: train, test or validation."""
    samples = split(data, part, device or torch.device("cpu"))
    answered = logits(phenotype, family, samples, len(data.classes), device=device)
    predictions, labels = answered.argmax(1).numpy(), samples.labels.cpu().numpy()
    return Score(
        accuracy(predictions, labels),
        balanced_accuracy(predictions, labels),
        confusion_matrix(predictions, labels, len(data.classes)),
        predictions,
    )


def logits(
    phenotype: Any,
    family: Family[Any],
    samples: Samples,
    classes: int,
    *,
    device: torch.device | None = None,
) -> Tensor:
    """What a network gives for samples [samples, classes]; the same bits wherever and whenever."""
    device = device or torch.device("cpu")
    model = build(family, phenotype, device)
    size = batch_size(family.outline(family.encode(phenotype)[0]))
    with fixed_arithmetic(device):
        return outputs(model, samples.chunks(size), len(samples), classes)


def outputs(
    model: nn.Module,
    chunks: Iterable[Tensor],
    samples: int,
    classes: int,
    pace: Callable[[], None] | None = None,
) -> Tensor:
    """What a model gives for all samples [samples, classes], chunk by chunk; NaN fails the network."""
    logits = answers(model, chunks, samples, classes, pace)
    if not bool(torch.isfinite(logits).all()):
        raise NetworkFailed("its outputs are not finite (NaN or infinity)")
    return logits


def answers(
    model: nn.Module,
    chunks: Iterable[Tensor],
    samples: int,
    classes: int,
    pace: Callable[[], None] | None = None,
) -> Tensor:
    """The same, whatever the numbers are."""
    logits = torch.empty(samples, classes)
    place = 0
    with torch.inference_mode():
        for x in chunks:
            if pace is not None:
                pace()
            logits[place : place + len(x)] = model(x)
            place += len(x)
    return logits


def build(family: Family[Any], phenotype: Any, device: torch.device, *, accelerated: bool = False) -> Any:
    """The family's module on a device, in evaluation mode; `accelerated`: as suits a graphics processor."""
    network = family.build(phenotype).to(device)
    if accelerated:
        for module in network.modules():
            if hasattr(module, "accelerate"):
                module.accelerate()
    for parameter in network.parameters():
        # the last bits of a matrix product can hang on where memory begins; torch's own is always aligned
        parameter.data = parameter.data.clone()
    return network.eval()


def batch_size(outline: Outline) -> int:
    """How many samples are scored at a time. It alters the last bits, so it follows from the genome alone."""
    shapes = (outline.input_shape, *(part.output for part in outline.parts))
    largest = max(math.prod(shape) for shape in shapes)
    return max(64, min(1024, _NUMBERS // largest // 64 * 64))
