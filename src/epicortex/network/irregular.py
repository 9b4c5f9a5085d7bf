"""The irregular convolution: kernels of different odd shapes, stacked on their centres, in one layer.

The weight is one dense parameter, so the forward pass is one ordinary convolution. The entries around a small
kernel are masked inside the forward pass: they get no gradient, and so stay exactly 0.0 under any optimiser,
after copying, pickling and loading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from epicortex.errors import GenomeError
from epicortex.genome import ConvLayer, Shape
from epicortex.phenotype import kernel_mask

_CONVOLUTIONS: Final[dict[int, Callable[..., Tensor]]] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}


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

    def __init__(
        self, channels: int, kernels: Sequence[Shape], stride: Shape, *, weight: Tensor, bias: Tensor
    ) -> None:
        super().__init__()
        layer = ConvLayer(tuple(kernels), stride)
        expected = (layer.nodes, channels, *layer.extent)
        if tuple(weight.shape) != expected or tuple(bias.shape) != (layer.nodes,):
            raise GenomeError(
                f"conv: weights of shape {tuple(weight.shape)} and {tuple(bias.shape)} do not fit; "
                f"expected {expected} and {(layer.nodes,)}"
            )
        self.kernels = layer.kernels
        self.stride = stride
        self.padding = tuple(size // 2 for size in layer.extent)
        uniform = len(set(layer.kernels)) == 1
        mask = None if uniform else torch.from_numpy(kernel_mask(layer.kernels)).to(weight.dtype)
        self.register_buffer("mask", mask, persistent=False)
        self.weight = nn.Parameter(weight if mask is None else torch.where(mask.bool(), weight, 0.0))
        self.bias = nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve a batch [samples, channels, *spatial]."""
        weight = self.weight if self.mask is None else self.weight * self.mask
        stride = self.stride
        if not any(self.padding):
            # Kernels of size 1 look at every stride-th position. Said so to torch, since over channels_last
            # oneDNN writes out of bounds for a strided 1×1 convolution (torch 2.13).
            every = (slice(None, None, step) for step in stride)
            x, stride = x[(slice(None), slice(None), *every)], (1,) * len(stride)
        if len(stride) == 2 and x.shape[1] > 1:
            # Weight gradients over few channels take half the time; over one nothing is gained.
            x = x.contiguous(memory_format=torch.channels_last)
        return _CONVOLUTIONS[len(stride)](x, weight, self.bias, stride, self.padding)

    def kernel_weight(self) -> Tensor:
        """A copy of the weight, 0.0 around the kernels whatever was written there."""
        return self._cleaned(self.weight.detach()).clone()

    def extra_repr(self) -> str:
        """The kernels and the stride, for `print`."""
        return str(ConvLayer(self.kernels, self.stride))

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
