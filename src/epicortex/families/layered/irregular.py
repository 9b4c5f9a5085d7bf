"""The irregular convolution: kernels of different odd shapes, stacked on their centres, in one layer.

The weight is one dense parameter, and the forward pass one ordinary convolution, or a few where
`choose_partition` says that kernels of like shapes are convolved faster apart. The entries around a small
kernel are masked inside the forward pass: they count as 0.0, get no gradient, and are not inherited. They
stay exactly 0.0 under any optimiser that treats each number by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Shape
from epicortex.families.layered.partition import Group, choose_partition
from epicortex.families.layered.placing import kernel_mask
from epicortex.families.layered.shapes import convolution_text, extent

_CONVOLUTIONS: Final[dict[int, Callable[..., Tensor]]] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}


class _Group(nn.Module):
    """Convolves one group of a layer's kernels: those alone, or all with the others at 0."""

    rows: Tensor | None
    mask: Tensor

    def __init__(self, kernels: Sequence[Shape], group: Group, *, alone: bool) -> None:
        super().__init__()
        self.extent, self.padding = group.extent, _half(group.extent)
        mask = cropped(torch.from_numpy(kernel_mask(kernels)), group.extent).to(torch.float32)
        rows = torch.tensor(group.kernels)
        if alone:
            mask = mask.index_select(0, rows)
        else:
            others = [place for place in range(len(kernels)) if place not in group.kernels]
            mask[others] = 0.0
        self.register_buffer("mask", mask, persistent=False)
        self.register_buffer("rows", rows if alone else None, persistent=False)

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Shape) -> Tensor:
        """The maps of the group's own kernels, or of all with 0 where they are not its own."""
        if self.rows is not None:
            weight = weight.index_select(0, self.rows)
            bias = None if bias is None else bias.index_select(0, self.rows)
        return _convolved(x, cropped(weight, self.extent) * self.mask, bias, stride, self.padding)


class IrregularConv(nn.Module):
    """A convolution in 1, 2 or 3 dimensions whose kernels have shapes of their own.

    `weight` is [kernels, channels, *largest kernel]; entries outside a kernel are 0.0. Padding is half the
    largest kernel, so that at stride 1 the output is as large as the input.

    >>> layer = IrregularConv(1, [(3, 3), (5, 1)], (2, 2), weight=torch.ones(2, 1, 5, 3), bias=torch.zeros(2))
    >>> layer(torch.ones(1, 1, 8, 8)).shape
    torch.Size([1, 2, 4, 4])
    >>> int((layer.weight != 0).sum())
    14
    """

    weight: nn.Parameter
    bias: nn.Parameter
    mask: Tensor | None
    order: Tensor

    def __init__(
        self, channels: int, kernels: Sequence[Shape], stride: Shape, *, weight: Tensor, bias: Tensor
    ) -> None:
        super().__init__()
        self.kernels, self.stride = tuple(kernels), stride
        nodes, largest = len(self.kernels), extent(self.kernels)
        expected = (nodes, channels, *largest)
        if tuple(weight.shape) != expected or tuple(bias.shape) != (nodes,):
            raise GenomeError(
                f"conv: weights of shape {tuple(weight.shape)} and {tuple(bias.shape)} do not fit; "
                f"expected {expected} and {(nodes,)}"
            )
        self.padding = _half(largest)
        self._wide = channels > 1 and len(stride) == 2
        uniform = len(set(self.kernels)) == 1
        mask = None if uniform else torch.from_numpy(kernel_mask(self.kernels)).to(weight.dtype)
        self.register_buffer("mask", mask, persistent=False)
        self.weight = nn.Parameter(weight if mask is None else torch.where(mask.bool(), weight, 0.0))
        self.bias = nn.Parameter(bias)
        self.partition = choose_partition(self.kernels, channels, stride)
        self.divided = self.partition.mode != "dense"
        """Whether the partition is followed; see `accelerate`."""
        alone = self.partition.mode == "split"
        parts = () if self.partition.mode == "dense" else self.partition.groups
        self.groups = nn.ModuleList(_Group(self.kernels, group, alone=alone) for group in parts)
        order = torch.tensor([place for group in self.partition.groups for place in group.kernels]).argsort()
        self.register_buffer("order", order, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve a batch [samples, channels, *spatial]."""
        if self._wide:
            # Weight gradients over few channels take half the time; over one nothing is gained.
            x = x.contiguous(memory_format=torch.channels_last)
        if not self.divided:
            mask = self.mask
            weight = self.weight if mask is None else self.weight * mask
            return _convolved(x, weight, self.bias, self.stride, self.padding)
        first, *others = self.groups
        if self.partition.mode == "split":
            maps = [group(x, self.weight, self.bias, self.stride) for group in self.groups]
            return torch.cat(maps, 1).index_select(1, self.order)
        total: Tensor = first(x, self.weight, self.bias, self.stride)
        for group in others:
            total += group(x, self.weight, None, self.stride)
        return total

    def accelerate(self) -> None:
        """Compute as suits a graphics processor: by one dense convolution."""
        self.divided = False

    def kernel_weight(self) -> Tensor:
        """A copy of the weight, 0.0 around the kernels whatever was written there."""
        return self._cleaned(self.weight.detach()).clone()

    def __repr__(self) -> str:
        return f"IrregularConv({convolution_text(self.kernels, self.stride)})"

    def _cleaned(self, weight: Tensor) -> Tensor:
        return weight if self.mask is None else torch.where(self.mask.bool().to(weight.device), weight, 0.0)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        # Cleaned on the way in: the parameter stays the one that an optimiser already knows.
        loaded = state_dict.get(f"{prefix}weight")
        if isinstance(loaded, Tensor) and loaded.shape == self.weight.shape:
            state_dict = state_dict | {f"{prefix}weight": self._cleaned(loaded.detach())}
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A full layer with these weights."""
    outputs, inputs = weight.shape
    # on "meta", since the stock initialisation would draw from torch's global generator
    layer = nn.Linear(inputs, outputs, device="meta")
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
    return layer


def tensor(array: Array) -> Tensor:
    """A copy of an array that may be written to."""
    return torch.from_numpy(np.array(array))


def cropped(weight: Tensor, extent: Shape) -> Tensor:
    """The middle of a weight [kernels, channels, *larger extent]."""
    middle = (
        slice(size // 2 - inner // 2, size // 2 + inner // 2 + 1)
        for size, inner in zip(weight.shape[2:], extent, strict=True)
    )
    return weight[(slice(None), slice(None), *middle)]


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Shape, padding: Shape) -> Tensor:
    if not any(padding):
        # Kernels of size 1 look at every stride-th position. Said so to torch, since over channels_last
        # oneDNN writes out of bounds for a strided 1×1 convolution (torch 2.13).
        every = (slice(None, None, step) for step in stride)
        x, stride = x[(slice(None), slice(None), *every)], (1,) * len(stride)
    return _CONVOLUTIONS[len(stride)](x, weight, bias, stride, padding)


def _half(extent: Sequence[int]) -> Shape:
    return tuple(size // 2 for size in extent)
