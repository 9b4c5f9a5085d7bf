"""The network of a phenotype: an ordinary `nn.Module`, and its twin of stock torch layers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, fx, nn

from epicortex.genome import ConvLayer
from epicortex.network.activations import Activations, activation
from epicortex.network.irregular import IrregularConv
from epicortex.phenotype import Array, LayerWeights, Phenotype

_STOCK: Final[dict[int, Any]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


class Network(nn.Module):
    """A phenotype as a module; its weights are copies, so training it leaves the phenotype as it is.

    >>> from epicortex.genome import ConvLayer, FullLayer, Genome
    >>> from epicortex.variation import draw_phenotype
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
            _irregular(layer, shape[0], weights) if layer.type == "conv" else _linear(*map(_tensor, weights))
            for layer, shape, weights in zip(self.genome.layers, below, phenotype.weights, strict=True)
        )
        self.conv_activation = activation(self.activations.conv)
        self.full_activation = activation(self.activations.full)

    def forward(self, x: Tensor) -> Tensor:
        """The logits [samples, classes] of a batch [samples, *input_shape]."""
        convolutions = self.genome.convolutions
        *hidden, output = self.layers
        for layer in hidden[:convolutions]:
            x = self.conv_activation(layer(x))
        x = x.flatten(1)
        for layer in hidden[convolutions:]:
            x = self.full_activation(layer(x))
        logits: Tensor = output(x)
        return logits

    def phenotype(self) -> Phenotype:
        """The genome with a copy of the weights as they are now."""
        pairs = (_copied(layer) for layer in self.layers)
        return Phenotype(self.genome, tuple(LayerWeights(*map(_array, pair)) for pair in pairs))

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
            modules.append(_linear(*_copied(layer)))
            if index < len(self.layers) - 1:
                modules.append(activation(self.activations.full))
        return fx.symbolic_trace(nn.Sequential(*modules)).train(self.training)


def _irregular(layer: ConvLayer, channels: int, weights: LayerWeights) -> IrregularConv:
    weight, bias = (_tensor(array) for array in weights)
    return IrregularConv(channels, layer.kernels, layer.stride, weight=weight, bias=bias)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    outputs, inputs = weight.shape
    # on "meta", since the stock initialisation would draw from torch's global generator
    linear = nn.Linear(inputs, outputs, device="meta")
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear


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


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.array(array))


def _array(parameter: Tensor) -> Array:
    return np.array(parameter.detach().cpu().numpy(), dtype=np.float32)
