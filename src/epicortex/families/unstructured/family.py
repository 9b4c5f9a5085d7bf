"""The original Cortex as a family: section II-B of the paper, as everyone else sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epicortex.errors import ConfigError, GenomeError
from epicortex.families.family import Array, Arrays, Graph, Mutation, Outline, Problem
from epicortex.families.unstructured import crossover, mutation, outline
from epicortex.families.unstructured.genome import Genome, from_dict
from epicortex.families.unstructured.network import Network
from epicortex.families.unstructured.options import UnstructuredOptions
from epicortex.families.unstructured.phenotype import Phenotype, from_arrays, to_arrays

if TYPE_CHECKING:
    from epicortex.config import Config


class UnstructuredFamily:
    """Unstructured networks for one problem; their weights evolve, too.

    A species is the set of networks with the same number of nodes, whatever their connections are.

    >>> family = UnstructuredFamily(Problem((2,), 1))
    >>> rng = np.random.default_rng(1)
    >>> network = family.grow(family.minimal(rng), rng)
    >>> family.key(network), family.outline(family.encode(network)[0]).text
    ('4 nodes', '2 in, 1 hidden, 1 out, 7 connections')
    """

    name = "unstructured"

    def __init__(
        self, problem: Problem, options: UnstructuredOptions | None = None, start: Genome | None = None
    ) -> None:
        """`start` is the structure that evolution starts from, if not the minimal one."""
        self.problem = Problem(tuple(problem.input_shape), problem.outputs)
        self.options = options or UnstructuredOptions()
        self.start = start and self._ours(start)

    @classmethod
    def from_config(cls, config: Config, problem: Problem, operators: Sequence[Any] = ()) -> Self:
        """The family as the section `unstructured` of the settings asks for it."""
        if operators:
            raise ConfigError("the family unstructured takes no operators of your own; leave them out")
        text = config.evolution.start_genome
        try:
            start = from_dict(json.loads(text)) if text else None
        except ValueError as error:
            raise ConfigError(f"evolution.start_genome is no JSON: {error}") from None
        except GenomeError as error:
            raise ConfigError(f"evolution.start_genome: {error}") from None
        return cls(problem, UnstructuredOptions.from_config(config), start)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The family for the input shape, the outputs and the steps that `facts` gave."""
        shape = facts.get("input_shape")
        numbers = [*(shape if isinstance(shape, list) else []), facts.get("outputs"), facts.get("steps")]
        if len(numbers) < 3 or not all(type(number) is int and number > 0 for number in numbers):
            raise GenomeError("an unstructured network's facts are its input_shape, outputs and steps")
        *sizes, outputs, steps = numbers
        return cls(Problem(tuple(sizes), outputs), UnstructuredOptions(steps=steps))

    def facts(self) -> dict[str, Any]:
        """The input shape, the outputs and the steps; the rest is in the genome."""
        return {
            "input_shape": list(self.problem.input_shape),
            "outputs": self.problem.outputs,
            "steps": self.options.steps,
        }

    def minimal(self, rng: np.random.Generator) -> Phenotype:
        """Inputs and outputs, fully connected, or the start genome; with new weights."""
        if self.start is None:
            return mutation.minimal(self.problem, self.options, rng)
        return Phenotype(self.start, self._weights(self.start, rng))

    def grow(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """A node more: that is what makes another species."""
        return mutation.add_node(phenotype, self.options, rng) or phenotype

    def redraw(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """Another network with as many nodes: connections as new nodes get them, and new weights."""
        if self.start is not None:
            return Phenotype(phenotype.genome, self._weights(phenotype.genome, rng))
        fresh = self.minimal(rng)
        while fresh.genome.nodes < phenotype.genome.nodes:
            grown = mutation.add_node(fresh, self.options, rng)
            if grown is None:
                return Phenotype(phenotype.genome, self._weights(phenotype.genome, rng))
            fresh = grown
        return fresh

    def mutate(
        self, phenotype: Phenotype, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation[Phenotype]:
        """One mutation, its type drawn by the rates of the options."""
        del relative_fitness
        return mutation.mutate(phenotype, grow, self.options, rng)

    def cross(self, one: Phenotype, other: Phenotype, *, share: float, rng: np.random.Generator) -> Phenotype:
        """A child, connection by connection."""
        return crossover.cross(one, other, share=share, rng=rng)

    def clone(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """The same network with its weights perturbed."""
        return mutation.perturb(phenotype, self.options, rng)

    def key(self, phenotype: Phenotype) -> str:
        """The number of nodes, as `9 nodes`."""
        return outline.key(phenotype.genome)

    def similarity(self, one: Phenotype, other: Phenotype) -> float:
        """The overlap of the ordered nodes."""
        return crossover.similarity(one, other)

    def parameters(self, phenotype: Phenotype) -> int:
        """The weights: one for each connection."""
        return len(phenotype.weights)

    def cost(self, phenotype: Phenotype) -> int:
        """A multiplication for each connection and step."""
        return outline.cost(phenotype.genome) * self.options.steps

    def build(self, phenotype: Phenotype) -> Network:
        """The network as a callable in numpy; it has no weights that a gradient could change."""
        return Network(phenotype, self.options.steps)

    def learned(self, phenotype: Phenotype, model: Network) -> Phenotype:
        """What the model computes with: weights change by evolution alone, unless somebody replaced them."""
        return model.phenotype if model.phenotype.genome == phenotype.genome else phenotype

    def encode(self, phenotype: Phenotype) -> tuple[Any, Arrays]:
        """The genotype as plain JSON values, and the weights."""
        return phenotype.genome.to_dict(), to_arrays(phenotype)

    def decode(self, description: Any, arrays: Mapping[str, Array]) -> Phenotype:
        """Back from `encode`; whatever does not fit together is a `GenomeError`."""
        return from_arrays(self._ours(from_dict(description)), arrays)

    def outline(self, description: Any) -> Outline:
        """A structure for people."""
        return outline.outline(self._ours(from_dict(description)), self.problem, self.options.steps)

    def kernels(self, phenotype: Phenotype) -> tuple[tuple[Array, ...], ...]:
        """There are none."""
        return tuple(() for _ in range(len(phenotype.genome.hidden) + 1))

    def graph(self, phenotype: Phenotype) -> Graph:
        """All nodes, from the inputs up, and all connections."""
        return outline.graph(phenotype)

    def _weights(self, genome: Genome, rng: np.random.Generator) -> Array:
        return mutation.new_weights(len(genome.connections), self.options, rng)

    def _ours(self, genome: Genome) -> Genome:
        expected = int(np.prod(self.problem.input_shape)), self.problem.outputs
        if (genome.inputs, genome.outputs) != expected:
            raise GenomeError(
                f"a network with {genome.inputs} inputs and {genome.outputs} outputs where one with "
                f"{expected[0]} and {expected[1]} is expected"
            )
        return genome
