"""The network of a residual phenotype: an ordinary `nn.Module`, and its twin of stock torch layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import POOLING_GAIN, Genome
from epicortex.families.residual.layers import Layer, kernel_mask
from epicortex.families.residual.phenotype import Phenotype

_CONVOLVE: Final[dict[int, Callable[..., Tensor]]] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}
_CONV: Final[dict[int, Any]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_NORM: Final[dict[int, Any]] = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
_POOL: Final[dict[int, Any]] = {
    1: nn.AdaptiveAvgPool1d,
    2: nn.AdaptiveAvgPool2d,
    3: nn.AdaptiveAvgPool3d,
}


class Unit(nn.Module):
    """A convolution of irregular kernels, or over a table a full layer, and its norm; or only that.

    The weight is dense, [nodes, channels, *largest kernel]. Entries around a small kernel are masked in the
    forward pass: they count as 0, get no gradient, and are not inherited.
    """

    mask: Tensor | None
    weight: nn.Parameter | None

    def __init__(self, layer: Layer, genes: Genes) -> None:
        super().__init__()
        self.stride, self.padding = layer.stride, tuple(size // 2 for size in layer.extent)
        uniform = len(set(layer.kernels)) == 1
        mask = None if uniform else torch.from_numpy(kernel_mask(layer.kernels)).to(torch.float32)
        self.register_buffer("mask", mask, persistent=False)
        self.weight = nn.Parameter(_tensor(genes.weight)) if layer.sources else None
        self.norm = _norm(len(layer.stride), genes)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve and normalise a batch [samples, channels, *spatial]."""
        if self.weight is not None:
            x = self._convolved(x, self.weight if self.mask is None else self.weight * self.mask)
        if self.training and x.numel() == x.shape[1]:
            # one value a channel has no variance: what was seen before must do
            norm = self.norm
            return functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        normalised: Tensor = self.norm(x)
        return normalised

    def genes(self) -> Genes:
        """A copy of what it has learned."""
        norm = self.norm
        assert norm.running_mean is not None
        assert norm.running_var is not None
        return Genes(
            weight=_array(self.kernel_weight()),
            bias=_array(norm.bias),
            gamma=_array(norm.weight),
            mean=_array(norm.running_mean),
            var=_array(norm.running_var),
        )

    def kernel_weight(self) -> Tensor:
        """A copy of the weight, 0 around the kernels whatever was written there; columns have none."""
        if self.weight is None:
            return torch.zeros(self.norm.num_features, 0)
        weight = self.weight.detach().clone()
        return weight if self.mask is None else torch.where(self.mask.bool(), weight, 0.0)

    def _convolved(self, x: Tensor, weight: Tensor) -> Tensor:
        if not self.stride:
            return functional.linear(x, weight)
        stride = self.stride
        if not any(self.padding):
            # Kernels of size 1 look at every stride-th position. Said so to torch, since over channels_last
            # oneDNN writes out of bounds for a strided 1×1 convolution (torch 2.13).
            every = (slice(None, None, step) for step in stride)
            x = x[(slice(None), slice(None), *every)]
            stride = (1,) * len(stride)
        return _CONVOLVE[len(stride)](x, weight, None, stride, self.padding)


