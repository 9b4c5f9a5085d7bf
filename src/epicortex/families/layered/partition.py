"""Which convolutions one irregular layer is computed by: a fixed model of what they cost.

One dense convolution spends arithmetic on the zeros around small kernels. Kernels of like shapes can be
convolved apart, each group with the smallest kernel that holds its shapes. Results are then added up (every
group convolves all kernels: vector units work on sixteen at a time, so a few cost as much as many) or, in a
wide layer, split (every group convolves its own kernels, and the maps are put back in order). There are then
more passes over the maps.

The model counts multiplications and weighs passes against them; its one constant was fitted to measurements
(`python -m benchmarks.layers`). The choice follows from the layer alone, never from a clock, so that equal
seeds give equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from epicortex.families.family import Shape

#: How many kernels a vector unit computes at once.
_LANES: Final = 16
#: What one more pass over a channel costs at each position, in multiplications.
_PASS: Final = 40


@dataclass(frozen=True, slots=True)
class Group:
    """Kernels that are convolved together."""

    kernels: tuple[int, ...]
    """Their places in the layer, in order."""
    extent: Shape
    """The smallest shape that holds all of them."""


@dataclass(frozen=True, slots=True)
class Partition:
    """How a layer is computed: by one dense convolution, or by groups that are added up or split."""

    mode: Literal["dense", "added", "split"]
    groups: tuple[Group, ...]


def choose_partition(kernels: Sequence[Shape], channels: int, stride: Shape) -> Partition:
    """The cheapest way to convolve these kernels, by the model.

    >>> choose_partition([(5, 1), (1, 5), (1, 1)], 1, (1, 1)).mode
    'dense'
    >>> partition = choose_partition([(5, 1), (1, 5), (1, 1)], 10, (1, 1))
    >>> partition.mode, [group.extent for group in partition.groups]
    ('added', [(1, 5), (5, 1)])
    >>> choose_partition([(7, 7), (3, 3)] * 32, 32, (1, 1)).mode
    'split'
    """
    dense = Partition("dense", (_group(kernels, range(len(kernels))),))
    if channels == 1 or len(stride) != 2:
        # Over one channel there is little arithmetic to save; the model was fitted to images.
        return dense
    chains = {mode: _merged(kernels, channels, stride, mode) for mode in ("added", "split")}
    candidates = [dense, *(partition for chain in chains.values() for partition in chain)]
    return min(candidates, key=lambda partition: cost(partition, channels, stride))


def cost(partition: Partition, channels: int, stride: Shape) -> int:
    """What the model says a partition costs at each position of the output.

    >>> cost(choose_partition([(3, 3)] * 10, 10, (1, 1)), 10, (1, 1))
    1440
    """
    nodes = sum(len(group.kernels) for group in partition.groups)
    total = 0
    for group in partition.groups:
        computed = len(group.kernels) if partition.mode == "split" else nodes
        total += math.prod(group.extent) * channels * -(-computed // _LANES) * _LANES
    more = {"dense": 0, "added": len(partition.groups) - 1, "split": len(partition.groups)}[partition.mode]
    return total + more * _PASS * (channels * math.prod(stride) + nodes)


def _merged(
    kernels: Sequence[Shape], channels: int, stride: Shape, mode: Literal["added", "split"]
) -> list[Partition]:
    """From a group for each shape down to two groups, always merging the pair that leaves the least cost."""
    places: dict[Shape, list[int]] = {}
    for place, shape in enumerate(kernels):
        places.setdefault(shape, []).append(place)
    groups = [_group(kernels, places[shape]) for shape in sorted(places)]
    chain = []
    while len(groups) > 1:
        chain.append(Partition(mode, tuple(groups)))
        options = []
        for first, second in combinations(range(len(groups)), 2):
            rest = [group for place, group in enumerate(groups) if place not in (first, second)]
            union = _group(kernels, sorted(groups[first].kernels + groups[second].kernels))
            options.append(sorted([*rest, union], key=lambda group: (group.extent, group.kernels)))
        groups = min(options, key=lambda option: cost(Partition(mode, tuple(option)), channels, stride))
    return chain


def _group(kernels: Sequence[Shape], places: Sequence[int]) -> Group:
    extent = tuple(max(sizes) for sizes in zip(*(kernels[place] for place in places), strict=True))
    return Group(tuple(places), extent)
