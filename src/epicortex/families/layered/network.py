"""The network of a phenotype: an ordinary `nn.Module`, and its twin of stock torch layers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, fx, nn

from epicortex.families.activations import Activations
from epicortex.families.family import Array
from epicortex.families.genes import Genes
from epicortex.families.layered.irregular import IrregularConv, linear
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.modules import activation

_STOCK: Final[dict[int, Any]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class Network(nn.Module):
    """A phenotype as a module; its weights are copies, so training it leaves the phenotype as it is.

    >>> from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
    >>> from epicortex.families.layered import draw_phenotype
    >>> genome = Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 3)), (1, 1)), FullLayer(5)), 10)
    >>> network = Network(draw_phenotype(genome, rng=np.random.default_rng(1)))
    >>> network(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(self, phenotype: Phenotype, activations: Activations | None = None) -> None:
        super().__init__()
        self.genome = phenotype.genome
        self.activations = activations or Activations()
        below = self.genome.input_shapes
        self.layers = nn.ModuleList(
            layer.module(genes, shape)
            for layer, shape, genes in zip(self.genome.layers, below, phenotype.weights, strict=True)
        )
        self.conv_activation = activation(self.activations.conv, inplace=True)
        self.full_activation = activation(self.activations.full)

    def forward(self, x: Tensor) -> Tensor:
        """The logits [samples, classes] of a batch [samples, *input_shape]."""
        convolutions = self.genome.convolutions
        if convolutions > 1 and x.ndim == 4:
            x = _channels_last(x)
        for layer in self.layers[:convolutions]:
            x = self.conv_activation(layer(x))
        for number, layer in enumerate(self.layers[convolutions:]):
            if number:
                x = self.full_activation(x)
            x = _full(layer, x)
        return x

    def phenotype(self) -> Phenotype:
        """The genome with a copy of the weights as they are now."""
        pairs = (_copied(layer) for layer in self.layers)
        return Phenotype(self.genome, tuple(Genes(*map(_array, pair)) for pair in pairs))

    def parameter_count(self) -> int:
        """How many entries can learn, counted on the module: the zeros around small kernels do not."""
        total = sum(parameter.numel() for parameter in self.parameters())
        for layer in self.layers:
            if isinstance(layer, IrregularConv) and layer.mask is not None:
                entries = int(torch.count_nonzero(layer.mask)) * layer.weight.shape[1]
                total -= layer.weight.numel() - entries
        return total

    def plain(self) -> fx.GraphModule:
        """An equivalent of stock torch layers only; it needs nothing of EpiCortex to run or to unpickle."""
        convolutions = self.genome.convolutions
        modules: list[nn.Module] = []
        for index, layer in enumerate(self.layers):
            if isinstance(layer, IrregularConv):
                modules += [_stock(layer), activation(self.activations.conv)]
                continue
            if index == convolutions:
                modules.append(nn.Flatten())
            modules.append(linear(*_copied(layer)))
            if index < len(self.layers) - 1:
                modules.append(activation(self.activations.full))
        return fx.symbolic_trace(nn.Sequential(*modules)).train(self.training)


def _channels_last(images: Tensor) -> Tensor:
    """The images with strides that say channels_last even for one channel, where torch cannot tell by itself.

    The first convolution then writes its maps as the second one reads them.
    """
    if images.shape[1] > 1 or not images.is_contiguous():
        return images.contiguous(memory_format=torch.channels_last)
    samples, height, width = images.stride()[0], images.stride()[2], images.stride()[3]
    return images.as_strided(images.shape, (samples, 1, height, width))


def _full(layer: nn.Module, x: Tensor) -> Tensor:
    """A full layer over rows, or over feature maps [samples, channels, *spatial]."""
    assert isinstance(layer, nn.Linear)
    weight = layer.weight
    if x.ndim == 4 and not x.is_contiguous():
        # The maps are channels_last: putting the weight in their order copies less than flattening them.
        weight = weight.view(len(weight), *x.shape[1:]).permute(0, 2, 3, 1).flatten(1)
        x = x.permute(0, 2, 3, 1)
    # As transposes, since few nodes and many samples are multiplied faster this way round.
    return torch.addmm(layer.bias[:, None], weight, x.flatten(1).t()).t()


def _stock(layer: IrregularConv) -> nn.Module:
    nodes, channels, *extent = layer.weight.shape
    kind = _STOCK[len(layer.stride)]
    sizes: dict[str, Any] = {"stride": layer.stride, "padding": layer.padding}
    stock: nn.Module = kind(channels, nodes, tuple(extent), device="meta", **sizes)
    stock.weight, stock.bias = map(nn.Parameter, _copied(layer))
    return stock


def _copied(layer: nn.Module) -> tuple[Tensor, Tensor]:
    assert isinstance(layer, IrregularConv | nn.Linear)
    weight = layer.kernel_weight() if isinstance(layer, IrregularConv) else layer.weight.detach().clone()
    return weight, layer.bias.detach().clone()


def _array(parameter: Tensor) -> Array:
    return np.array(parameter.detach().cpu().numpy(), dtype=np.float32)
