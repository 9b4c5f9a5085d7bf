"""A network for other classes, channels or sizes: what still fits is kept, the rest is drawn new.

The first layer is fitted to the channels, the output layer class by class; every layer between is kept where
its shape is the same. A family draws the new network; here the old genes are laid into it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epicortex.families.family import Array
from epicortex.families.genes import Genes

Rows = Sequence[int | None]
"""For each output the old output that it goes on from; None is new."""


def inherited(fresh: Sequence[Genes], old: Sequence[Genes], rows: Rows) -> tuple[tuple[Genes, ...], int]:
    """The genes of a new network with all that fits of the old one, and how many layers were kept."""
    genes, kept = [], 0
    for place, (new, own) in enumerate(zip(fresh, old, strict=True)):
        if place == len(fresh) - 1:
            genes.append(_answers(new, own, rows))
            continue
        fitting = own if place else own.replace(weight=fitted(own.weight, new.weight.shape))
        same = all(fitting[name].shape == new[name].shape for name in new)
        kept += same
        genes.append(Genes(**{name: fitting[name] for name in new}) if same else new)
    return tuple(genes), kept


def fitted(weight: Array, shape: Sequence[int]) -> Array:
    """A first layer's weights [nodes, channels, …] for another number of channels.

    What each new channel gets is such that equal channels give the sum that they gave before.

    >>> fitted(np.ones((2, 1, 3, 3), np.float32), (2, 3, 3, 3)).sum(axis=1)[0, 0, 0].round(4)
    np.float32(1.0)
    """
    nodes, channels = weight.shape[:2]
    if weight.ndim < 3 or channels == shape[1] or weight.shape[2:] != tuple(shape[2:]):
        return weight
    whole = weight.sum(axis=1, keepdims=True, dtype=np.float64) / shape[1]
    return np.broadcast_to(whole, (nodes, *shape[1:])).astype(np.float32)


def _answers(new: Genes, old: Genes, rows: Rows) -> Genes:
    """The output layer: known classes keep their weights, where the layer below is as it was."""
    arrays = {name: np.array(array) for name, array in new.items()}
    for name, array in arrays.items():
        if name in old and old[name].shape[1:] == array.shape[1:]:
            for row, before in enumerate(rows):
                if before is not None:
                    array[row] = old[name][before]
    return Genes(**arrays)
