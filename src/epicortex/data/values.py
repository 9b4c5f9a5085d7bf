"""Turns what people have in arrays into what networks take: layout, number type, scaling, labels.

All of it works chunk by chunk, so that a mapped array stays on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicortex.data.cachefile import chunks
from epicortex.data.dataset import MAX_CLASSES, LabelKind, Scaling
from epicortex.data.options import Layout
from epicortex.errors import DataError

_CHANNELS = (1, 2, 3, 4)
#: From how many columns on a table may be signals, and how many samples are needed and looked at to tell.
_LONG, _FEWEST, _LOOKED_AT = 32, 20, 2000


def channels_first(x: np.ndarray, layout: Layout, name: str) -> np.ndarray:
    """A view of `x` as [N, columns] or [N, channels, *spatial].

    >>> channels_first(np.zeros((9, 28, 20, 3)), "auto", "x").shape
    (9, 3, 28, 20)
    """
    if not 2 <= x.ndim <= 5:
        raise DataError(
            f"{name} has the shape {x.shape}: samples × columns, or samples of images, are needed"
        )
    if x.ndim == 2:
        return x
    if layout == "auto":
        if x.ndim == 3:
            return x[:, None]
        first, last = x.shape[1] in _CHANNELS, x.shape[-1] in _CHANNELS
        if first == last:
            raise DataError(
                f"{name} has the shape {x.shape}, which does not tell where the channels are; "
                "give --data.layout channels_first or channels_last (in Python data.layout)"
            )
        layout = "channels_first" if first else "channels_last"
    return x if layout == "channels_first" else np.moveaxis(x, -1, 1)


def as_inputs(parts: Mapping[str, np.ndarray], *, holes: bool = False) -> tuple[dict[str, np.ndarray], float]:
    """All parts as uint8 (images of whole numbers up to 255) or float32, and the scaling's divisor.

    No value changes: what a champion takes later is what it was evolved on. With `holes`, NaN may be there.
    """
    for name, x in parts.items():
        if x.dtype.kind not in "buif":
            raise DataError(f"{name} holds {x.dtype}; numbers are needed")
        if len(x) and x.size == 0:
            raise DataError(f"{name} has the shape {x.shape}: its samples are empty")
    images = all(x.ndim > 2 for x in parts.values())
    if images and all(x.dtype == np.uint8 for x in parts.values()):
        return dict(parts), 255.0
    if images and all(_are_bytes(x) for x in parts.values()):
        # Whole numbers up to 1 are a mask, not an almost black picture.
        top = max((int(x.max()) for x in parts.values() if x.size), default=0)
        return {name: _to_bytes(x) for name, x in parts.items()}, 1.0 if top <= 1 else 255.0
    return {name: _to_float(x, name, holes=holes) for name, x in parts.items()}, 1.0


def measure(x: np.ndarray, divisor: float) -> Scaling:
    """The scaling that gives each channel or column of `x` mean 0 and deviation 1."""
    if x.dtype == np.uint8:
        mean, std = _moments_of_bytes(x)
    else:
        mean, std = _moments(x)
    # What never changes carries no information; any deviation would do for it.
    std[~(std > 1e-12 * np.maximum(1, np.abs(mean)))] = divisor
    return Scaling(divisor, tuple((mean / divisor).tolist()), tuple((std / divisor).tolist()))


def signals(x: np.ndarray) -> list[str]:
    """A note where the columns of a table look like the values of a signal, one after another.

    >>> signals(np.cumsum(np.random.default_rng(1).normal(size=(50, 64)), axis=1))[0][:40]
    'neighbouring columns are alike, as in si'
    """
    some = np.asarray(x[:_LOOKED_AT], np.float64)
    if some.shape[1] < _LONG or len(some) < _FEWEST:
        return []
    deviation = some.std(axis=0)
    some = (some - some.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
    near = float(np.mean(some[:, 1:] * some[:, :-1]))
    far = float(np.mean(some * np.roll(some, some.shape[1] // 2, axis=1)))
    if near < 0.4 or near - abs(far) < 0.2:
        return []
    return [
        f"neighbouring columns are alike, as in signals, but {x.shape[1]} columns are a table: give arrays "
        f"of the shape samples × 1 × {x.shape[1]} (x[:, None]) for networks with convolutions"
    ]


def encode_labels(parts: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Labels as numbers from 0, and the class names in sorted order; the training part has every class.

    >>> encode_labels({"y_train": ["dog", "cat", "dog"]})
    ({'y_train': array([1, 0, 1])}, ('cat', 'dog'))
    """
    plain = {name: _plain_labels(np.asarray(y), name) for name, y in parts.items()}
    values = np.unique(plain["y_train"])
    if len(values) > MAX_CLASSES:
        raise DataError(
            f"y_train has {len(values)} different labels; is this a number to be predicted, not a class?"
        )
    names = tuple(str(value) for value in values.tolist())
    encoded = {}
    for name, y in plain.items():
        if y.dtype.kind != values.dtype.kind:
            raise DataError(f"{name} holds {y.dtype} labels, y_train {values.dtype}: they must be alike")
        place = np.minimum(np.searchsorted(values, y), len(values) - 1)
        strange = values[place] != y
        if strange.any():
            raise DataError(f"{name} has the class {str(y[strange][0])!r:.60}, which y_train does not have")
        encoded[name] = place.astype(np.int64)
    return encoded, names


