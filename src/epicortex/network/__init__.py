"""From a genome and weights to a real `torch.nn.Module`."""

from epicortex.network.activations import Activations, SmoothRectifier
from epicortex.network.irregular import IrregularConv
from epicortex.network.network import Network

__all__ = ["Activations", "IrregularConv", "Network", "SmoothRectifier"]
