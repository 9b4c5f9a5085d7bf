"""The limits of kernels and strides, and how new ones are drawn: small ones first (eq. 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Shape
from epicortex.families.layered.rules import Rules
from epicortex.text import times


def kernel_limit(size: int) -> int:
    """The largest kernel extent over an input of this size: odd, at most half of it, at least 1.

    >>> [kernel_limit(size) for size in (1, 5, 6, 7, 28, 32)]
    [1, 1, 3, 3, 13, 15]
    """
    half = size // 2
    return max(1, half - 1 + half % 2)


def stride_limit(size: int) -> int:
    """The largest stride over an input of this size: half of it, at least 1.

    >>> [stride_limit(size) for size in (1, 3, 28)]
    [1, 1, 14]
    """
    return max(1, size // 2)


def extent(kernels: Sequence[Shape]) -> Shape:
    """The largest kernel in each dimension.

    >>> extent([(3, 1), (1, 5)])
    (3, 5)
    """
    return tuple(max(sizes) for sizes in zip(*kernels, strict=True))


def convolution_text(kernels: Iterable[Shape], stride: Shape) -> str:
    """A convolution in one line.

    >>> convolution_text([(3, 1), (1, 5)], (2, 2))
    'conv[3×1 1×5]/2×2'
    """
    return f"conv[{' '.join(map(times, kernels))}]" + (f"/{times(stride)}" if set(stride) != {1} else "")


def draw_kernels(spatial: Shape, count: int, *, rules: Rules, rng: np.random.Generator) -> tuple[Shape, ...]:
    """The shapes of `count` new kernels over an input of this size."""
    limits = tuple(kernel_limit(size) for size in spatial)
    return _draw(limits, 2, rules.kernel_start == "area", rules.kernel_temperature, count, rng)


def draw_stride(spatial: Shape, *, rules: Rules, rng: np.random.Generator) -> Shape:
    """The stride of a new layer over an input of this size."""
    limits = tuple(stride_limit(size) for size in spatial)
    return _draw(limits, 1, rules.kernel_start == "area", rules.stride_temperature, 1, rng)[0]


def _draw(
    limits: Shape, step: int, area: bool, temperature: float, count: int, rng: np.random.Generator
) -> tuple[Shape, ...]:
    shapes, cumulative = _table(limits, step, area, temperature)
    places = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    return tuple(tuple(int(size) for size in shapes[place]) for place in places)


@lru_cache(maxsize=256)
def _table(
    limits: Shape, step: int, area: bool, temperature: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All shapes up to the limits, and the running sum of their weights exp(−w·h / temperature)."""
    axes = [np.arange(1, limit + 1, step) for limit in limits]
    shapes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(limits))
    size = shapes.prod(axis=1) if area else shapes.sum(axis=1)
    # relative to the smallest, so that a low temperature does not turn every weight into 0
    weights = np.exp((size.min() - size) / temperature)
    # over large images most weights are 0: they need not be remembered
    return shapes[weights > 0], np.cumsum(weights[weights > 0])