def label_kind(y: np.ndarray) -> LabelKind:
    """What labels are, before they are names of classes.

    >>> label_kind(np.array([0, 1])), label_kind(np.array(["cat"]))
    ('integer', 'text')
    """
    return "boolean" if y.dtype.kind == "b" else "integer" if y.dtype.kind in "iuf" else "text"


def _plain_labels(y: np.ndarray, name: str) -> np.ndarray:
    """Labels as int64 or text."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(f"{name} has the shape {y.shape}; one label for each sample is needed")
    if y.dtype.kind == "O":
        y = np.array([str(value) for value in y.tolist()], dtype=np.str_)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "latin1")
    if y.dtype.kind == "f":
        if not (np.isfinite(y).all() and (y == np.rint(y)).all() and (np.abs(y) < 2**53).all()):
            raise DataError(
                f"{name} holds fractions; classes are whole numbers or names, and --data.task regression "
                "takes numbers for a quantity"
            )
        y = y.astype(np.int64)
    if y.dtype.kind in "biu":
        if y.dtype == np.uint64 and len(y) and y.max() > np.iinfo(np.int64).max:
            raise DataError(f"{name} holds numbers too large for a class")
        return y.astype(np.int64)
    if y.dtype.kind == "U":
        return y
    raise DataError(f"{name} holds {y.dtype}; whole numbers or names are needed")


def _are_bytes(x: np.ndarray) -> bool:
    """Whether `x` is whole numbers from 0 to 255."""
    for chunk in chunks(x):
        if not np.isfinite(chunk).all() or chunk.min() < 0 or chunk.max() > 255:
            return False
        if x.dtype.kind == "f" and not np.array_equal(np.rint(chunk), chunk):
            return False
    return True


def _to_bytes(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape, np.uint8)
    row = 0
    for chunk in chunks(x):
        out[row : row + len(chunk)] = chunk
        row += len(chunk)
    return out


def _to_float(x: np.ndarray, name: str, *, holes: bool = False) -> np.ndarray:
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(x, dtype=np.float32)
    for number, chunk in enumerate(chunks(out)):
        sound = ~np.isinf(chunk) if holes else np.isfinite(chunk)
        if not sound.all():
            rows = np.flatnonzero(~sound.reshape(len(chunk), -1).all(axis=1))
            row = number * len(next(chunks(out))) + int(rows[0])
            raise DataError(
                f"{name} has values that are missing, infinite or too large, first in sample {row}"
            )
    return out


def _moments_of_bytes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact, from a count of each value in each channel."""
    channels = x.shape[1]
    counts = np.zeros((channels, 256), np.int64)
    for chunk in chunks(x):
        for channel in range(channels):
            counts[channel] += np.bincount(chunk[:, channel].ravel(), minlength=256)
    values = np.arange(256)
    mean = counts @ values / counts.sum(axis=1)
    square = counts @ (values * values) / counts.sum(axis=1)
    return mean, np.sqrt(np.maximum(square - mean * mean, 0))


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In two passes: the one-pass formula loses all digits where the mean is large."""
    axes = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    mean = sum(chunk.sum(axis=axes, dtype=np.float64) for chunk in chunks(x)) / count
    shape = (1, -1) + (1,) * (x.ndim - 2)
    square = sum(((chunk - np.reshape(mean, shape)) ** 2).sum(axis=axes) for chunk in chunks(x)) / count
    return np.asarray(mean), np.sqrt(square)
