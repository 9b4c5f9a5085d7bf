"""The layered networks of the paper, as the ecosystem sees them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epicortex.errors import ConfigError
from epicortex.families.family import Mutation
from epicortex.families.layered.crossover import cross
from epicortex.families.layered.genome import ConvLayer, Genome, HiddenLayer, Shape
from epicortex.families.layered.mutation import OperatorFailed, apply, mutate
from epicortex.families.layered.operators import OPERATORS, KernelOperator, Operator
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.shapes import draw_kernels
from epicortex.families.layered.surgery import draw_phenotype


class LayeredFamily:
    """Networks of convolutional, then fully connected layers for one input shape and number of classes.

    >>> family = LayeredFamily((1, 8, 8), 10)
    >>> rng = np.random.default_rng(1)
    >>> founder = family.grow(family.minimal(rng), rng)
    >>> family.key(family.redraw(founder, rng)) == family.key(founder)
    True
    """

    def __init__(
        self,
        input_shape: Shape,
        classes: int,
        *,
        rules: Rules | None = None,
        operators: Sequence[Operator] = tuple(OPERATORS.values()),
        start: Genome | None = None,
    ) -> None:
        self.start = start or Genome(tuple(input_shape), (), classes)
        if (self.start.input_shape, self.start.classes) != (tuple(input_shape), classes):
            raise ConfigError(
                f"the start genome is for input {self.start.input_shape} and {self.start.classes} classes, "
                f"the data has {tuple(input_shape)} and {classes}"
            )
        names = [operator.name for operator in operators]
        if len(set(names)) != len(names) or not names:
            raise ConfigError(f"operators need names of their own, at least one: {names}")
        self.rules = rules or Rules()
        self.operators = tuple(operators)

    def minimal(self, rng: np.random.Generator) -> Phenotype:
        """The output layer alone, or the start genome, with new weights."""
        return draw_phenotype(self.start, rules=self.rules, rng=rng)

    def grow(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """One growing mutation, its type drawn evenly among the possible."""
        possible = [operator for operator in self.operators if operator.possible(phenotype.genome, "grow")]
        while possible:
            operator = possible.pop(int(rng.integers(len(possible))))
            try:
                return apply(operator, phenotype, "grow", rules=self.rules, rng=rng).phenotype
            except OperatorFailed:
                if not possible:
                    raise
        return phenotype

    def redraw(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """Another member of the same species: its own kernel shapes, weights and biases."""
        genome = phenotype.genome
        hidden: list[HiddenLayer] = []
        for layer, below in zip(genome.hidden, genome.input_shapes, strict=False):
            if layer.type == "conv":
                kernels = draw_kernels(below[1:], layer.nodes, rules=self.rules, rng=rng)
                hidden.append(ConvLayer(kernels, layer.stride))
            else:
                hidden.append(layer)
        return draw_phenotype(genome.replace(hidden), rules=self.rules, rng=rng)

    def key(self, phenotype: Phenotype) -> str:
        """The sequence of layer types, node counts and strides."""
        return phenotype.genome.species_key

    def similarity(self, one: Phenotype, other: Phenotype) -> float:
        """The overlap of two genomes."""
        return one.genome.similarity(other.genome)

    def parameters(self, phenotype: Phenotype) -> int:
        """All weights and biases."""
        return phenotype.genome.parameters

    def mutate(
        self, phenotype: Phenotype, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation:
        """One mutation by one of the operators."""
        return mutate(
            phenotype,
            grow=grow,
            relative_fitness=relative_fitness,
            operators=self.operators,
            rules=self.rules,
            rng=rng,
        )

    def cross(self, one: Phenotype, other: Phenotype, *, share: float, rng: np.random.Generator) -> Phenotype:
        """A child of two networks."""
        return cross(one, other, share=share, rules=self.rules, rng=rng)

    def resize(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """A clone with one kernel resized, drawn evenly over all possible (kernel, dimension, direction)."""
        kernel = KernelOperator()
        targets = [target for way in ("grow", "shrink") for target in kernel.targets(phenotype.genome, way)]
        if not targets:
            return phenotype
        target = targets[rng.integers(len(targets))]
        return kernel.resize(phenotype, target, rules=self.rules, rng=rng).phenotype
