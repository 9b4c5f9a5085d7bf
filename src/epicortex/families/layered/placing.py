"""Where the numbers of one array go in another: kernels on their centres, nodes and channels by index.

What has no counterpart is drawn new; what is not touched stays bit-identical. Which arrays a layer has is
left to `layers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Array, Shape
from epicortex.families.layered.rules import Rules

_Scalar = TypeVar("_Scalar", np.float32, np.bool_)


def draw(shape: Shape, rules: Rules, rng: np.random.Generator) -> Array:
    """New weights: normal, mean 0."""
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(rules.weight_deviation)


def kernel_mask(kernels: Iterable[Shape]) -> NDArray[np.bool_]:
    """Where a stack of centred kernels has entries: [nodes, 1, *extent].

    >>> kernel_mask([(1, 3), (3, 1)])[0, 0].astype(int).tolist()
    [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    """
    sizes = np.asarray(list(kernels))
    extent = sizes.max(axis=0)
    mask = np.ones((len(sizes), 1, *extent), dtype=np.bool_)
    for dimension, size in enumerate(extent):
        distance = np.abs(np.arange(size) - size // 2)
        inside = distance <= sizes[:, dimension, None] // 2
        shape = [1] * mask.ndim
        shape[0], shape[dimension + 2] = len(sizes), size
        mask &= inside.reshape(shape)
    return mask


@lru_cache(maxsize=1024)
def known_mask(kernels: tuple[Shape, ...]) -> NDArray[np.bool_]:
    """The same, read-only, of kernels that are asked for again and again: networks live long."""
    mask = kernel_mask(kernels)
    mask.flags.writeable = False
    return mask


def place(array: NDArray[_Scalar], extent: Shape) -> NDArray[_Scalar]:
    """An array [nodes, channels, *kernel] centred in another extent, zeros around it."""
    if array.shape[2:] == extent:
        return array
    result = np.zeros((*array.shape[:2], *extent), array.dtype)
    into, out = [slice(None)] * 2, [slice(None)] * 2
    for old, new in zip(array.shape[2:], extent, strict=True):
        outer, inner = _centred(new, old)
        into.append(outer)
        out.append(inner)
    result[tuple(into)] = array[tuple(out)]
    return result


def paste(source: Array, shape: Shape, rules: Rules, rng: np.random.Generator) -> Array:
    """The source's values in an array of another shape, the rest drawn: two axes by index, others centred."""
    covered = all(new <= old for old, new in zip(source.shape, shape, strict=True))
    target = np.empty(shape, np.float32) if covered else draw(shape, rules, rng)
    into, out = [], []
    for axis, (old, new) in enumerate(zip(source.shape, shape, strict=True)):
        if axis < 2:
            both = slice(0, min(old, new))
            into.append(both)
            out.append(both)
        else:
            outer, inner = _centred(new, old)
            into.append(outer)
            out.append(inner)
    target[tuple(into)] = source[tuple(out)]
    return target


def refit_kernels(
    weight: Array,
    old: tuple[Shape, ...],
    new: tuple[Shape, ...],
    channels: int,
    rules: Rules,
    rng: np.random.Generator,
) -> Array:
    """A stack of kernels with other shapes, nodes or channels; shared entries keep their values."""
    nodes, shared = min(len(old), len(new)), min(weight.shape[1], channels)
    mask = kernel_mask(new)
    extent = mask.shape[2:]
    kept = np.zeros_like(mask)
    kept[:nodes] = place(kernel_mask(old)[:nodes], extent) & mask[:nodes]
    everything_kept = shared == channels and bool((kept == mask).all())
    result = np.zeros((len(new), channels, *extent), np.float32)
    if not everything_kept:
        np.copyto(result, draw(result.shape, rules, rng), where=mask)
    moved = place(weight[:nodes, :shared], extent)
    np.copyto(result[:nodes, :shared], moved, where=kept[:nodes])
    return result


def _centred(size: int, other: int) -> tuple[slice, slice]:
    """Where two centred extents overlap, in the coordinates of each; the smaller half is on the low side."""
    shared, gap = min(size, other), abs(size - other) // 2
    whole, part = slice(0, shared), slice(gap, gap + shared)
    return (part, whole) if size >= other else (whole, part)
