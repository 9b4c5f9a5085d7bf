"""Irregular layers of a real run against dense ones of the same size, forward and backward, batch 128.

Run it with `python -m benchmarks.layers`. The dense layer gets its input in the memory layout that suits it
better, and so does ours; gradients of the input are computed for every layer but the first of a network.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks import real
from benchmarks.measure import alternate, row
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.families.layered.genome import ConvLayer
from epicortex.families.layered.irregular import IrregularConv

#: 64 kernels of mixed shapes up to 7×7 over 32 channels of 16×16.
WIDE = ((32, 16, 16), ConvLayer(((7, 7), (5, 5), (3, 3), (1, 1), (7, 1), (1, 7), (3, 5), (5, 3)) * 8, (1, 1)))


def step(module: nn.Module, x: Tensor, gradient: Tensor) -> Callable[[], None]:
    """Forward and backward, once."""

    def run() -> None:
        module.zero_grad()
        x.grad = None
        module(x).backward(gradient)

    return run


def dense_step(shape: tuple[int, ...], layer: ConvLayer, layout: torch.memory_format) -> Callable[[], None]:
    """A stock convolution as large as the largest kernel."""
    padding = tuple(size // 2 for size in layer.extent)
    module = nn.Conv2d(shape[0], layer.nodes, layer.extent, layer.stride, padding)  # type: ignore[arg-type]
    return step(module, *_tensors(module, shape, layout))


def irregular_step(
    shape: tuple[int, ...], layer: ConvLayer, layout: torch.memory_format
) -> Callable[[], None]:
    """Ours."""
    weight = (
        torch.randn(layer.nodes, shape[0], *layer.extent, generator=torch.Generator().manual_seed(1)) * 0.1
    )
    bias = torch.zeros(layer.nodes)
    module = IrregularConv(shape[0], layer.kernels, layer.stride, weight=weight, bias=bias)
    return step(module, *_tensors(module, shape, layout))


def _tensors(module: nn.Module, shape: tuple[int, ...], layout: torch.memory_format) -> tuple[Tensor, Tensor]:
    x = torch.randn(128, *shape, generator=torch.Generator().manual_seed(2)).contiguous(memory_format=layout)
    if shape[0] > 1:
        x.requires_grad_()
    with torch.no_grad():
        y = module(x)
    return x, torch.randn(y.shape).contiguous(memory_format=layout)


def main() -> None:
    """Print a line for every layer, and the bars."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--layers", type=int, default=30)
    options = parser.parse_args()
    layouts = (torch.channels_last, torch.contiguous_format)
    ratios = []
    with fixed_arithmetic(torch.device("cpu")):
        for shape, layer in [*real.layers(options.layers), WIDE]:
            first, second = (dense_step(shape, layer, layout) for layout in layouts)
            theirs = first if alternate(first, second, rounds=5).ratio < 1 else second
            ours = irregular_step(shape, layer, layouts[0] if shape[0] > 1 else layouts[1])
            ratio = alternate(ours, theirs, rounds=options.rounds)
            ratios.append(ratio.ratio)
            size = "×".join(map(str, shape))
            print(f"{ratio.ratio:.2f}  {size} {str(layer)[:90]}  {ratio}", flush=True)
    *real_ones, wide = ratios
    middle = statistics.median(real_ones)
    spread = f"{min(real_ones):.2f} to {max(real_ones):.2f}, median {middle:.2f}"
    row(f"{len(real_ones)} irregular layers of a real run / dense ones", spread)
    row("64 kernels of mixed shapes over 32 channels of 16×16 / a dense layer", f"{wide:.2f}")


if __name__ == "__main__":
    main()
