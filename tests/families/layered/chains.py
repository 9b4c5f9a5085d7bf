"""Long random chains of mutations and crossovers, every link checked, and every rare case counted.

`python -m tests.families.layered.chains --chains 2000` runs many and prints how often each case occurred.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch.nn import functional

from epicortex.families.family import Problem, Shape
from epicortex.families.layered import OPERATORS, Direction, LayeredFamily, Rules, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.families.layered.irregular import IrregularConv
from epicortex.families.layered.network import Network
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference
from tests.families.layered.lineage import Lineage, places
from tests.strategies import INPUT_SHAPES, odd_sizes, random_genome, strides

STEPS: Final = 50
#: Larger networks are refused, as a run does with `max_parameters`.
MAX_PARAMETERS: Final = 200_000
#: References that look at every weight are for small networks only.
SMALL: Final = 2_500
CLASSES: Final = 10

MUTATIONS: Final = (
    *(
        f"{name} {way}s: {kind}"
        for name in ("layer", "node")
        for way in ("grow", "shrink")
        for kind in ("conv", "full")
    ),
    *(f"{name} {way}s" for name in ("stride", "kernel") for way in ("grow", "shrink")),
    "drawn by the weights of eqs 3 to 6",
    "clone with one kernel resized",
)
LIMITS: Final = (
    "kernel at its limit",
    "no kernel has room to grow",
    "stride at its limit",
    "kernel cropped by a mutation below",
    "kernel cropped in a crossover",
    "stride limited by a mutation below",
    "stride limited in a crossover",
    "layer of one node",
    "only layers of one node",
    "kernel of size 1",
    "kernels of different shapes in a layer",
    "feature map without room for kernels above 1",
    "output layer only",
)
CROSSINGS: Final = (
    "crossover within a species",
    "crossover across species",
    *(
        f"excess {kind} {what} {fate}"
        for kind in ("conv", "full")
        for what in ("layers", "nodes")
        for fate in ("taken", "left")
    ),
    *(
        f"{kind}: {what}"
        for kind in ("conv", "full")
        for what in ("missing channels drawn", "surplus channels dropped")
    ),
    "full: map cropped",
    "full: map padded",
    "strides differ",
)
CASES: Final = (*MUTATIONS, *LIMITS, *CROSSINGS)


@dataclass
class Tally:
    """How often each case occurred, and who is there to mate with."""

    counts: Counter[str] = field(default_factory=Counter)
    pool: dict[Shape, deque[Phenotype]] = field(default_factory=dict)
    refused: int = 0
    steps: int = 0

    def note(self, cases: Iterable[str]) -> None:
        """Count each case once."""
        named = set(cases)
        assert named <= set(CASES), f"unknown: {named - set(CASES)}"
        self.counts.update(named)


def run_chain(seed: int, tally: Tally, *, steps: int = STEPS) -> Phenotype:
    """One chain over a random input, with random rules, from a random start; raises where a rule breaks."""
    rng = np.random.default_rng([seed, 99])
    shape = INPUT_SHAPES[rng.integers(len(INPUT_SHAPES))]
    rules = _random_rules(rng)
    family = LayeredFamily(Problem(shape, CLASSES), rules=rules)
    pool = tally.pool.setdefault(shape, deque(maxlen=12))
    current = draw_phenotype(random_genome(rng, shape, CLASSES), rules=rules, rng=rng)
    check(current, rng, thorough=True)
    done = 0
    while done < steps:
        partner = _partner(pool, shape, rules, rng)
        story = f"chain {seed}, step {done + 1}, {shape}: {current.genome}"
        try:
            following, cases = _link(family, current, partner, rng)
            if following.genome.parameters > MAX_PARAMETERS:
                tally.refused += 1
                current = family.minimal(rng) if tally.refused % 5 == 0 else current
                continue
            done += 1
            check(following, rng, thorough=done == steps)
        except Exception as error:
            error.add_note(f"{story}  with  {partner.genome}")
            raise
        tally.note(cases | limits(following.genome))
        current = following
        if done % 10 == 0:
            pool.append(current)
    tally.steps += done
    return current


def _random_rules(rng: np.random.Generator) -> Rules:
    return Rules(
        kernel_temperature=float(rng.choice([1.0, 8.0, 40.0])),
        stride_temperature=float(rng.choice([1.0, 3.0])),
        kernel_start="area" if rng.random() < 0.5 else "perimeter",
        layer_choice="type" if rng.random() < 0.5 else "parameters",
        kernel_weight="nodes" if rng.random() < 0.5 else "kernels",
        mutation_choice="fitness" if rng.random() < 0.5 else "weights",
    )


def _partner(pool: deque[Phenotype], shape: Shape, rules: Rules, rng: np.random.Generator) -> Phenotype:
    if pool and rng.random() < 0.8:
        return pool[rng.integers(len(pool))]
    return draw_phenotype(random_genome(rng, shape, CLASSES), rules=rules, rng=rng)


def _link(
    family: LayeredFamily, current: Phenotype, partner: Phenotype, rng: np.random.Generator
) -> tuple[Phenotype, set[str]]:
    """One mutation, clone or crossover, and the cases it is an example of."""
    draw = rng.random()
    if draw < 0.55:
        return _operator(family, current, rng)
    if draw < 0.62:
        mutation = family.mutate(current, grow=0.5, relative_fitness=float(rng.random()), rng=rng)
        assert isinstance(mutation.phenotype, Phenotype)
        return mutation.phenotype, {"drawn by the weights of eqs 3 to 6"}
    if draw < 0.67:
        clone = family.clone(current, rng)
        return clone, {"clone with one kernel resized"} if clone is not current else set()
    if draw < 0.72:
        partner = family.redraw(current, rng)
    child = family.cross(current, partner, share=float(rng.uniform(0.1, 0.9)), rng=rng)
    return child, crossing(Lineage(current, partner, child), thorough=rng.random() < 0.3)


def _operator(
    family: LayeredFamily, current: Phenotype, rng: np.random.Generator
) -> tuple[Phenotype, set[str]]:
    ways: list[tuple[str, Direction]] = [
        (name, way)
        for name, operator in OPERATORS.items()
        for way in _DIRECTIONS
        if operator.possible(current.genome, way)
    ]
    name, way = ways[rng.integers(len(ways))]
    done = OPERATORS[name].apply(current, way, rules=family.rules, rng=rng)
    before, after, place = current.genome, done.phenotype.genome, done.layer - 1
    sources: list[int | None] = list(range(len(before.layers)))
    if name == "layer" and way == "grow":
        sources.insert(place, None)
    elif name == "layer":
        del sources[place]
    if max(before.parameters, after.parameters) < SMALL and rng.random() < 0.3:
        assert all(value != 0 for value in reference.drawn_new(current, done.phenotype, sources))
    kind = (before if way == "shrink" else after).layers[place].type
    cases = {f"{name} {way}s: {kind}" if name in ("layer", "node") else f"{name} {way}s"}
    for index, source in enumerate(sources):
        if source is not None and (index, name) != (place, "kernel") and (index, name) != (place, "stride"):
            cases |= _limited(before.layers[source], after.layers[index], "by a mutation below")
    return done.phenotype, cases


_DIRECTIONS: Final[tuple[Direction, Direction]] = ("grow", "shrink")


def _limited(old: object, new: object, how: str) -> set[str]:
    if not isinstance(old, ConvLayer) or not isinstance(new, ConvLayer):
        return set()
    cropped = any(a != b for a, b in zip(old.kernels, new.kernels, strict=False))
    return ({f"kernel cropped {how}"} if cropped else set()) | (
        {f"stride limited {how}"} if old.stride != new.stride else set()
    )


def limits(genome: Genome) -> set[str]:
    """The limit cases that a genome is an example of."""
    cases = set()
    convs = [
        (layer, below[1:])
        for layer, below in zip(genome.hidden, reference.shapes_of(genome), strict=False)
        if isinstance(layer, ConvLayer)
    ]
    room = [
        (size, max(odd_sizes(whole)))
        for layer, spatial in convs
        for kernel in layer.kernels
        for size, whole in zip(kernel, spatial, strict=True)
    ]
    steps = [
        (step, max(strides(whole)))
        for layer, spatial in convs
        for step, whole in zip(layer.stride, spatial, strict=True)
    ]
    nodes = [layer.nodes for layer in genome.hidden]
    found = {
        "kernel at its limit": any(size == limit > 1 for size, limit in room),
        "no kernel has room to grow": bool(room) and all(size == limit for size, limit in room),
        "stride at its limit": any(step == limit > 1 for step, limit in steps),
        "layer of one node": 1 in nodes,
        "only layers of one node": set(nodes) == {1},
        "kernel of size 1": any(set(kernel) == {1} for layer, _ in convs for kernel in layer.kernels),
        "kernels of different shapes in a layer": any(len(set(layer.kernels)) > 1 for layer, _ in convs),
        "feature map without room for kernels above 1": any(
            max(shape[1:]) < 6 for shape in genome.output_shapes[: genome.convolutions]
        ),
        "output layer only": not nodes,
    }
    cases |= {case for case, occurs in found.items() if occurs}
    return cases


def crossing(lineage: Lineage, *, thorough: bool) -> set[str]:
    """The cases that a crossover is an example of; checks the child against its parents."""
    one, other, child = (each.genome for each in (lineage.one, lineage.other, lineage.child))
    if thorough and max(genome.parameters for genome in (one, other, child)) < SMALL:
        lineage.check()
    origins = lineage.origins()
    if one.species_key == other.species_key:
        assert child.species_key == one.species_key
        return {"crossover within a species"}
    cases = {"crossover across species"}
    for kind in ("conv", "full"):
        counts = [len(places(genome, kind)) for genome in (one, other, child)]
        if counts[0] != counts[1]:
            cases.add(f"excess {kind} layers {'taken' if counts[2] == max(counts[:2]) else 'left'}")
    shapes = reference.shapes_of(child)
    for place, row in enumerate(origins):
        cases |= _crossed_layer(lineage, place, row, shapes[place])
    return cases


def _crossed_layer(lineage: Lineage, place: int, row: list[int | None], below: Shape) -> set[str]:
    layer, sources, cases = lineage.child.genome.layers[place], lineage.sources(place), set[str]()
    aligned = [
        lineage.parents[who].genome.layers[source] for who, source in enumerate(sources) if source is not None
    ]
    if len(aligned) == 2 and aligned[0].nodes != aligned[1].nodes:
        taken = layer.nodes == max(each.nodes for each in aligned)
        cases.add(f"excess {layer.type} nodes {'taken' if taken else 'left'}")
    for who in set(row) - {None}:
        assert who is not None
        source = sources[who]
        assert source is not None
        parent = lineage.parents[who].genome
        had = parent.input_shapes[source]
        kind = "conv" if isinstance(layer, ConvLayer) else "full"
        if below[0] != had[0]:
            change = "missing channels drawn" if below[0] > had[0] else "surplus channels dropped"
            cases.add(f"{kind}: {change}")
        pairs = list(zip(had[1:], below[1:], strict=True))
        if kind == "full" and any(new < old for old, new in pairs):
            cases.add("full: map cropped")
        if kind == "full" and any(new > old for old, new in pairs):
            cases.add("full: map padded")
        old = parent.layers[source]
        if isinstance(layer, ConvLayer) and isinstance(old, ConvLayer):
            mine = [node for node, origin in enumerate(row) if origin == who]
            cropped = any(layer.kernels[node] != old.kernels[node] for node in mine)
            cases |= {"kernel cropped in a crossover"} if cropped else set()
    held = {each.stride for each in aligned if isinstance(each, ConvLayer)}
    if len(held) > 1:
        cases.add("strides differ")
    if isinstance(layer, ConvLayer) and layer.stride not in held:
        cases.add("stride limited in a crossover")
    return cases


def check(phenotype: Phenotype, rng: np.random.Generator, *, thorough: bool) -> None:
    """Everything that must hold after every link; running the network only now and then."""
    genome = phenotype.genome
    assert Genome(genome.input_shape, genome.hidden, genome.classes) == genome
    assert Genome.from_json(genome.to_json()) == genome
    assert reference.broken_limits(genome) == []
    assert reference.weights_around_kernels(phenotype) == 0
    network = Network(phenotype)
    assert list(genome.shapes) == reference.shapes_of(genome)
    around = 0
    for layer in network.layers:
        if isinstance(layer, IrregularConv):
            _, channels, *extent = layer.weight.shape
            around += channels * sum(math.prod(extent) - math.prod(kernel) for kernel in layer.kernels)
    counted = sum(parameter.numel() for parameter in network.parameters()) - around
    assert counted == network.parameter_count() == genome.parameters
    if thorough or rng.random() < 0.1:
        run_network(network, rng)


def run_network(network: Network, rng: np.random.Generator) -> None:
    """Forward and backward with a batch of two."""
    genome = network.genome
    x = torch.from_numpy(rng.standard_normal((2, *genome.input_shape), dtype=np.float32))
    logits = network(x)
    assert logits.shape == (2, genome.classes)
    functional.cross_entropy(logits, torch.tensor([0, 1])).backward()  # type: ignore[no-untyped-call]
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert bool(torch.isfinite(parameter.grad).all())
    assert network.phenotype().genome == genome


def main(arguments: list[str] | None = None) -> int:
    """Run chains from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tally, failures, start = Tally(), 0, time.monotonic()
    for chain in range(options.chains):
        try:
            run_chain(options.seed + chain, tally, steps=options.steps)
        except Exception as error:
            failures += 1
            notes = "; ".join(getattr(error, "__notes__", ()))
            print(f"FAILED: {type(error).__name__}: {error} ({notes})", file=sys.stderr)
        if (chain + 1) % 100 == 0:
            print(f"{chain + 1} chains, {failures} failures", file=sys.stderr)
    seconds = time.monotonic() - start
    print(f"{options.chains} chains, {tally.steps} steps, {failures} failures, {seconds:.0f} seconds")
    print(f"{tally.refused} steps refused as too large; each case occurred so often:")
    for case in CASES:
        print(f"{tally.counts[case]:9,}  {case}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
