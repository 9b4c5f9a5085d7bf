"""What the weights of the mutation types are computed from: the mutated network's own figures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epicortex.families.layered.genome import Genome


@dataclass(frozen=True, slots=True)
class Statistics:
    """The quantities of eqs 3 to 6. Those of convolutions are 0 where there is none.

    >>> Statistics.of(Genome((1, 4, 4), (), 10)).connections_per_node
    16.0
    """

    connections_per_node: float
    """µ_c: weights per node, without biases, over all layers."""
    nodes_per_layer: float
    """µ_n: over all layers, the output layer too."""
    nodes_deviation: float
    """σ_n: the population standard deviation of the same."""
    convolutions: int
    """N_cl: convolutional layers."""
    outputs_per_convolution: float
    """µ_o: output elements of a convolutional layer."""
    kernels_per_convolution: float
    """N_k: kernels per convolutional layer."""
    kernel_area: float
    """Ā_k: over all kernels."""

    @classmethod
    def of(cls, genome: Genome) -> Statistics:
        """The statistics of one genome."""
        nodes = [layer.nodes for layer in genome.layers]
        mean = sum(nodes) / len(nodes)
        variance = sum((count - mean) ** 2 for count in nodes) / len(nodes)
        areas = [math.prod(kernel) for layer in genome.hidden for kernel in layer.kernels]
        count = genome.convolutions
        outputs = sum(math.prod(shape) for shape in genome.output_shapes[:count])
        return cls(
            connections_per_node=genome.connections / genome.nodes,
            nodes_per_layer=mean,
            nodes_deviation=math.sqrt(variance),
            convolutions=count,
            outputs_per_convolution=outputs / count if count else 0.0,
            kernels_per_convolution=len(areas) / count if count else 0.0,
            kernel_area=sum(areas) / len(areas) if areas else 0.0,
        )
