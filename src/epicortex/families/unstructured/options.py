"""The settings of the unstructured family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from epicortex.errors import ConfigError
from epicortex.families.unstructured.activations import NAMES

if TYPE_CHECKING:
    from epicortex.config import Config


@dataclass(frozen=True, slots=True)
class UnstructuredOptions:
    """How unstructured networks start, compute and change; every field has a default that works.

    >>> UnstructuredOptions(activations=("tan",))
    Traceback (most recent call last):
        ...
    epicortex.errors.ConfigError: unstructured.activations: there is no activation 'tan'; there are linear, \
tanh, sigmoid, relu, sine, gauss
    """

    recurrent: bool = False
    """Whether connections may run in any direction, so that a network remembers."""
    steps: int = 1
    """How often all nodes are computed for one input."""
    bias: bool = True
    """Whether there is a node 0 that is always 1."""
    activations: tuple[str, ...] = ("tanh",)
    """What hidden nodes may have."""
    output_activation: str = "tanh"
    node_start: str = "full"
    """full: a new node hears every input and speaks to every output; split: it stands in a connection."""
    node_rate: float = 0.03
    """The part of mutations that adds or removes a node."""
    connection_rate: float = 0.05
    """The part of mutations that adds or removes a connection."""
    redraw_rate: float = 0.05
    """The part of mutations that draws some weights anew."""
    activation_rate: float = 0.02
    """The part of mutations that changes a node's activation, where there is a choice."""
    perturb_share: float = 0.8
    """How likely each weight is changed when weights are perturbed; at least one is."""
    perturb_deviation: float = 0.5
    """How far weights are moved."""
    perturb_tail: str = "normal"
    """normal, or cauchy: mostly small steps and now and then a very large one."""
    weight_limit: float = 30.0
    """No weight gets larger than this."""
    weight_deviation: float = 1.0
    """The standard deviation of new weights."""
    max_nodes: int = 10_000

    def __post_init__(self) -> None:
        for setting, names in (
            ("activations", self.activations),
            ("output_activation", (self.output_activation,)),
        ):
            for name in names:
                if name not in NAMES:
                    known = ", ".join(NAMES)
                    raise ConfigError(
                        f"unstructured.{setting}: there is no activation {name!r}; there are {known}"
                    )
        if not self.activations:
            raise ConfigError("unstructured.activations: name at least one activation")
        rates = self.node_rate + self.connection_rate + self.redraw_rate + self.activation_rate
        if rates > 1:
            raise ConfigError(
                f"unstructured: the rates of mutations sum to {rates:g}; together they must be at most 1, "
                "and what is left perturbs weights"
            )

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The section `unstructured` of the settings; the deviation of new weights is evolution's."""
        return cls(**dict(config.unstructured), weight_deviation=config.evolution.weight_deviation)
