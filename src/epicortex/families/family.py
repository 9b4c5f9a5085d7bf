"""What the ecosystem asks of a kind of network, and nothing more.

The layered networks of the paper are one family (`variation.LayeredFamily`); another, such as unstructured
networks, can stand beside it without a change in the ecosystem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    """A mutation that was tried: the changed phenotype, or None where none was possible."""

    phenotype: Any | None
    type: str
    direction: Literal["grow", "shrink"]
    layer: int | None = None
    """The layer it touched, counted from 1 at the bottom."""
    reason: str | None = None
    """Why it failed, where an operator of a person's own raised an exception."""


class Family(Protocol):
    """One kind of network. All methods are pure: phenotypes go in and new ones come out."""

    def minimal(self, rng: np.random.Generator) -> Any:
        """The smallest network, or the user's start genome, with new weights."""

    def grow(self, phenotype: Any, rng: np.random.Generator) -> Any:
        """One growing mutation, its type drawn evenly among the possible: how founders become diverse."""

    def redraw(self, phenotype: Any, rng: np.random.Generator) -> Any:
        """Another member of the same species: its own kernel shapes, weights and biases."""

    def key(self, phenotype: Any) -> str:
        """The species key: equal for two networks exactly when their genes can be exchanged unchanged."""

    def similarity(self, one: Any, other: Any) -> float:
        """How much of two genomes overlaps, from 0 to 1."""

    def parameters(self, phenotype: Any) -> int:
        """How many weights and biases a network has."""

    def mutate(
        self, phenotype: Any, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation:
        """One mutation; it grows with probability `grow`, else shrinks, if that direction is possible."""

    def cross(self, one: Any, other: Any, *, share: float, rng: np.random.Generator) -> Any:
        """A child of two networks; each gene comes from the first with probability `share`."""

    def resize(self, phenotype: Any, rng: np.random.Generator) -> Any:
        """A clone with one kernel resized, where it has one."""
