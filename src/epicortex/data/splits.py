"""Stratified splits of labels. Nothing here touches the data itself."""

from __future__ import annotations

import numpy as np

from epicortex.errors import DataError


def split_validation(
    y: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted indices (train, validation): every class gives the same fraction, and keeps at least one.

    >>> train, validation = split_validation(np.repeat([0, 1], 10), 0.2, np.random.default_rng(1))
    >>> len(train), len(validation)
    (16, 4)
    """
    if not 0 <= fraction < 1:
        raise DataError(f"the fraction to split off is {fraction}; it must be from 0 to below 1")
    # One random key a sample; the smallest of each class are taken.
    order = np.lexsort((rng.random(len(y)), y))
    _, starts, counts = np.unique(y[order], return_index=True, return_counts=True)
    rank = np.arange(len(y)) - np.repeat(starts, counts)
    chosen = rank < np.repeat(_shares(counts, fraction), counts)
    return np.sort(order[~chosen]), np.sort(order[chosen])


def _shares(counts: np.ndarray, fraction: float) -> np.ndarray:
    """How many each class gives: rounded down, then the largest remainders up to the rounded total."""
    exact = fraction * counts
    shares: np.ndarray = np.minimum(np.floor(exact), counts - 1).astype(np.int64)
    for index in np.argsort(shares - exact, kind="stable"):
        if shares.sum() >= round(fraction * counts.sum()):
            break
        shares[index] = min(shares[index] + 1, counts[index] - 1)
    return shares
