"""The layered networks of the paper, as everything else sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, get_args

import numpy as np

from epicortex import registry
from epicortex.errors import ConfigError, GenomeError
from epicortex.families.activations import NAMES as ACTIVATIONS
from epicortex.families.activations import Activations
from epicortex.families.family import Array, Arrays, Direction, Mutation, Outline, Part, Problem
from epicortex.families.layered import phenotype as phenotypes
from epicortex.families.layered import programs
from epicortex.families.layered.crossover import cross
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.mutation import OperatorFailed, apply, mutate
from epicortex.families.layered.operators import OPERATORS, KernelOperator, Operator
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.surgery import draw_phenotype
from epicortex.families.transfer import Rows, inherited
from epicortex.native.program import Operation
from epicortex.text import one_line

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.families.layered.network import Network

NAME: Final = "layered"


class LayeredFamily:
    """Networks of convolutional, then fully connected layers for one input shape and number of outputs.

    >>> family = LayeredFamily(Problem((1, 8, 8), 10))
    >>> rng = np.random.default_rng(1)
    >>> founder = family.grow(family.minimal(rng), rng)
    >>> family.key(family.redraw(founder, rng)) == family.key(founder)
    True
    """

    name = NAME

    def __init__(
        self,
        problem: Problem,
        *,
        rules: Rules | None = None,
        activations: Activations | None = None,
        operators: Sequence[Operator] = tuple(OPERATORS.values()),
        start: Genome | None = None,
    ) -> None:
        self.problem = Problem(tuple(problem.input_shape), problem.outputs)
        self.start = start or Genome(self.problem.input_shape, (), self.problem.outputs)
        if Problem(self.start.input_shape, self.start.classes) != self.problem:
            raise ConfigError(
                f"the start genome is for input {self.start.input_shape} and {self.start.classes} classes, "
                f"the data has {self.problem.input_shape} and {self.problem.outputs}"
            )
        names = [operator.name for operator in operators]
        if len(set(names)) != len(names) or not names:
            raise ConfigError(f"operators need names of their own, at least one: {names}")
        self.rules = rules or Rules()
        self.activations = activations or Activations()
        self.operators = tuple(operators)

    @classmethod
    def from_config(cls, config: Config, problem: Problem, operators: Sequence[Any] = ()) -> Self:
        """The family as a run's settings ask for it; an operator that nobody brought along is refused."""
        given = {**OPERATORS, **{operator.name: operator for operator in operators}}
        start = config.evolution.start_genome
        return cls(
            problem,
            rules=Rules.from_config(config),
            activations=Activations(config.layered.conv_activation, config.layered.full_activation),
            operators=[_operator(name, given) for name in config.evolution.operators],
            start=Genome.from_json(start) if start else None,
        )

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """A family that reads, builds and describes."""
        try:
            problem = Problem(tuple(facts["input_shape"]), facts["outputs"])
            activations = Activations(facts["conv_activation"], facts["full_activation"])
        except (KeyError, TypeError):
            raise GenomeError(f"the facts of a {NAME} family lack some, or are not plain values") from None
        for name in (activations.conv, activations.full):
            if not isinstance(name, str) or name not in ACTIVATIONS:
                raise GenomeError(f"there is no activation {one_line(str(name))!r}")
        return cls(problem, activations=activations)

    def facts(self) -> dict[str, Any]:
        """What the networks take and give, and their activations."""
        return {
            "input_shape": list(self.problem.input_shape),
            "outputs": self.problem.outputs,
            "conv_activation": self.activations.conv,
            "full_activation": self.activations.full,
        }

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
        pairs = zip(genome.hidden, genome.input_shapes, strict=False)
        hidden = [layer.redrawn(below, rules=self.rules, rng=rng) for layer, below in pairs]
        return draw_phenotype(genome.replace(hidden), rules=self.rules, rng=rng)

    def mutate(
        self, phenotype: Phenotype, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation[Phenotype]:
        """One mutation by one of the operators."""
        return mutate(
            phenotype,
            grow=grow,
            relative_fitness=relative_fitness,
            operators=self.operators,
            rules=self.rules,
            rng=rng,
        )

    def credited(self, credit: Mapping[str, float]) -> LayeredFamily:
        """The family, its mutations drawn by what their types are credited with."""
        return LayeredFamily(
            self.problem,
            rules=replace(self.rules, credit=tuple(sorted(credit.items()))),
            activations=self.activations,
            operators=self.operators,
            start=self.start,
        )

    def cross(self, one: Phenotype, other: Phenotype, *, share: float, rng: np.random.Generator) -> Phenotype:
        """A child of two networks."""
        return cross(one, other, share=share, rules=self.rules, rng=rng)

    def clone(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """A clone with one kernel resized, drawn evenly over all possible (kernel, dimension, direction)."""
        changed = self.cloned(phenotype, rng)
        return phenotype if changed is None or changed.phenotype is None else changed.phenotype

    def cloned(self, phenotype: Phenotype, rng: np.random.Generator) -> Mutation[Phenotype] | None:
        """The same, as the mutation of a kernel; None where no kernel can be resized."""
        kernel, ways = KernelOperator(), get_args(Direction)
        targets = [(way, target) for way in ways for target in kernel.targets(phenotype.genome, way)]
        if not targets:
            return None
        way, target = targets[rng.integers(len(targets))]
        made = kernel.resize(phenotype, target, rules=self.rules, rng=rng)
        return Mutation(made.phenotype, kernel.name, way, made.layer)

    def key(self, phenotype: Phenotype) -> str:
        """The sequence of layer types, node counts and strides."""
        return phenotype.genome.species_key

    def similarity(self, one: Phenotype, other: Phenotype) -> float:
        """The overlap of two genomes."""
        strides = self.rules.similarity == "strides"
        return one.genome.similarity(other.genome, strides=strides)

    def parameters(self, phenotype: Phenotype) -> int:
        """All weights and biases."""
        return phenotype.genome.parameters

    def cost(self, phenotype: Phenotype) -> int:
        """The multiplications of all layers; the zeros around small kernels are none."""
        return phenotype.genome.cost

    def build(self, phenotype: Phenotype) -> Network:
        """An `nn.Module`."""
        from epicortex.families.layered.network import Network

        return Network(phenotype, self.activations)

    def learned(self, phenotype: Phenotype, model: Network) -> Phenotype:
        """The network's weights as they are now."""
        del phenotype
        return model.phenotype()

    def operations(self, phenotype: Phenotype) -> Sequence[Operation]:
        """For the native arithmetic: layer by layer."""
        return programs.operations(phenotype.genome, self.activations)

    def tensors(self, phenotype: Phenotype) -> tuple[Sequence[Array], None]:
        """The weight and bias of each layer."""
        return programs.tensors(phenotype), None

    def with_tensors(self, phenotype: Phenotype, tensors: Sequence[Array], state: Array | None) -> Phenotype:
        """Back from `tensors`."""
        del state
        return programs.with_tensors(phenotype, tensors)

    def adapted(self, phenotype: Phenotype, rows: Rows, rng: np.random.Generator) -> tuple[Phenotype, int]:
        """The same hidden layers for this family's problem; see `transfer`."""
        shape = self.problem.input_shape
        if phenotype.genome.spatial != len(shape) - 1:
            raise GenomeError(f"a network for samples of {phenotype.genome.input_shape} cannot be fitted")
        genome = Genome(shape, (), self.problem.outputs).replace(phenotype.genome.hidden)
        fresh = draw_phenotype(genome, rules=self.rules, rng=rng)
        weights, kept = inherited(fresh.weights, phenotype.weights, rows)
        return Phenotype(genome, weights), kept

    def encode(self, phenotype: Phenotype) -> tuple[Any, Arrays]:
        """The genome, and for each layer from 1 its weight and bias."""
        return phenotypes.encode(phenotype)

    def decode(self, description: Any, arrays: Mapping[str, Array]) -> Phenotype:
        """Back from `encode`."""
        return self._ours(phenotypes.decode(description, arrays))

    def outline(self, description: Any) -> Outline:
        """Layer by layer, from the bottom."""
        genome = Genome.from_dict(description)
        rows = zip(genome.layers, genome.output_shapes, genome.layer_parameters, strict=True)
        return Outline(
            key=genome.species_key,
            text=str(genome),
            input_shape=genome.input_shape,
            outputs=genome.classes,
            parameters=genome.parameters,
            cost=genome.cost,
            parts=tuple(
                Part(
                    kind=layer.type,
                    title=layer.title,
                    text=str(layer),
                    output=output,
                    parameters=count,
                    nodes=layer.nodes,
                    stride=layer.stride,
                    kernels=layer.kernels,
                )
                for layer, output, count in rows
            ),
            facts={
                "activation of convolutions": self.activations.conv,
                "activation of full layers": self.activations.full,
            },
        )

    def kernels(self, phenotype: Phenotype) -> tuple[tuple[Array, ...], ...]:
        """Those of the convolutions."""
        pairs = zip(phenotype.genome.layers, phenotype.weights, strict=True)
        return tuple(layer.kernel_weights(genes) for layer, genes in pairs)

    def _ours(self, phenotype: Phenotype) -> Phenotype:
        genome = phenotype.genome
        if Problem(genome.input_shape, genome.classes) != self.problem:
            raise GenomeError(
                f"a network for {genome.input_shape} → {genome.classes} is not one for "
                f"{self.problem.input_shape} → {self.problem.outputs}"
            )
        return phenotype


def _operator(name: str, given: Mapping[str, Operator]) -> Operator:
    part = registry.find(registry.OPERATORS, name, given)
    operator = part() if isinstance(part, type) else part
    if not isinstance(operator, Operator) or operator.name != name:
        raise ConfigError(
            f"evolution.operators: {registry.named(part)} is not an operator called {name!r}; it needs the "
            "members name, possible, weight and apply"
        )
    return operator
