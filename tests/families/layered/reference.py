"""The rules of weight surgery, told once more, entry by entry, for the tests to compare with.

A gene is a dict from coordinates to weights: (channel, *offset from the centre) in a kernel and
(channel, *position) in a full layer. Nothing here shares code with what it checks.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epicortex.families.family import Shape
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.families.layered.phenotype import Phenotype

Coordinate = tuple[int, ...]


@dataclass(frozen=True)
class Gene:
    """One node: where its weights are, and its bias; values as bits, so that equal means the same."""

    entries: dict[Coordinate, bytes]
    bias: bytes


def gene(phenotype: Phenotype, place: int, node: int) -> Gene:
    """The gene of one node of one layer (both counted from 0)."""
    layer, below = phenotype.genome.layers[place], shapes_of(phenotype.genome)[place]
    weight, bias = phenotype.weights[place].values()
    entries: dict[Coordinate, bytes] = {}
    if isinstance(layer, ConvLayer):
        extent = weight.shape[2:]
        for channel in range(below[0]):
            for offset in itertools.product(*(reach(size) for size in layer.kernels[node])):
                at = tuple(whole // 2 + d for whole, d in zip(extent, offset, strict=True))
                entries[channel, *offset] = weight[(node, channel, *at)].tobytes()
    else:
        for flat, position in enumerate(itertools.product(*map(range, below))):
            entries[position] = weight[node, flat].tobytes()
    return Gene(entries, bias[node].tobytes())


def reach(size: int) -> range:
    """The offsets from the centre that a kernel of this size covers."""
    return range(-(size // 2), size // 2 + 1)


def carried(
    source: Gene, old_below: Shape, new_below: Shape, kernel: Shape | None
) -> dict[Coordinate, bytes]:
    """What of a gene survives over another input: in a kernel of this shape, or as [channel, *spatial]."""
    kept = {}
    for (channel, *rest), value in source.entries.items():
        if kernel is not None:
            target = tuple(rest)
            fits = all(d in reach(size) for d, size in zip(rest, kernel, strict=True))
        else:
            pairs = list(zip(old_below[1:], new_below[1:], strict=True))
            target = tuple(x + shift(old, new) for x, (old, new) in zip(rest, pairs, strict=True))
            fits = all(0 <= x < new for x, (_, new) in zip(target, pairs, strict=True))
        if fits and channel < new_below[0]:
            kept[channel, *target] = value
    return kept


def shift(old: int, new: int) -> int:
    """How far a position moves when a map is padded or cropped on both sides, less on the low side."""
    if new >= old:
        return math.floor((new - old) / 2)
    return -math.floor((old - new) / 2)


def shapes_of(genome: Genome) -> list[Shape]:
    """What every layer looks at, and the output at the end; positions counted one by one."""
    shapes = [genome.input_shape]
    for layer in genome.layers:
        if isinstance(layer, ConvLayer):
            sizes = [
                sum(1 for position in range(size) if position % step == 0)
                for size, step in zip(shapes[-1][1:], layer.stride, strict=True)
            ]
        else:
            sizes = [1] * (len(genome.input_shape) - 1)
        shapes.append((layer.nodes, *sizes))
    return shapes


def broken_limits(genome: Genome) -> list[str]:
    """Every limit that a genome breaks; empty for a good one."""
    broken: list[str] = []
    seen_full = False
    for index, (layer, below) in enumerate(zip(genome.hidden, shapes_of(genome), strict=False), 1):
        if layer.nodes < 1:
            broken.append(f"layer {index} has no nodes")
        if not isinstance(layer, ConvLayer):
            seen_full = True
            continue
        if seen_full or len(below) == 1:
            broken.append(f"layer {index}: a convolution on a full layer or a table")
        for kernel, size in (
            (k, size) for shape in layer.kernels for k, size in zip(shape, below[1:], strict=True)
        ):
            if kernel % 2 != 1 or kernel < 1 or (kernel > 1 and 2 * kernel > size):
                broken.append(f"layer {index}: kernel size {kernel} over {size}")
        for step, size in zip(layer.stride, below[1:], strict=True):
            if step < 1 or (step > 1 and 2 * step > size):
                broken.append(f"layer {index}: stride {step} over {size}")
    return broken


def weights_around_kernels(phenotype: Phenotype) -> int:
    """How many entries around kernels are not exactly +0.0."""
    count = 0
    for layer, genes in zip(phenotype.genome.layers, phenotype.weights, strict=True):
        if isinstance(layer, ConvLayer):
            weight = genes.weight
            around = np.array(weight).view(np.uint32)
            for node, kernel in enumerate(layer.kernels):
                low = [(whole - size) // 2 for whole, size in zip(weight.shape[2:], kernel, strict=True)]
                box = tuple(slice(start, start + size) for start, size in zip(low, kernel, strict=True))
                around[node][(slice(None), *box)] = 0
            count += int(np.count_nonzero(around))
    return count


def drawn_new(before: Phenotype, after: Phenotype, sources: Sequence[int | None]) -> list[float]:
    """Check every gene of `after` against the rules; return the values that were drawn new.

    `sources` names the layer of `before` that each layer of `after` continues.
    """
    old_shapes, new_shapes = shapes_of(before.genome), shapes_of(after.genome)
    new: list[float] = []
    for place, source in enumerate(sources):
        layer = after.genome.layers[place]
        known = before.genome.layers[source].nodes if source is not None else 0
        for node in range(layer.nodes):
            got = gene(after, place, node)
            kept: dict[Coordinate, bytes] = {}
            if source is not None and node < known:
                old = gene(before, source, node)
                kernel = layer.kernels[node] if isinstance(layer, ConvLayer) else None
                kept = carried(old, old_shapes[source], new_shapes[place], kernel)
                assert got.bias == old.bias, f"layer {place}, node {node}: the bias changed"
            else:
                new.append(number(got.bias))
            new += compare(got, kept, f"layer {place}, node {node}")
    return new


def compare(got: Gene, kept: dict[Coordinate, bytes], where: str) -> list[float]:
    """Check that a gene holds what it must keep; return what else it holds."""
    assert kept.keys() <= got.entries.keys(), f"{where}: lost {sorted(kept.keys() - got.entries.keys())[:3]}"
    changed = [at for at, value in kept.items() if got.entries[at] != value]
    assert not changed, f"{where}: {len(changed)} of {len(kept)} kept entries changed, such as {changed[0]}"
    return [number(value) for at, value in got.entries.items() if at not in kept]


def number(bits: bytes) -> float:
    """The float32 of these bits."""
    return float(np.frombuffer(bits, np.float32)[0])


def fingerprint(phenotype: Phenotype) -> str:
    """A digest of everything a phenotype holds."""
    digest = hashlib.sha256(phenotype.genome.to_json().encode())
    for genes in phenotype.weights:
        for array in genes.values():
            digest.update(repr((array.shape, array.dtype)).encode() + array.tobytes())
    return digest.hexdigest()
