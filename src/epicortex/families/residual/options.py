"""The settings of the residual family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from epicortex.errors import ConfigError
from epicortex.families.residual.genome import MAX_FACTOR

if TYPE_CHECKING:
    from epicortex.config import Config

#: The mutation types, in the order in which they are drawn from.
MUTATIONS: Final = ("width", "inner", "block", "stage", "kernel", "reshape", "stride", "recipe")


@dataclass(frozen=True, slots=True)
class ResidualOptions:
    """How residual networks start and what may change in them; every field has a default that works.

    >>> ResidualOptions(mutations=("width", "kernels"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    epicortex.errors.ConfigError: residual: unknown mutation 'kernels'; there are width, inner, ...
    """

    mutations: tuple[str, ...] = MUTATIONS
    """The mutation types in use, each as likely as another."""
    largest_kernel: int = 7
    """How long kernels get in a dimension."""
    kernel_mix: float = 0.1
    """Which share of a founder's kernels is drawn narrow, such as 1×3, instead of the usual 3×3."""
    start_cost: int = 2**20
    """The most multiplications of a first network."""
    start_parameters: int = 10_000
    """The most parameters of a first network."""
    start_decay: float = 1.0
    """What the weight decay of a first network is multiplied by; networks for tables have their own."""
    max_cost: int | None = None
    """What mutation does not exceed, in multiplications for one sample."""
    max_parameters: int | None = None
    """What mutation does not exceed, in parameters."""

    def __post_init__(self) -> None:
        for name in self.mutations:
            if name not in MUTATIONS:
                raise ConfigError(f"residual: unknown mutation {name!r}; there are {', '.join(MUTATIONS)}")
        if self.largest_kernel < 1 or self.largest_kernel % 2 == 0:
            raise ConfigError(f"residual: the largest kernel must be odd, not {self.largest_kernel}")
        if not 0 <= self.kernel_mix <= 1:
            raise ConfigError(f"residual: kernel_mix must be from 0 to 1, not {self.kernel_mix}")
        if not 1 / MAX_FACTOR <= self.start_decay <= MAX_FACTOR:
            bounds = f"from 1/{MAX_FACTOR:g} to {MAX_FACTOR:g}"
            raise ConfigError(f"residual: start_decay must be {bounds}, not {self.start_decay:g}")
        for name in ("start_cost", "start_parameters", "max_cost", "max_parameters"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"residual: {name} must be at least 1, not {value}")

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The section `residual` of the settings; the limit of parameters is evolution's."""
        given = {name: value for name, value in config.residual if value is not None}
        return cls(**given, max_parameters=config.evolution.max_parameters)
