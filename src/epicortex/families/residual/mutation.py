"""One mutation: first the direction, then the type, drawn evenly; then the operator's own work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from epicortex.errors import VariationError
from epicortex.families.family import Direction, Mutation
from epicortex.families.residual.factors import RecipeOperator
from epicortex.families.residual.genome import Genome
from epicortex.families.residual.kernels import KernelOperator, ReshapeOperator
from epicortex.families.residual.operators import (
    BlockOperator,
    InnerOperator,
    Mutated,
    Operator,
    WidthOperator,
)
from epicortex.families.residual.options import ResidualOptions
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.stages import StageOperator, StrideOperator


def operators(options: ResidualOptions) -> tuple[Operator, ...]:
    """The operators that the options name.

    >>> [operator.name for operator in operators(ResidualOptions(mutations=("kernel", "width")))]
    ['kernel', 'width']
    """
    all_of_them: tuple[Operator, ...] = (
        WidthOperator(),
        InnerOperator(),
        BlockOperator(),
        StageOperator(),
        KernelOperator(options.largest_kernel),
        ReshapeOperator(options.largest_kernel),
        StrideOperator(),
        RecipeOperator(),
    )
    by_name = {operator.name: operator for operator in all_of_them}
    return tuple(by_name[name] for name in options.mutations)


def mutate(
    phenotype: Phenotype,
    *,
    grow: float,
    operators: Sequence[Operator],
    options: ResidualOptions,
    rng: np.random.Generator,
) -> Mutation[Phenotype]:
    """Mutate a network: it grows with probability `grow`; the other direction is taken if it cannot."""
    first: Direction = "grow" if rng.random() < grow else "shrink"
    second: Direction = "shrink" if first == "grow" else "grow"
    for direction in (first, second):
        done = attempt(phenotype, direction, operators=operators, options=options, rng=rng)
        if done is not None:
            return done
    return Mutation(None, "none", first)


def attempt(
    phenotype: Phenotype,
    direction: Direction,
    *,
    operators: Sequence[Operator],
    options: ResidualOptions,
    rng: np.random.Generator,
) -> Mutation[Phenotype] | None:
    """One mutation in a direction, its type drawn evenly among those that stay within the limits; or None."""
    possible = [operator for operator in operators if operator.possible(phenotype.genome, direction)]
    for place in rng.permutation(len(possible)).tolist():
        operator = possible[place]
        try:
            done = _checked(operator, phenotype, direction, rng)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return Mutation(
                None, operator.name, direction, reason=f"operator {operator.name} failed: {reason}"
            )
        if within(done.phenotype.genome, options, phenotype.genome):
            return Mutation(done.phenotype, operator.name, direction, done.layer)
    return None


def within(genome: Genome, options: ResidualOptions, before: Genome | None = None) -> bool:
    """Whether a genome keeps to the limits, or goes no further beyond them than the one before."""
    for limit, size, was in (
        (options.max_parameters, genome.parameters, before.parameters if before else 0),
        (options.max_cost, genome.cost, before.cost if before else 0),
    ):
        if limit is not None and size > max(limit, was):
            return False
    return True


def _checked(
    operator: Operator, phenotype: Phenotype, direction: Direction, rng: np.random.Generator
) -> Mutated:
    done = operator.apply(phenotype, direction, rng)
    before, after = phenotype.genome, done.phenotype.genome
    if (after.input_shape, after.outputs) != (before.input_shape, before.outputs):
        raise VariationError("it gave a network for other data")
    return done
