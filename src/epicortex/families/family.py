"""What everything else asks of a kind of network, and nothing more.

A family starts, varies, compares, builds, stores and describes one kind of network. It knows nothing of data,
engines or files; whoever holds a phenotype knows it only through its family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from epicortex.config import Config
    from epicortex.native.program import Operation

P = TypeVar("P")

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[np.float32]
Arrays: TypeAlias = dict[str, Array]
Memory: TypeAlias = "Mapping[Tensor, Mapping[str, Tensor]]"
"""What an optimiser remembers of each parameter, by torch's name for it, such as `momentum_buffer`."""
Direction: TypeAlias = Literal["grow", "shrink"]
Turn: TypeAlias = Literal["grow", "shrink", "same"]
"""What a mutation did to the size of a network; weights may change without it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a network is for: the shape of a sample [channels, *spatial], and how many numbers it answers."""

    input_shape: Shape
    outputs: int


@dataclass(frozen=True, slots=True, eq=False)
class Mutation(Generic[P]):
    """A mutation that was tried: the changed phenotype, or None where none was possible."""

    phenotype: P | None
    type: str
    direction: Turn
    layer: int | None = None
    """The layer it touched, counted from 1 at the bottom."""
    reason: str | None = None
    """Why it failed, where an operator of a person's own raised an exception."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of a network, such as a layer, as people see it."""

    kind: str
    """The word for it: conv, full, out, block."""
    title: str
    """What it is, in words, such as `convolution`."""
    text: str
    """All of it in one line, such as `conv[3×3 5×1]/2×2`."""
    output: Shape
    """The shape of what it gives."""
    parameters: int
    nodes: int
    stride: Shape = ()
    kernels: tuple[Shape, ...] = ()
    """The shape of each kernel, where it has kernels."""


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A network's structure, as people see it."""

    key: str
    """Its species key."""
    text: str
    """The whole structure in one line."""
    input_shape: Shape
    outputs: int
    parameters: int
    cost: int
    """Multiplications for one sample."""
    parts: tuple[Part, ...]
    """From the input to the output."""
    facts: Mapping[str, str]
    """What holds for the whole network, for people, such as its activations."""


@runtime_checkable
class Compilable(Protocol[P]):
    """A family whose networks the native arithmetic can run, besides torch."""

    def operations(self, phenotype: P) -> Sequence[Operation]:
        """What a network computes, operation by operation."""

    def tensors(self, phenotype: P) -> tuple[Sequence[Array], Array | None]:
        """What learns, in the order of the operations, and the running statistics, where there are some."""

    def with_tensors(self, phenotype: P, tensors: Sequence[Array], state: Array | None) -> P:
        """The phenotype with what a network has learned, in the same order."""


