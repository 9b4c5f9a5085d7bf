"""Stratified splits of labels. Nothing here touches the data itself."""

from __future__ import annotations

import warnings

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


def split_groups(
    y: np.ndarray, groups: np.ndarray, fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted indices (train, held out): no group is on both sides, and classes are as even as groups allow.

    >>> groups = np.repeat(np.arange(20), 5)
    >>> train, held = split_groups(np.arange(100) % 2, groups, 0.2, seed=1)
    >>> len(held), set(groups[train]) & set(groups[held])
    (20, set())
    """
    from sklearn.model_selection import StratifiedGroupKFold

    folds = max(2, round(1 / fraction)) if fraction else 0
    if not folds:
        return np.arange(len(y)), np.arange(0)
    known = len(np.unique(groups))
    if known < folds:
        raise DataError(
            f"there are only {known} groups; to hold out {fraction:.0%}, at least {folds} are needed"
        )
    split = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small classes are told of elsewhere
        try:
            train, held = next(iter(split.split(y, y, groups)))
        except ValueError as error:
            raise DataError(f"the groups cannot be split: {error}") from None
    return np.sort(train), np.sort(held)


def _shares(counts: np.ndarray, fraction: float) -> np.ndarray:
    """How many each class gives: rounded down, then the largest remainders up to the rounded total."""
    exact = fraction * counts
    shares: np.ndarray = np.minimum(np.floor(exact), counts - 1).astype(np.int64)
    for index in np.argsort(shares - exact, kind="stable"):
        if shares.sum() >= round(fraction * counts.sum()):
            break
        shares[index] = min(shares[index] + 1, counts[index] - 1)
    return shares
