"""Normalised residual networks with kernels of individual shape, as everyone else sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epicortex import registry
from epicortex.config import EvolutionConfig
from epicortex.errors import ConfigError, GenomeError
from epicortex.families.family import Array, Arrays, Memory, Mutation, Outline, Problem
from epicortex.families.residual import programs
from epicortex.families.residual.crossover import cross, kinship
from epicortex.families.residual.drawing import draw_phenotype, renewed
from epicortex.families.residual.founders import linear_model, sized_founder
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.mutation import attempt, mutate, operators, within
from epicortex.families.residual.operators import Operator
from epicortex.families.residual.options import ResidualOptions
from epicortex.families.residual.outline import cost_class, kernel_weights, outline
from epicortex.families.residual.phenotype import Phenotype, from_arrays, to_arrays
from epicortex.families.residual.reading import genome_from_dict, genome_from_json
from epicortex.families.transfer import Rows, inherited
from epicortex.native.program import Operation

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.families.residual.network import Network


class ResidualFamily:
    """Residual networks for one problem: an image, a signal, or a row of a table.

    A species is a class of cost: all networks that take from 2^n to less than 2^(n+1) multiplications for a
    sample. Their structures may differ. A child of two networks has the structure of the one with the larger
    share, so it is always in the species of that parent.

    >>> family = ResidualFamily(Problem((1, 28, 28), 10))
    >>> rng = np.random.default_rng(1)
    >>> founder = family.minimal(rng)
    >>> family.key(founder), family.key(family.redraw(founder, rng))
    ('cost 2^19', 'cost 2^19')
    """

    name = "residual"
    remembers = ("SGD", "OrthogonalSGD")

    def __init__(
        self,
        problem: Problem,
        options: ResidualOptions | None = None,
        own_operators: Sequence[Operator] = (),
        start: Genome | None = None,
    ) -> None:
        """`own_operators` come on top of those that the options name; `start` is where evolution starts."""
        self.problem = Problem(tuple(problem.input_shape), problem.outputs)
        self.start = start and self._ours(start)
        self.options = options or ResidualOptions()
        self.operators = (*operators(self.options), *own_operators)
        names = [operator.name for operator in self.operators]
        if len(set(names)) != len(names) or not names:
            raise ConfigError(f"operators need names of their own, at least one: {names}")

    @classmethod
    def from_config(cls, config: Config, problem: Problem, operators: Sequence[Any] = ()) -> Self:
        """The family as the section `residual` of the settings asks for it.

        Whatever `evolution.operators` names beyond its default is an operator of a person's own.
        """
        known = EvolutionConfig.model_fields["operators"].default
        given = {operator.name: operator for operator in operators}
        own = [_own_operator(name, given) for name in config.evolution.operators if name not in known]
        start = config.evolution.start_genome
        return cls(
            problem, ResidualOptions.from_config(config), own, genome_from_json(start) if start else None
        )

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The family for the input shape and the outputs that `facts` gave."""
        shape, outputs = facts.get("input_shape"), facts.get("outputs")
        if not isinstance(shape, list) or not all(type(size) is int for size in [*shape, outputs]):
            raise GenomeError("a residual network's facts are its input_shape and its outputs")
        return cls(Problem(tuple(shape), outputs if isinstance(outputs, int) else 0))

    def facts(self) -> dict[str, Any]:
        """The input shape and the outputs; the rest is in the genome."""
        return {"input_shape": list(self.problem.input_shape), "outputs": self.problem.outputs}

    def minimal(self, rng: np.random.Generator) -> Phenotype:
        """A small network of a sensible shape, within the limits for first networks; or the start genome."""
        if self.start is not None:
            return draw_phenotype(renewed(self.start, rng), rng)
        return self.founder(
            rng, max_cost=self.options.start_cost, max_parameters=self.options.start_parameters
        )

    def founder(
        self,
        rng: np.random.Generator,
        *,
        max_cost: int | None = None,
        max_parameters: int | None = None,
        like: Phenotype | None = None,
    ) -> Phenotype:
        """A network of a sensible shape that nearly fills these limits and those of the options.

        It is that of `like`, unless it would be too thin.
        """
        costs = [limit for limit in (max_cost, self.options.max_cost) if limit is not None]
        counts = [limit for limit in (max_parameters, self.options.max_parameters) if limit is not None]
        return sized_founder(
            self.problem,
            rng,
            max_cost=min(costs, default=None),
            max_parameters=min(counts, default=None),
            kernel_mix=self.options.kernel_mix,
            decay=self.options.start_decay,
            like=like,
        )

    def simplest(self, rng: np.random.Generator) -> Phenotype | None:
        """For a table a linear model, if that is within the limits."""
        if len(self.problem.input_shape) > 1:
            return None
        found = linear_model(self.problem, rng)
        return found if within(found.genome, self.options) else None

    def is_simplest(self, phenotype: Phenotype) -> bool:
        """Whether a network is a linear model."""
        genome = phenotype.genome
        return genome.trunk == "linear" and not any(stage.blocks for stage in genome.stages)

    def grow(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """One growing mutation, its type drawn evenly among the possible."""
        done = attempt(phenotype, "grow", operators=self.operators, options=self.options, rng=rng)
        return phenotype if done is None or done.phenotype is None else done.phenotype

    def redraw(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """The same structure with new ids and weights: no kin of the one given."""
        return draw_phenotype(renewed(phenotype.genome, rng), rng)

    def mutate(
        self, phenotype: Phenotype, *, grow: float, relative_fitness: float, rng: np.random.Generator
    ) -> Mutation[Phenotype]:
        """One mutation by one of the operators, drawn evenly."""
        return mutate(phenotype, grow=grow, operators=self.operators, options=self.options, rng=rng)

    def cross(self, one: Phenotype, other: Phenotype, *, share: float, rng: np.random.Generator) -> Phenotype:
        """A child with the structure of the parent of the larger share (the first, if both are equal).

        Genes that are kin are averaged, the first parent's with the weight `share`; nothing is drawn.
        """
        return cross(one, other, share=share)

    def clone(self, phenotype: Phenotype, rng: np.random.Generator) -> Phenotype:
        """The same network: in this family a child of one parent competes unchanged."""
        return phenotype

    def key(self, phenotype: Phenotype) -> str:
        """The class of cost, as `cost 2^21`."""
        return cost_class(phenotype.genome)

    def similarity(self, one: Phenotype, other: Phenotype) -> float:
        """The share of nodes that are kin."""
        return kinship(one.genome, other.genome)

    def parameters(self, phenotype: Phenotype) -> int:
        """All weights, and the factors and shifts of the norms."""
        return phenotype.genome.parameters

    def cost(self, phenotype: Phenotype) -> int:
        """The multiplications of all kernels at all positions, and of the output layer."""
        return phenotype.genome.cost

    def build(self, phenotype: Phenotype) -> Network:
        """The network as a module."""
        from epicortex.families.residual.network import Network

        return Network(phenotype)

    def learned(self, phenotype: Phenotype, model: Network) -> Phenotype:
        """The phenotype with a copy of the weights and norms that its model has now; no optimiser state."""
        return model.phenotype()

    def operations(self, phenotype: Phenotype) -> Sequence[Operation]:
        """For the native arithmetic: stage by stage."""
        return programs.operations(phenotype.genome)

    def tensors(self, phenotype: Phenotype) -> tuple[Sequence[Array], Array]:
        """What learns, and the running statistics of the norms."""
        return programs.tensors(phenotype)

    def with_tensors(
        self,
        phenotype: Phenotype,
        tensors: Sequence[Array],
        state: Array | None,
        momentum: Sequence[Array] | None = None,
    ) -> Phenotype:
        """Back from `tensors`."""
        if state is None:
            raise GenomeError("a residual network needs the running statistics of its norms")
        return programs.with_tensors(phenotype, tensors, state, momentum)

    def momentum(self, phenotype: Phenotype) -> Sequence[Array] | None:
        """What SGD remembers, in the order of `tensors`."""
        return programs.momentum(phenotype)

    def recipe(self, phenotype: Phenotype) -> dict[str, float]:
        """The factors that evolved with the network."""
        return asdict(phenotype.genome.recipe)

    def memory(self, phenotype: Phenotype, model: Network) -> Memory:
        """The momentum that the genes hold."""
        from epicortex.families.residual.momentum import momentum

        return momentum(phenotype, model)

    def remembered(self, phenotype: Phenotype, model: Network, memory: Memory) -> Phenotype:
        """As `learned`, with momentum."""
        from epicortex.families.residual.momentum import with_momentum

        return with_momentum(model, memory)

    def with_average(self, phenotype: Phenotype, average: Phenotype) -> Phenotype:
        """The phenotype with the mean of its last weights and norms."""
        return phenotype.with_average(average)

    def settled(self, phenotype: Phenotype) -> Phenotype:
        """The average where there is one, without momentum."""
        return phenotype.settled()

    def adapted(self, phenotype: Phenotype, rows: Rows, rng: np.random.Generator) -> tuple[Phenotype, int]:
        """The same stages for this family's problem; see `transfer`."""
        old = phenotype.settled()
        if old.genome.spatial != len(self.problem.input_shape) - 1:
            raise GenomeError(f"a network for samples of {old.genome.input_shape} cannot be fitted")
        genome = replace(
            old.genome, input_shape=self.problem.input_shape, out=tuple(range(self.problem.outputs))
        )
        genes, kept = inherited(draw_phenotype(genome, rng).genes, old.genes, rows)
        return Phenotype(genome, genes), kept

    def encode(self, phenotype: Phenotype) -> tuple[Any, Arrays]:
        """The genome as plain JSON values, and the genes as named arrays."""
        return phenotype.genome.to_dict(), to_arrays(phenotype)

    def decode(self, description: Any, arrays: Mapping[str, Array]) -> Phenotype:
        """Back from `encode`; whatever does not fit together is a `GenomeError`."""
        return from_arrays(self._genome(description), arrays)

    def outline(self, description: Any) -> Outline:
        """A structure for people."""
        return outline(self._genome(description))

    def kernels(self, phenotype: Phenotype) -> tuple[tuple[Array, ...], ...]:
        """Those of every convolution; a block has those of both of its own."""
        return kernel_weights(phenotype)

    def _genome(self, description: Any) -> Genome:
        return self._ours(genome_from_dict(description))

    def _ours(self, genome: Genome) -> Genome:
        if (genome.input_shape, genome.outputs) != (self.problem.input_shape, self.problem.outputs):
            raise GenomeError(
                f"a network for {genome.input_shape} → {genome.outputs} outputs where one for "
                f"{self.problem.input_shape} → {self.problem.outputs} is expected"
            )
        return genome


def _own_operator(name: str, given: Mapping[str, Any]) -> Operator:
    part = registry.find(registry.OPERATORS, name, given)
    operator = part() if isinstance(part, type) else part
    if not isinstance(operator, Operator) or operator.name != name:
        raise ConfigError(
            f"evolution.operators: {registry.named(part)} is not an operator of residual networks called "
            f"{name!r}; it needs the members name, keeps, possible and apply"
        )
    return operator