class Family(Protocol[P]):
    """One kind of network.

    All methods are pure: phenotypes go in and new ones come out, and nothing is drawn but from the generator
    that is given. A phenotype is immutable and holds the structure and the weights.

    `from_config` makes the family of a run; `from_facts`, from what `facts` gave, makes one that need only
    read, build and describe. Both come from the class that a name stands for (see `registry`).
    """

    @classmethod
    def from_config(cls, config: Config, problem: Problem, operators: Sequence[Any] = ()) -> Self:
        """The family as a run's settings ask for it; `operators` are those of a person's own."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The family that wrote a file, from the `facts` in it; what does not fit is a `GenomeError`."""

    @property
    def name(self) -> str:
        """What settings and files call the family."""

    def facts(self) -> dict[str, Any]:
        """Plain JSON values: all that `from_facts` needs to build the same function from the same arrays."""

    # How a run begins.

    def minimal(self, rng: np.random.Generator) -> P:
        """The smallest network, or the user's start genome, with new weights."""

    def grow(self, phenotype: P, rng: np.random.Generator) -> P:
        """One growing mutation, its type drawn evenly among the possible: how founders become diverse."""

    def redraw(self, phenotype: P, rng: np.random.Generator) -> P:
        """Another member of the same species, with whatever is free within it and all weights drawn anew."""

    # How networks vary.

    def mutate(
        self, phenotype: P, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation[P]:
        """One mutation; it grows with probability `grow`, else shrinks, if that direction is possible."""

    def cross(self, one: P, other: P, *, share: float, rng: np.random.Generator) -> P:
        """A child of two networks; each gene comes from the first with probability `share`."""

    def clone(self, phenotype: P, rng: np.random.Generator) -> P:
        """A child of one network: the same species, with one small change where there is one to make."""

    # What the ecosystem compares.

    def key(self, phenotype: P) -> str:
        """The species key: equal for two networks exactly when their genes can be exchanged unchanged."""

    def similarity(self, one: P, other: P) -> float:
        """How much of two genomes overlaps, from 0 to 1."""

    def parameters(self, phenotype: P) -> int:
        """How many numbers of a network can learn."""

    def cost(self, phenotype: P) -> int:
        """How many multiplications one sample takes, from the structure alone."""

    # How a network is used.

    def build(self, phenotype: P) -> Any:
        """The network as something that computes: an `nn.Module`, or a callable of one's own.

        Its weights are copies, so that training it leaves the phenotype as it is.
        """

    def learned(self, phenotype: P, model: Any) -> P:
        """The phenotype with a copy of the weights that its `model` has now."""

    # How a network is stored, sent and shown.

    def encode(self, phenotype: P) -> tuple[Any, Arrays]:
        """The structure as plain JSON values, and the weights as named arrays."""

    def decode(self, description: Any, arrays: Mapping[str, Array]) -> P:
        """Back from `encode`; whatever does not fit together is a `GenomeError`."""

    def outline(self, description: Any) -> Outline:
        """A structure, as `encode` describes it, for people; anything else is a `GenomeError`."""

    def kernels(self, phenotype: P) -> tuple[tuple[Array, ...], ...]:
        """For each part of the outline the weights of its kernels, each [channels, *shape]; for pictures."""


# What a family may offer beyond that; whoever trains networks asks whether it does.


@runtime_checkable
class SizesFounders(Protocol):
    """A family that can make first networks of any size."""

    def founder(
        self,
        rng: np.random.Generator,
        *,
        max_cost: int | None = None,
        max_parameters: int | None = None,
        like: Any | None = None,
    ) -> Any:
        """A network that nearly fills these limits, of a sensible shape: that of `like`, where it suits."""


@runtime_checkable
class HasSimplest(Protocol):
    """A family in which some problems have a simplest network that may well be the best."""

    def simplest(self, rng: np.random.Generator) -> Any | None:
        """That network; None where there is no such."""

    def is_simplest(self, phenotype: Any) -> bool:
        """Whether a network has the structure of the simplest."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a network that is drawn as a graph."""

    id: int
    level: int
    """0 for inputs; every other node stands above those it hears, as far as there is no cycle."""
    label: str
    kind: Literal["input", "hidden", "output"]


@dataclass(frozen=True, slots=True)
class Graph:
    """A network as nodes and weighted connections, for pictures."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int, float], ...]
    """The source, the target and the weight of each connection."""


@runtime_checkable
class HasGraph(Protocol):
    """A family whose networks are best drawn node by node."""

    def graph(self, phenotype: Any) -> Graph:
        """All nodes and connections."""


@runtime_checkable
class RecordsClones(Protocol[P]):
    """A family whose clones differ from their parent by one mutation, which it can name."""

    def cloned(self, phenotype: P, rng: np.random.Generator) -> Mutation[P] | None:
        """A clone as `clone` gives it, as the mutation that made it; None where it is as its parent."""


@runtime_checkable
class HasRecipe(Protocol):
    """A family whose networks bring factors on the configured training along, which evolve with them."""

    def recipe(self, phenotype: Any) -> Mapping[str, float]:
        """The factors of the learning `rate`, the weight `decay` and the `augmentation`; 1 where none is."""


@runtime_checkable
class HasMemory(Protocol[P]):
    """A family whose genes hold what an optimiser remembers of them, so that a child goes on with it."""

    remembers: tuple[str, ...]
    """The optimisers, by torch's names, whose memory it can hold."""

    def memory(self, phenotype: P, model: Any) -> Memory:
        """What the genes hold, for the parameters of the phenotype's `model`; nothing in a new network."""

    def remembered(self, phenotype: P, model: Any, memory: Memory) -> P:
        """As `learned`, with what an optimiser remembers."""


@runtime_checkable
class HasTransfer(Protocol[P]):
    """A family that can make a network for its problem of one for another."""

    def adapted(self, phenotype: P, rows: Sequence[int | None], rng: np.random.Generator) -> tuple[P, int]:
        """The network with another input and other outputs, and how many layers it keeps.

        `rows` says for each output which old one it goes on from; None is drawn new. A network that cannot
        be fitted is a `GenomeError`.
        """


@runtime_checkable
class HasAverages(Protocol[P]):
    """A family whose phenotypes hold, beside the weights that go on learning, the mean of the last ones."""

    def with_average(self, phenotype: P, average: P) -> P:
        """The phenotype, which holds another of the same structure as its average."""

    def settled(self, phenotype: P) -> P:
        """The network to use: the average, where there is one, without what only training needs."""
