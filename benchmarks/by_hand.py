"""What people write by hand: LeNet-5 and a plain CNN with batch norm, and a careful training for both.

AdamW with a cosine over the time there is, images moved (and mirrored, where that is harmless) as in our own
training, the same samples held back for validation, and the best weights on those kept. The test set is used
once, at the end.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import epicortex
from epicortex.data import DataSet
from epicortex.evaluation.augmentation import Augmenter
from epicortex.evaluation.samples import draw_flips, draw_moves
from epicortex.evaluation.tensors import Samples, fitness_samples, split

BATCH: Final = 128
RATE: Final = 3e-3
#: How often the network is looked at on the way.
_LOOKS: Final = 40
_CHUNK: Final = 500


def cnn(shape: Sequence[int], classes: int) -> nn.Module:
    """3×3 convolutions of 32 and 64 and a full layer of 128; from 32×32 on 32, 64, 128 and no full layer.

    >>> [count(cnn(shape, 10)) for shape in ((1, 28, 28), (3, 32, 32))]
    [421738, 113962]
    """
    large = min(shape[1:]) >= 32
    widths = (32, 64, 128) if large else (32, 64)
    layers: list[nn.Module] = []
    for below, width in zip((shape[0], *widths), widths, strict=False):
        conv = nn.Conv2d(below, width, 3, padding=1, bias=False)
        layers += [conv, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
    flat = widths[-1] * math.prod(size // 2 ** len(widths) for size in shape[1:])
    if large:
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, classes))
    full = [nn.Flatten(), nn.Linear(flat, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, classes)]
    return nn.Sequential(*layers, *full)


def lenet(shape: Sequence[int], classes: int) -> nn.Module:
    """LeNet-5 as it is written today, with ReLU and max pooling.

    >>> [count(lenet(shape, 10)) for shape in ((1, 28, 28), (3, 32, 32))]
    [61706, 62006]
    """
    small = min(shape[1:])
    first, second = (2 if small < 32 else 0), (2 if small < 28 else 0)
    sizes = [((size + 2 * first - 4) // 2 + 2 * second - 4) // 2 for size in shape[1:]]
    return nn.Sequential(
        *(nn.Conv2d(shape[0], 6, 5, padding=first), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5, padding=second), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * math.prod(sizes), 120), nn.ReLU()),
        *(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)),
    )


MODELS: Final[dict[str, Callable[[Sequence[int], int], nn.Module]]] = {
    "cnn": cnn,
    "cnn-changed": cnn,
    "lenet": lenet,
}
#: How else samples are changed, where somebody thinks of it.
CHANGES: Final = {"cnn-changed": ("colour", "cutout")}


def count(model: nn.Module) -> int:
    """How many numbers learn."""
    return sum(parameter.numel() for parameter in model.parameters())


def multiplications(model: nn.Module, shape: Sequence[int]) -> int:
    """The multiplications of all convolutions and full layers for one sample.

    >>> multiplications(nn.Conv2d(3, 8, 3, padding=1), (3, 32, 32))
    221184
    """
    total = 0

    def add(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        weight: Any = layer.weight
        total += weight.numel() * math.prod(output.shape[2:])

    kinds = (nn.Conv2d, nn.Linear)
    hooks = [each.register_forward_hook(add) for each in model.modules() if isinstance(each, kinds)]
    training = model.training
    with torch.inference_mode():
        model.eval()(torch.zeros(1, *shape))
    model.train(training)
    for hook in hooks:
        hook.remove()
    return total


@dataclass(slots=True)
class _Training:
    """A model on its way through its time."""

    model: nn.Module
    learnt: Samples
    measured: Samples
    flips: bool
    shift: float
    rng: np.random.Generator
    augment: Augmenter | None = None
    format: torch.memory_format = torch.contiguous_format

    def step(self, optimiser: torch.optim.Optimizer, rows: np.ndarray) -> None:
        """One training step."""
        moves = draw_moves(len(rows), self.learnt.x.shape[2:], self.shift, self.rng, part=1.0)
        flips = draw_flips(len(rows), self.rng) if self.flips else None
        x, y = self.learnt.batch(rows, moves=moves, flips=flips, augment=self.augment)
        loss = functional.cross_entropy(self.model(x.contiguous(memory_format=self.format)), y)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def accuracy(self, samples: Samples) -> float:
        """The share of samples that it gets right."""
        self.model.eval()
        with torch.inference_mode():
            chunks = (x.contiguous(memory_format=self.format) for x in samples.chunks(_CHUNK))
            answers = torch.cat([self.model(x).argmax(1) for x in chunks])
        self.model.train()
        return float((answers == samples.labels).double().mean())

    def use_faster_format(self) -> None:
        """Channels last where that is quicker on this machine: a few steps of a copy tell."""
        seconds = {}
        for layout in (torch.contiguous_format, torch.channels_last):
            trial = copy.deepcopy(self.model).to(memory_format=layout)  # type: ignore[call-overload]
            rng = np.random.default_rng(0)
            tried = replace(self, model=trial, rng=rng, format=layout)
            optimiser = torch.optim.AdamW(trial.parameters())
            rows = np.arange(min(BATCH, len(self.learnt)))
            tried.step(optimiser, rows)
            began = time.perf_counter()
            for _ in range(4):
                tried.step(optimiser, rows)
            seconds[layout] = time.perf_counter() - began
        self.format = min(seconds, key=lambda layout: seconds[layout])
        self.model.to(memory_format=self.format)  # type: ignore[call-overload]


def train(
    arm: str,
    data: DataSet,
    *,
    seed: int,
    seconds: float,
    began: float,
    cores: int,
    flips: bool,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Train a model until so many seconds after `began`, as the clock tells; what it came to."""
    torch.set_num_threads(cores)
    torch.manual_seed(seed)
    settings = epicortex.configure().training
    learnt, measured = fitness_samples(data, settings, seed, torch.device("cpu"))
    shape = tuple(data.x_train.shape[1:])
    model = MODELS[arm](shape, len(data.classes))
    rng, names = np.random.default_rng(seed), CHANGES.get(arm, ())
    augment = Augmenter(names, data.scaling, rng) if names else None
    run = _Training(model, learnt, measured, flips, settings.shift, rng, augment)
    run.use_faster_format()
    before = clock()
    run.accuracy(measured)
    looking = clock() - before
    test = split(data, "test", torch.device("cpu"))
    end = began + seconds - 1.2 * looking * (1 + len(test) / len(measured)) - 0.5
    curve, validation = _fit(run, began, end, clock)
    return {
        "test": run.accuracy(test),
        "validation": validation,
        "parameters": count(model),
        "multiplications": multiplications(model, shape),
        "seconds": round(clock() - began, 2),
        "curve": curve,
    }


def _fit(
    run: _Training, began: float, end: float, clock: Callable[[], float]
) -> tuple[list[list[float]], float]:
    """Train until `end` and go back to the best weights; the curve, and the best figure of validation."""
    optimiser = torch.optim.AdamW(run.model.parameters(), lr=RATE)
    start = clock()
    whole, size = max(1e-3, end - start), min(BATCH, len(run.learnt))
    curve: list[list[float]] = []
    best, kept, order, look = -1.0, run.model.state_dict(), np.empty(0, np.int64), 1
    while True:
        part = (clock() - start) / whole
        if part >= look / _LOOKS or part >= 1:
            look = math.floor(part * _LOOKS) + 1
            now = run.accuracy(run.measured)
            curve.append([round(clock() - began, 2), now])
            if now >= best:
                best, kept = now, copy.deepcopy(run.model.state_dict())
        if part >= 1:
            run.model.load_state_dict(kept)
            return curve, best
        for group in optimiser.param_groups:
            group["lr"] = RATE * 0.5 * (1 + math.cos(math.pi * part))
        if len(order) < size:
            order = run.rng.permutation(len(run.learnt))
        run.step(optimiser, order[:size])
        order = order[size:]
