"""One mutation: first the direction, then the type by its weight, then the operator's own work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from epicortex.errors import VariationError
from epicortex.families.family import Direction, Mutation
from epicortex.families.layered.operators import OPERATORS, Mutated, Operator
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.statistics import Statistics


def mutate(
    phenotype: Phenotype,
    *,
    grow: float,
    relative_fitness: float,
    operators: Sequence[Operator],
    rules: Rules,
    rng: np.random.Generator,
) -> Mutation[Phenotype]:
    """Mutate a network: it grows with probability `grow`; the other direction is taken if none is possible.

    >>> from epicortex.families.layered.genome import Genome
    >>> from epicortex.families.layered import OPERATORS, draw_phenotype
    >>> rng = np.random.default_rng(1)
    >>> minimal = draw_phenotype(Genome((1, 8, 8), (), 10), rng=rng)
    >>> done = mutate(minimal, grow=0.0, relative_fitness=0.5, operators=list(OPERATORS.values()),
    ...               rules=Rules(), rng=rng)
    >>> done.type, done.direction, str(done.phenotype.genome)
    ('layer', 'grow', 'conv[1×3 1×3 1×1 1×1 1×1 1×1 1×1 1×1 1×1 1×1] → out 10')
    """
    if rules.credit is not None:
        return _by_credit(phenotype, grow, dict(rules.credit), operators, rules, rng)
    if rules.mutation_choice == "fitness_first":
        return _by_fitness_first(phenotype, grow, relative_fitness, operators, rules, rng)
    first: Direction = "grow" if rng.random() < grow else "shrink"
    second: Direction = "shrink" if first == "grow" else "grow"
    for direction in (first, second):
        possible = [operator for operator in operators if operator.possible(phenotype.genome, direction)]
        if possible:
            operator = choose(possible, phenotype, relative_fitness, rules, rng)
            return _attempt(operator, phenotype, direction, rules, rng)
    return Mutation(None, "none", first)


def _by_fitness_first(
    phenotype: Phenotype,
    grow: float,
    relative_fitness: float,
    operators: Sequence[Operator],
    rules: Rules,
    rng: np.random.Generator,
) -> Mutation[Phenotype]:
    """The published code's order: kernel or structure, by f_r, whether there is a kernel or not.

    Then it draws a direction and a type again and again until a mutation succeeds; here that is one draw
    among the pairs that are possible. Where none is, the mutation failed.
    """
    resize = rng.random() < relative_fitness
    chances: dict[Direction, float] = {"grow": grow, "shrink": 1 - grow}
    pairs = [
        (operator, direction)
        for direction in chances
        for operator in operators
        if (operator.name == "kernel") == resize and operator.possible(phenotype.genome, direction)
    ]
    if not pairs:
        return Mutation(None, "kernel" if resize else "none", "grow" if rng.random() < grow else "shrink")
    of_type = _weights([operator for operator, _ in pairs], phenotype, rules)
    weights = of_type * [chances[direction] for _, direction in pairs]
    if weights.sum() == 0:  # only the direction that is never drawn is possible
        weights = of_type
    operator, direction = pairs[int(rng.choice(len(pairs), p=weights / weights.sum()))]
    return _attempt(operator, phenotype, direction, rules, rng)


#: What a type has that has not earned anything yet, and the least that any has: none dies out.
NEW_CREDIT: Final = 0.5
LEAST_CREDIT: Final = 0.05


def _by_credit(
    phenotype: Phenotype,
    grow: float,
    credit: Mapping[str, float],
    operators: Sequence[Operator],
    rules: Rules,
    rng: np.random.Generator,
) -> Mutation[Phenotype]:
    """The direction as ever, then the type by its credit; nodes that do good come several at a time."""
    first: Direction = "grow" if rng.random() < grow else "shrink"
    for direction in (first, "shrink" if first == "grow" else "grow"):
        possible = [operator for operator in operators if operator.possible(phenotype.genome, direction)]
        if not possible:
            continue
        own = [credit.get(f"{operator.name} {direction}", NEW_CREDIT) for operator in possible]
        weights = np.maximum(own, LEAST_CREDIT)
        place = int(rng.choice(len(possible), p=weights / weights.sum()))
        done = _attempt(possible[place], phenotype, direction, rules, rng)
        if (possible[place].name, direction) != ("node", "grow") or done.phenotype is None:
            return done
        return _with_more_nodes(done, own[place], possible[place], rules, rng)
    return Mutation(None, "none", first)


def _with_more_nodes(
    done: Mutation[Phenotype], credit: float, operator: Operator, rules: Rules, rng: np.random.Generator
) -> Mutation[Phenotype]:
    """As many more nodes as the credit is above average: up to what a layer has in the mean."""
    assert done.phenotype is not None
    more = int(max(0.0, 2 * credit - 1) * Statistics.of(done.phenotype.genome).nodes_per_layer)
    for _ in range(more):
        done = _attempt(operator, done.phenotype, "grow", rules, rng)
        assert done.phenotype is not None
    return done


def _attempt(
    operator: Operator, phenotype: Phenotype, direction: Direction, rules: Rules, rng: np.random.Generator
) -> Mutation[Phenotype]:
    try:
        done = apply(operator, phenotype, direction, rules=rules, rng=rng)
    except OperatorFailed as failed:
        return Mutation(None, operator.name, direction, reason=str(failed))
    return Mutation(done.phenotype, operator.name, direction, done.layer)


class OperatorFailed(VariationError):
    """An operator of a person's own raised an exception, or gave something that is no network."""


def apply(
    operator: Operator, phenotype: Phenotype, direction: Direction, *, rules: Rules, rng: np.random.Generator
) -> Mutated:
    """Have an operator do its work. What goes wrong in one of a person's own is an `OperatorFailed`."""
    if operator is OPERATORS.get(operator.name):
        return operator.apply(phenotype, direction, rules=rules, rng=rng)
    try:
        done = operator.apply(phenotype, direction, rules=rules, rng=rng)
        before, after = phenotype.genome, done.phenotype.genome
        if (after.input_shape, after.classes) != (before.input_shape, before.classes):
            raise VariationError("it gave a network for other data")
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise OperatorFailed(f"operator {operator.name} failed: {reason}") from error
    return done


def choose(
    possible: Sequence[Operator],
    phenotype: Phenotype,
    relative_fitness: float,
    rules: Rules,
    rng: np.random.Generator,
) -> Operator:
    """Draw one of the possible operators by weight (eqs 3 to 6).

    Other readings resize a kernel, where there is one, with probability f_r, and draw among the others
    otherwise; or draw all types evenly, as the published code did at one time.
    """
    if rules.mutation_choice == "even":
        return possible[int(rng.integers(len(possible)))]
    if rules.mutation_choice == "fitness":
        kernel = [operator for operator in possible if operator.name == "kernel"]
        others = [operator for operator in possible if operator.name != "kernel"]
        if kernel and (not others or rng.random() < relative_fitness):
            return kernel[0]
        possible = others
    weights = _weights(possible, phenotype, rules)
    return possible[int(rng.choice(len(possible), p=weights / weights.sum()))]


def _weights(possible: Sequence[Operator], phenotype: Phenotype, rules: Rules) -> NDArray[np.float64]:
    weights = np.array([operator.weight(phenotype.genome, rules) for operator in possible])
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() == 0:
        named = ", ".join(f"{op.name} {weight:g}" for op, weight in zip(possible, weights, strict=True))
        raise VariationError(f"operators need weights of 0 or more, one above 0, but have {named}")
    return weights