class Network(nn.Module):
    """A phenotype as a module; its weights are copies, so training it leaves the phenotype as it is.

    It takes maps of any size: pooling makes them one.

    >>> from epicortex.families.residual.founders import sized_founder
    >>> from epicortex.families.family import Problem
    >>> founder = sized_founder(Problem((3, 32, 32), 10), np.random.default_rng(1), max_parameters=5_000)
    >>> network = Network(founder)
    >>> network(torch.zeros(2, 3, 32, 32)).shape, network(torch.zeros(2, 3, 20, 20)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))
    """

    def __init__(self, phenotype: Phenotype) -> None:
        super().__init__()
        self.genome = phenotype.genome
        *hidden, out = phenotype.pairs()
        self.units = nn.ModuleList(Unit(layer, genes) for layer, genes in hidden)
        self.out = _linear(_tensor(out[1].weight).flatten(1), _tensor(out[1].bias))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs [samples, outputs] of a batch [samples, channels, *spatial]."""
        if x.ndim == 4:
            x = _channels_last(x)
        units, rectified = iter(self.units), self.genome.trunk == "relu"
        for stage in self.genome.stages:
            x = next(units)(x)
            x = functional.relu(x, inplace=True) if rectified else x
            for _ in stage.blocks:
                inner = functional.relu(next(units)(x), inplace=True)
                x = next(units)(inner).add_(x)
                x = functional.relu(x, inplace=True) if rectified else x
        result: Tensor = self.out(self._pooled(x))
        return result

    def phenotype(self) -> Phenotype:
        """The genome with a copy of the weights, norms and running statistics as they are now."""
        out = self.genome.layers[-1]
        weight = self.out.weight.detach().reshape(out.weight_shape)
        last = Genes(weight=_array(weight), bias=_array(self.out.bias))
        return Phenotype(self.genome, (*(unit.genes() for unit in self._units()), last))

    def parameter_count(self) -> int:
        """How many entries can learn, counted on the module: the zeros around small kernels do not."""
        total = sum(parameter.numel() for parameter in self.parameters())
        for unit in self._units():
            if unit.mask is not None and unit.weight is not None:
                held = int(torch.count_nonzero(unit.mask)) * unit.weight.shape[1]
                total -= unit.weight.numel() - held
        return total

    def gene_parameters(self) -> Iterator[tuple[int, str, Tensor]]:
        """Every parameter with the layer, by its index, and the array of genes that it stands for."""
        for index, unit in enumerate(self._units()):
            if unit.weight is not None:
                yield index, "weight", unit.weight
            yield index, "gamma", unit.norm.weight
            yield index, "bias", unit.norm.bias
        yield len(self.units), "weight", self.out.weight
        yield len(self.units), "bias", self.out.bias

    def plain(self) -> fx.GraphModule:
        """An equivalent of stock torch layers only; it needs nothing of EpiCortex to run or to unpickle."""
        traced = fx.symbolic_trace(_Plain(self))
        for node in traced.graph.nodes:
            node.type = None  # the annotations are texts here, which pickle takes for names
        traced.recompile()
        return traced.train(self.training)

    def _units(self) -> Iterator[Unit]:
        for unit in self.units:
            assert isinstance(unit, Unit)
            yield unit

    def _pooled(self, maps: Tensor) -> Tensor:
        spatial = maps.ndim - 2
        if not spatial:
            return maps
        if self.genome.pool == 1:
            return POOLING_GAIN * maps.mean(tuple(range(2, maps.ndim)))
        pool: Any = {1: functional.adaptive_avg_pool1d, 2: functional.adaptive_avg_pool2d}.get(
            spatial, functional.adaptive_avg_pool3d
        )
        pooled: Tensor = POOLING_GAIN * pool(maps, self.genome.pool).flatten(1)
        return pooled


class _Plain(nn.Module):
    """The same computation, written with stock layers, to be traced."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        genome: Genome = network.genome
        units = list(zip(genome.layers, network._units(), strict=False))
        self.blocks = [len(stage.blocks) for stage in genome.stages]
        self.units = nn.ModuleList(_stock(layer, unit) for layer, unit in units)
        self.relu = nn.ReLU()
        self.trunk = nn.ReLU() if genome.trunk == "relu" else nn.Identity()
        weight, bias = network.out.weight.detach().clone(), network.out.bias.detach().clone()
        self.pool: nn.Module | None = None
        if genome.spatial:
            self.pool, self.flatten = _POOL[genome.spatial](genome.pool), nn.Flatten()
            weight *= POOLING_GAIN  # a power of two: no bit of the product changes
        self.out = _linear(weight, bias)

    def forward(self, x: Tensor) -> Tensor:
        units = iter(self.units)
        for blocks in self.blocks:
            x = self.trunk(next(units)(x))
            for _ in range(blocks):
                inner = self.relu(next(units)(x))
                x = self.trunk(x + next(units)(inner))
        if self.pool is not None:
            x = self.flatten(self.pool(x))
        result: Tensor = self.out(x)
        return result


def _stock(layer: Layer, unit: Unit) -> nn.Sequential:
    if not layer.sources:
        return nn.Sequential(_norm(0, unit.genes()))
    nodes, channels = layer.weight_shape[:2]
    # on "meta", since the stock initialisation would draw from torch's global generator
    if layer.stride:
        sizes: dict[str, Any] = {"stride": layer.stride, "padding": unit.padding}
        conv = _CONV[len(layer.stride)](channels, nodes, layer.extent, bias=False, device="meta", **sizes)
    else:
        conv = nn.Linear(channels, nodes, bias=False, device="meta")
    conv.weight = nn.Parameter(unit.kernel_weight().contiguous())
    return nn.Sequential(conv, _norm(len(layer.stride), unit.genes()))


def _norm(spatial: int, genes: Genes) -> nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d:
    norm: nn.BatchNorm2d = _NORM[spatial](len(genes.bias), device="meta")
    norm.weight, norm.bias = nn.Parameter(_tensor(genes["gamma"])), nn.Parameter(_tensor(genes.bias))
    norm.running_mean, norm.running_var = _tensor(genes["mean"]), _tensor(genes["var"])
    norm.num_batches_tracked = torch.tensor(0)
    return norm


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    outputs, inputs = weight.shape
    linear = nn.Linear(inputs, outputs, device="meta")
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear


def _channels_last(images: Tensor) -> Tensor:
    """The images with strides that say channels_last even for one channel, where torch cannot tell by itself.

    The first convolution then writes its maps as the second one reads them.
    """
    if images.shape[1] > 1 or not images.is_contiguous():
        return images.contiguous(memory_format=torch.channels_last)
    samples, height, width = images.stride()[0], images.stride()[2], images.stride()[3]
    return images.as_strided(images.shape, (samples, 1, height, width))


def _tensor(array: Array) -> Tensor:
    tensor = torch.from_numpy(np.array(array, order="C"))
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def _array(tensor: Tensor) -> Array:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32, order="C")
