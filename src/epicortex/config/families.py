"""The settings of the families: how the networks of each start, compute and change."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from epicortex.config.section import Rate, Section


class LayeredConfig(Section):
    """The family `layered`: its activations, and how its layers and kernels are drawn."""

    conv_activation: Literal["leaky_relu", "relu", "elu", "gelu", "silu", "tanh", "smooth"] = "leaky_relu"
    """The activation of convolutional layers."""
    full_activation: Literal["smooth", "leaky_relu", "relu", "elu", "gelu", "silu", "tanh"] = "smooth"
    """The activation of fully connected layers; smooth is ½(√(x²+4)+x)−1."""
    kernel_start: Literal["area", "perimeter"] = "area"
    """New shapes are drawn with weight exp(−w·h) (area) or exp(−(w + h)) (perimeter, published code)."""
    targets: Literal["even", "size"] = "even"
    """Which kernel or stride changes is drawn evenly, or by size (published code)."""
    similarity: Literal["nodes", "strides"] = "nodes"
    """Genomes overlap in all aligned layers, or only in those of equal stride (published code)."""
    layer_choice: Literal["parameters", "type"] = "parameters"
    """A new layer is drawn among its candidates by inverse parameters, or its type first, evenly."""
    kernel_weight: Literal["kernels", "nodes"] = "kernels"
    """The kernel mutation's weight uses the mean number of kernels per layer, or of all nodes per layer."""
    mutation_choice: Literal["weights", "fitness_first", "fitness", "even"] = "weights"
    """The type follows eqs 3 to 6, is kernel with probability f_r (first: published code), or is even."""


class ResidualConfig(Section):
    """The family `residual`: how its networks start and what may change in them."""

    mutations: tuple[
        Literal["width", "inner", "block", "stage", "kernel", "reshape", "stride", "recipe"], ...
    ] = ("width", "inner", "block", "stage", "kernel", "reshape", "stride", "recipe")
    """The mutation types in use, each as likely as another."""
    largest_kernel: int = Field(7, ge=1, le=31)
    """How long kernels get in a dimension; odd."""
    kernel_mix: float = Field(0.1, ge=0, le=1)
    """The share of a founder's kernels that is drawn narrow, such as 1×3, instead of 3×3."""
    start_cost: int | None = Field(None, ge=1)
    """The most multiplications that a founder takes for one sample; planned runs find their own."""
    start_parameters: int | None = Field(None, ge=1)
    """The most parameters of a founder; planned runs find their own."""
    start_decay: float | None = Field(None, ge=0.0625, le=16)
    """What a founder's weight decay is multiplied by, except for tables; planned runs find their own."""
    max_cost: int | None = Field(None, ge=1)
    """A mutation that would take more multiplications for one sample is refused."""


NodeActivation: TypeAlias = Literal["linear", "tanh", "sigmoid", "relu", "sine", "gauss"]


class UnstructuredConfig(Section):
    """The family `unstructured`: how its networks start, compute and change."""

    recurrent: bool = False
    """Connections may run in any direction, so that a network remembers."""
    steps: int = Field(1, ge=1, le=100)
    """How often all nodes are computed for one input."""
    bias: bool = True
    """There is a node that is always 1, which any node may hear."""
    activations: tuple[NodeActivation, ...] = Field(("tanh",), min_length=1)
    """What hidden nodes may have: linear, tanh, sigmoid, relu, sine or gauss."""
    output_activation: NodeActivation = "tanh"
    """What the outputs have."""
    node_start: Literal["full", "split"] = "full"
    """A new node hears all inputs and speaks to all outputs, or it splits a connection to an output."""
    node_rate: Rate = 0.03
    """The part of mutations that adds or removes a node."""
    connection_rate: Rate = 0.05
    """The part of mutations that adds or removes a connection."""
    redraw_rate: Rate = 0.05
    """The part of mutations that draws a weight anew."""
    activation_rate: Rate = 0.02
    """The part of mutations that changes a node's activation, where there is a choice."""
    perturb_share: Rate = 0.8
    """How likely each weight is moved when weights are perturbed, which is what all other mutations do."""
    perturb_deviation: float = Field(0.5, gt=0)
    """How far weights are moved then."""
    perturb_tail: Literal["normal", "cauchy"] = "normal"
    """How that is drawn: normal, or mostly less and now and then much more (cauchy)."""
    weight_limit: float = Field(30.0, gt=0)
    """No weight gets larger than this."""
    max_nodes: int = Field(10_000, ge=2, le=100_000)
    """A mutation that would add a node more is refused."""
