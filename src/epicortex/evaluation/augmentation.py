"""Changes to training samples beyond moving and mirroring: rotation, scale, colour, noise and cutout.

They are made on a gathered batch of raw values, the same for every arithmetic: sums and products one by
one, no sine, so that all CPUs get the same bits. Which of them help is measured by `run.augmenting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

#: What suits samples of so many spatial dimensions: tables, signals, images, volumes.
SUITABLE: Final = (
    ("noise",),
    ("scale", "colour", "noise", "cutout"),
    ("rotation", "scale", "colour", "noise", "cutout"),
    ("colour", "noise", "cutout"),
)
#: What torch does, as `warped`; `auto` may come to them.
TURNS: Final = frozenset({"rotation", "scale", "auto"})
#: The tangent of half of 15 degrees: images are turned by up to that.
_TURN: Final = 0.1317
_SCALES: Final = (0.8, 1.2)
#: The part of the samples that is turned or scaled: it takes long.
_WARPED: Final = 0.5
_CONTRASTS: Final = (0.7, 1.3)
#: In standard deviations of the data: all channels together, and each on its own.
_BRIGHTNESS: Final = 0.3
_TINT: Final = 0.1
_NOISE: Final = 0.15
_WINDOWS: Final = 4096
#: The part of each side that is cut out.
_CUT: Final = (0.2, 0.5)
#: How many positions are moved at a time, so that they stay in the cache.
_POSITIONS: Final = 1 << 16

Array = NDArray[np.float32]


class Scale(Protocol):
    """The mean and the deviation of raw values: (x / divisor − mean) / std is scaled."""

    @property
    def divisor(self) -> float:
        """What raw values are divided by first."""

    @property
    def mean(self) -> Sequence[float]:
        """For each channel or column."""

    @property
    def std(self) -> Sequence[float]:
        """For each channel or column."""


def unsuitable(names: Iterable[str], dimensions: int) -> list[str]:
    """Those of the names that samples of so many spatial dimensions cannot have.

    >>> unsuitable(["rotation", "noise"], 1)
    ['rotation']
    """
    return [name for name in names if name not in SUITABLE[min(dimensions, len(SUITABLE) - 1)]]


class Augmenter:
    """Changes one batch after another; what is drawn comes from its own generator.

    >>> from epicortex.data import Scaling
    >>> gray = Augmenter(["cutout"], Scaling(255.0, (0.5,), (0.25,)), np.random.default_rng(1))
    >>> changed = gray(np.zeros((2, 1, 8, 8), np.uint8))
    >>> sorted(set(changed.ravel().tolist())), int((changed > 0).sum())
    ([0.0, 127.5], 20)
    """

    def __init__(self, names: Sequence[str], scale: Scale, rng: np.random.Generator) -> None:
        self._names = frozenset(names)
        self._rng = rng
        self._mean = scale.divisor * np.asarray(scale.mean, np.float64)
        self._std = scale.divisor * np.asarray(scale.std, np.float64)

    def __call__(self, raw: NDArray[Any]) -> Array:
        """Raw samples [samples, channels or columns, *spatial], changed; what was given is left alone."""
        count, spatial = len(raw), raw.shape[2:]
        x: Array = raw.astype(np.float32)
        if self._names & {"rotation", "scale"}:
            chosen = np.flatnonzero(self._rng.random(count) < _WARPED)
            x[chosen] = warped(x[chosen], self._draw_warps(len(chosen), len(spatial)))
        if "colour" in self._names:
            self._colour(x)
        if "noise" in self._names:
            self._noise(x)
        if "cutout" in self._names:
            self._cut(x)
        return x

    def _draw_warps(self, count: int, dimensions: int) -> NDArray[np.float64]:
        """Matrices [samples, dimensions, dimensions] from places in the new samples to those in the old."""
        zoom = self._rng.uniform(*_SCALES, count) if "scale" in self._names else np.ones(count)
        if dimensions == 1:
            return zoom.reshape(-1, 1, 1)
        turn = self._rng.uniform(-_TURN, _TURN, count) if "rotation" in self._names else np.zeros(count)
        whole = 1 + turn * turn
        cosine, sine = zoom * ((1 - turn * turn) / whole), zoom * (2 * turn / whole)
        return np.stack([cosine, -sine, sine, cosine], axis=1).reshape(-1, 2, 2)

    def _colour(self, x: Array) -> None:
        count, channels = x.shape[:2]
        contrast = self._rng.uniform(*_CONTRASTS, (count, 1))
        light = self._rng.uniform(-_BRIGHTNESS, _BRIGHTNESS, (count, 1))
        tint = self._rng.uniform(-_TINT, _TINT, (count, channels)) if channels > 1 else 0.0
        x *= _fitted(np.broadcast_to(contrast, (count, channels)), x)
        x += _fitted(self._mean * (1 - contrast) + self._std * (light + tint), x)

    def _noise(self, x: Array) -> None:
        """Every sample gets a window of one field: a field for each would take as long as a step."""
        size = x[0].size
        field = self._rng.standard_normal(size + _WINDOWS, np.float32)
        starts = self._rng.integers(_WINDOWS + 1, size=len(x)).tolist()
        levels = _fitted(self._rng.uniform(0, _NOISE, (len(x), 1)) * self._std, x)
        for place, start in enumerate(starts):
            x[place] += field[start : start + size].reshape(x.shape[1:]) * levels[place]

    def _cut(self, x: Array) -> None:
        spatial = np.array(x.shape[2:])
        sides = np.maximum(1, np.round(self._rng.uniform(*_CUT, (len(x), len(spatial))) * spatial))
        starts = np.floor(self._rng.random(sides.shape) * (spatial - sides + 1)).astype(np.int64)
        ends, fill = starts + sides.astype(np.int64), _fitted(self._mean[None], x[:1])[0]
        for sample, low, high in zip(x, starts.tolist(), ends.tolist(), strict=True):
            sample[(slice(None), *map(slice, low, high))] = fill


def warped(x: Array, matrices: NDArray[np.float64]) -> Array:
    """Samples [samples, channels, *spatial], each turned and scaled about its centre.

    A place of the result is mixed of its neighbours in the original (bilinear); edges are repeated.

    >>> warped(np.array([[[0, 2, 4]]], np.float32), np.array([[[0.5]]])).tolist()
    [[[1.0, 2.0, 3.0]]]
    """
    import torch  # its gather is several times as fast as numpy's

    spatial = x.shape[2:]
    images, result = torch.from_numpy(x).flatten(2), np.empty_like(x)
    made = torch.from_numpy(result).flatten(2)
    grids = np.meshgrid(*(np.arange(size) - (size - 1) / 2 for size in spatial), indexing="ij")
    axes = [torch.from_numpy(grid.astype(np.float32)).flatten() for grid in grids]
    factors = torch.from_numpy(matrices.astype(np.float32))
    step = max(1, _POSITIONS // axes[0].numel())
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        made[part] = _mixed(images[part], _sources(factors[part], axes, spatial), spatial)
    return result


def _sources(factors: Tensor, axes: Sequence[Tensor], spatial: Sequence[int]) -> list[Tensor]:
    """Where each place comes from, in each dimension [samples, places]; never outside."""
    found = []
    for row, size in enumerate(spatial):
        place = factors[:, row, 0, None] * axes[0]
        for column in range(1, len(axes)):
            place += factors[:, row, column, None] * axes[column]
        found.append(place.add_((size - 1) / 2).clamp_(0, size - 1))
    return found


def _mixed(images: Tensor, sources: Sequence[Tensor], spatial: Sequence[int]) -> Tensor:
    """Images [samples, channels, places] at fractional places."""
    import torch

    corners = [(torch.zeros_like(sources[0], dtype=torch.int64), torch.ones_like(sources[0]))]
    for place, size in zip(sources, spatial, strict=True):
        low = place.floor()
        part = place - low
        first = low.to(torch.int64)
        sides = ((first, 1 - part), ((first + 1).clamp_(max=size - 1), part))
        corners = [(at * size + side, weight * share) for at, weight in corners for side, share in sides]
    mixed = torch.zeros_like(images)
    for at, weight in corners:
        mixed += images.gather(2, at[:, None].expand_as(images)).mul_(weight[:, None])
    return mixed


def _fitted(values: NDArray[Any], x: Array) -> Array:
    """One value for each sample and channel, to work on samples of any dimension."""
    fitted: Array = values.astype(np.float32).reshape(*values.shape, *(1,) * (x.ndim - 2))
    return fitted
