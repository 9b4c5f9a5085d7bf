"""The genome, an ordered array of nodes, and the genotype: with the inward connections of each node.

Nodes are numbered from 1: first the inputs, then the outputs, then the hidden nodes, in the order in which
they were added. Node 0, where there is a bias, is always 1; it is no gene and not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from epicortex.errors import GenomeError
from epicortex.families.unstructured.activations import NAMES

MOST_NODES: Final = 100_000
MOST_CONNECTIONS: Final = 10_000_000


@dataclass(frozen=True)
class Genome:
    """Ordered nodes with inward connections, without weights: what the paper calls a genotype.

    This is the example of the paper's figure 2:

    >>> example = Genome(4, 2, {5: (7, 8), 6: (1, 3, 8, 9), 7: (1, 2, 3, 4), 8: (1,), 9: (2, 4)})
    >>> example.nodes, example.hidden, len(example.connections)
    (9, range(7, 10), 13)
    """

    inputs: int
    outputs: int
    inward: Mapping[int, tuple[int, ...]]
    """The sources of each output and hidden node, in order."""
    activations: tuple[str, ...] = ()
    """One for each output and each hidden node; tanh where nothing is said."""
    recurrent: bool = False

    def __post_init__(self) -> None:
        inward = {node: tuple(sorted(sources)) for node, sources in sorted(self.inward.items())}
        object.__setattr__(self, "inward", inward)
        if not self.activations:
            object.__setattr__(self, "activations", ("tanh",) * len(inward))
        self._check()

    @property
    def nodes(self) -> int:
        """All nodes: the sole criterion of the species."""
        return self.inputs + len(self.inward)

    @property
    def out(self) -> range:
        """The numbers of the outputs."""
        return range(self.inputs + 1, self.inputs + self.outputs + 1)

    @property
    def hidden(self) -> range:
        """The numbers of the hidden nodes."""
        return range(self.inputs + self.outputs + 1, self.nodes + 1)

    @property
    def order(self) -> Sequence[int]:
        """The nodes in the order in which they are computed: hidden ones first."""
        return (*self.hidden, *self.out)

    @cached_property
    def connections(self) -> tuple[tuple[int, int], ...]:
        """Every connection as (target, source), in the order of the weights."""
        return tuple((node, source) for node, sources in self.inward.items() for source in sources)

    def activation(self, node: int) -> str:
        """That of an output or hidden node."""
        return self.activations[node - self.inputs - 1]

    def sources(self, node: int, *, bias: bool) -> Iterator[int]:
        """Where connections to a node may come from.

        Without recurrence they run from inputs to all, and among hidden nodes from a lower to a higher
        number; so no crossover can make a cycle.
        """
        if bias:
            yield 0
        yield from range(1, self.inputs + 1)
        if self.recurrent:
            yield from range(self.inputs + 1, self.nodes + 1)
        elif node in self.out:
            yield from self.hidden
        else:
            yield from range(self.hidden.start, node)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "recurrent": self.recurrent,
            "inward": [list(sources) for sources in self.inward.values()],
            "activations": list(self.activations),
        }

    def _check(self) -> None:
        """Whatever is no network of ordered nodes is a `GenomeError`."""
        first = self.inputs + 1
        if self.inputs < 1 or self.outputs < 1 or self.nodes > MOST_NODES:
            raise GenomeError(f"an unstructured network has inputs, outputs and at most {MOST_NODES:,} nodes")
        if (
            list(self.inward) != list(range(first, first + len(self.inward)))
            or len(self.inward) < self.outputs
        ):
            raise GenomeError("the nodes of an unstructured network are numbered without a gap")
        if len(self.activations) != len(self.inward) or not set(self.activations) <= set(NAMES):
            raise GenomeError(f"every node needs one of the activations {', '.join(NAMES)}")
        for node, sources in self.inward.items():
            if len(set(sources)) < len(sources):
                raise GenomeError(f"node {node} has a connection twice")
            last = self.nodes if self.recurrent or node in self.out else node - 1
            for source in sources:
                heard = 0 <= source <= self.inputs or (
                    self.inputs < source <= last and (self.recurrent or source not in self.out)
                )
                if not heard:
                    raise GenomeError(f"node {node} cannot have a connection from {source}")


def from_dict(value: Any) -> Genome:
    """Back from `to_dict`; anything else is a `GenomeError`."""
    given = value if isinstance(value, dict) else {}
    inputs, outputs, inward = (given.get(name) for name in ("inputs", "outputs", "inward"))
    activations, recurrent = given.get("activations"), given.get("recurrent")
    known = {"inputs", "outputs", "inward", "activations", "recurrent"}
    if set(given) != known or type(inputs) is not int or type(outputs) is not int:
        raise GenomeError("an unstructured genome has inputs, outputs, recurrent, inward and activations")
    if type(recurrent) is not bool or not isinstance(inward, list) or not isinstance(activations, list):
        raise GenomeError("an unstructured genome has lists of inward connections and of activations")
    if not all(isinstance(one, list) and all(type(source) is int for source in one) for one in inward):
        raise GenomeError("the inward connections of a node are a list of node numbers")
    if not all(isinstance(name, str) for name in activations) or len(inward) > MOST_NODES:
        raise GenomeError("an activation has a name")
    if sum(map(len, inward)) > MOST_CONNECTIONS or not 0 < inputs <= MOST_NODES:
        raise GenomeError("an unstructured network has too many connections or inputs")
    numbered = {inputs + place: tuple(sources) for place, sources in enumerate(inward, 1)}
    return Genome(inputs, outputs, numbered, tuple(activations), recurrent)
