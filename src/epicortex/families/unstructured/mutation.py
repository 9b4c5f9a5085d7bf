"""Mutations: nodes and connections come and go, weights are perturbed or drawn anew, activations change.

Perturbing weights dominates: it is what is left of the rates of all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicortex.families.family import Array, Direction, Mutation, Problem
from epicortex.families.unstructured.genome import Genome
from epicortex.families.unstructured.options import UnstructuredOptions
from epicortex.families.unstructured.phenotype import Genes, Phenotype, of_genes

Rng = np.random.Generator


def minimal(problem: Problem, options: UnstructuredOptions, rng: Rng) -> Phenotype:
    """No hidden node: every output hears every input, and the bias."""
    inputs = int(np.prod(problem.input_shape))
    sources = range(0 if options.bias else 1, inputs + 1)
    targets = range(inputs + 1, inputs + problem.outputs + 1)
    drawn = iter(new_weights(len(sources) * problem.outputs, options, rng).tolist())
    genes = {(target, source): next(drawn) for target in targets for source in sources}
    activations = (options.output_activation,) * problem.outputs
    return of_genes(inputs, problem.outputs, genes, activations, recurrent=options.recurrent)


def mutate(phenotype: Phenotype, grow: float, options: UnstructuredOptions, rng: Rng) -> Mutation[Phenotype]:
    """One mutation; what it does is drawn by the rates, and where it has a direction, that by `grow`."""
    direction: Direction = "grow" if rng.random() < grow else "shrink"
    kind = draw_kind(options, rng)
    if kind == "node":
        change = add_node if direction == "grow" else remove_node
        return Mutation(change(phenotype, options, rng), kind, direction)
    if kind == "connection":
        change = add_connection if direction == "grow" else remove_connection
        return Mutation(change(phenotype, options, rng), kind, direction)
    if kind == "activation":
        return Mutation(change_activation(phenotype, options, rng), kind, "same")
    if kind == "redraw":
        return Mutation(redraw_some(phenotype, options, rng), kind, "same")
    return Mutation(perturb(phenotype, options, rng), kind, "same")


def draw_kind(options: UnstructuredOptions, rng: Rng) -> str:
    """The type of a mutation, by the rates."""
    rates = {
        "node": options.node_rate,
        "connection": options.connection_rate,
        "redraw": options.redraw_rate,
        "activation": options.activation_rate if len(options.activations) > 1 else 0.0,
    }
    point = rng.random()
    for kind, rate in rates.items():
        if point < rate:
            return kind
        point -= rate
    return "weights"


def add_node(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype | None:
    """A new node, the last in the order; None where there are too many."""
    genome, genes = phenotype.genome, phenotype.genes
    if genome.nodes >= options.max_nodes:
        return None
    new = genome.nodes + 1
    if options.node_start == "split":
        _split(genome, genes, new, options, rng)
    else:
        sources = range(0 if options.bias else 1, genome.inputs + 1)
        drawn = iter(new_weights(len(sources) + genome.outputs, options, rng).tolist())
        genes |= {(new, source): next(drawn) for source in sources}
        genes |= {(target, new): next(drawn) for target in genome.out}
    name = options.activations[rng.integers(len(options.activations))]
    return _changed(genome, genes, (*genome.activations, name))


def _split(genome: Genome, genes: Genes, new: int, options: UnstructuredOptions, rng: Rng) -> None:
    """Put the new node into a connection to an output; where there is none, it joins an input to one."""
    ends = [pair for pair in genome.connections if pair[0] in genome.out]
    if ends:
        target, source = ends[rng.integers(len(ends))]
        genes[new, source], genes[target, new] = 1.0, genes.pop((target, source))
        return
    first, second = new_weights(2, options, rng).tolist()
    genes[new, int(rng.integers(1, genome.inputs + 1))] = first
    genes[int(rng.choice(genome.out)), new] = second


def remove_node(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype | None:
    """Take a hidden node out with its connections; those above it close up."""
    del options
    genome = phenotype.genome
    if not genome.hidden:
        return None
    gone = genome.hidden[int(rng.integers(len(genome.hidden)))]

    def moved(node: int) -> int:
        return node - (node > gone)

    genes = {
        (moved(target), moved(source)): weight
        for (target, source), weight in phenotype.genes.items()
        if gone not in (target, source)
    }
    place = gone - genome.inputs - 1
    activations = genome.activations[:place] + genome.activations[place + 1 :]
    return _changed(genome, genes, activations) if genes else None


def add_connection(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype | None:
    """A connection that is allowed and not there; None where all are."""
    genome, genes = phenotype.genome, phenotype.genes
    free = [
        (target, source)
        for target in genome.inward
        for source in genome.sources(target, bias=options.bias)
        if (target, source) not in genes
    ]
    if not free:
        return None
    genes[free[rng.integers(len(free))]] = float(new_weights(1, options, rng)[0])
    return _changed(genome, genes, genome.activations)


def remove_connection(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype | None:
    """Take a connection out; the last one stays."""
    del options
    genome, genes = phenotype.genome, phenotype.genes
    if len(genes) < 2:
        return None
    del genes[genome.connections[rng.integers(len(genes))]]
    return _changed(genome, genes, genome.activations)


def change_activation(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype | None:
    """Another activation for a hidden node; None where there is no such node or no other activation."""
    genome = phenotype.genome
    if not genome.hidden:
        return None
    place = int(rng.integers(len(genome.hidden))) + genome.outputs
    others = [name for name in options.activations if name != genome.activations[place]]
    if not others:
        return None
    activations = list(genome.activations)
    activations[place] = others[rng.integers(len(others))]
    return _changed(genome, phenotype.genes, tuple(activations))


def perturb(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype:
    """Move weights a little, each with the probability `perturb_share`, and at least one."""
    count = len(phenotype.weights)
    chosen = rng.random(count) < options.perturb_share
    chosen[rng.integers(count)] = True
    drawn = rng.standard_cauchy(count) if options.perturb_tail == "cauchy" else rng.standard_normal(count)
    moved = phenotype.weights + np.where(chosen, options.perturb_deviation * drawn, 0.0)
    return phenotype.with_weights(limited(moved, options))


def redraw_some(phenotype: Phenotype, options: UnstructuredOptions, rng: Rng) -> Phenotype:
    """Draw one weight anew."""
    weights = phenotype.weights.copy()
    weights[rng.integers(len(weights))] = new_weights(1, options, rng)[0]
    return phenotype.with_weights(weights)


def new_weights(count: int, options: UnstructuredOptions, rng: Rng) -> Array:
    """Weights drawn for new connections."""
    return limited(rng.normal(0.0, options.weight_deviation, count), options)


def limited(weights: NDArray[np.floating[Any]], options: UnstructuredOptions) -> Array:
    """Weights in single precision, none beyond the limit."""
    kept: Array = np.clip(weights, -options.weight_limit, options.weight_limit).astype(np.float32)
    return kept


def _changed(genome: Genome, genes: Genes, activations: tuple[str, ...]) -> Phenotype:
    return of_genes(genome.inputs, genome.outputs, genes, activations, recurrent=genome.recurrent)
