"""An unstructured network that computes: one input at a time, or many samples at once in numpy.

Nodes are computed one after another, hidden ones in their order and then the outputs. A connection from a
node that comes earlier carries what that node has just become; any other carries what it was before. So
without recurrence one round is enough, and a recurrent network remembers from input to input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicortex.families.unstructured.activations import NAMES, SCALAR, VECTOR
from epicortex.families.unstructured.phenotype import Phenotype


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """A network as flat arrays, for native code: each node's sources and weights, node after node."""

    inputs: int
    outputs: int
    nodes: int
    steps: int
    targets: NDArray[np.int32]
    activations: NDArray[np.int32]
    offsets: NDArray[np.int32]
    """Where the connections of each target begin; one more at the end."""
    sources: NDArray[np.int32]
    weights: NDArray[np.float64]


class Network:
    """The network of a phenotype. `act` takes and gives plain numbers and remembers; a call takes samples.

    >>> from epicortex.families.unstructured.genome import Genome
    >>> phenotype = Phenotype(Genome(2, 1, {3: (1, 2)}, ("linear",)), np.array([1, -2], np.float32))
    >>> network = Network(phenotype)
    >>> network.act([3.0, 1.0]), network(np.array([[3.0, 1.0], [0.0, 1.0]]))
    ([1.0], array([[ 1.],
           [-2.]]))
    """

    def __init__(self, phenotype: Phenotype, steps: int = 1) -> None:
        self.phenotype = phenotype
        self.steps = steps
        genome, genes = phenotype.genome, phenotype.genes
        self._plan = [
            (
                node,
                [(source, genes[node, source]) for source in genome.inward[node]],
                genome.activation(node),
            )
            for node in genome.order
        ]
        self._scalar = [(node, wires, SCALAR[name]) for node, wires, name in self._plan]
        self._out = genome.out
        self.reset()

    def reset(self) -> None:
        """Forget: as before the first input."""
        self._values = [1.0] + [0.0] * self.phenotype.genome.nodes

    def act(self, observation: Sequence[float]) -> list[float]:
        """The outputs for one input, after all inputs since `reset`."""
        values = self._values
        values[1 : len(observation) + 1] = observation
        for _ in range(self.steps):
            for node, wires, activation in self._scalar:
                total = 0.0
                for source, weight in wires:
                    total += weight * values[source]
                values[node] = activation(total)
        return values[self._out.start : self._out.stop]

    def __call__(self, x: Any) -> NDArray[np.float64]:
        """The outputs [samples, outputs] of samples [samples, *shape]; none knows of another."""
        samples = np.asarray(x, np.float64)
        columns = samples.reshape(len(samples), -1).T
        values = np.zeros((self.phenotype.genome.nodes + 1, len(samples)))
        values[0] = 1.0
        values[1 : len(columns) + 1] = columns
        for _ in range(self.steps):
            for node, wires, name in self._plan:
                total = np.zeros(len(samples))
                for source, weight in wires:
                    total += weight * values[source]
                values[node] = VECTOR[name](total)
        return values[self._out.start : self._out.stop].T.copy()

    def wiring(self) -> Wiring:
        """The network for native code."""
        genome = self.phenotype.genome
        counts = [len(wires) for _, wires, _ in self._plan]
        pairs = [pair for _, wires, _ in self._plan for pair in wires]
        return Wiring(
            genome.inputs,
            genome.outputs,
            genome.nodes,
            self.steps,
            np.array([node for node, _, _ in self._plan], np.int32),
            np.array([NAMES.index(name) for _, _, name in self._plan], np.int32),
            np.array([0, *np.cumsum(counts)], np.int32),
            np.array([source for source, _ in pairs], np.int32),
            np.array([weight for _, weight in pairs], np.float64),
        )
