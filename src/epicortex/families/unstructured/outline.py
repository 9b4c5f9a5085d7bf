"""An unstructured network for people: its nodes, and what each of them hears."""

from __future__ import annotations

from collections import Counter

from epicortex.families.family import Graph, GraphNode, Outline, Part, Problem
from epicortex.families.unstructured.genome import Genome
from epicortex.families.unstructured.phenotype import Phenotype
from epicortex.text import listed, plural


def key(genome: Genome) -> str:
    """The species: the number of nodes alone, as `9 nodes`."""
    return plural(genome.nodes, "node")


def cost(genome: Genome) -> int:
    """A multiplication for each connection."""
    return len(genome.connections)


def outline(genome: Genome, problem: Problem, steps: int) -> Outline:
    """The hidden nodes one by one, and the outputs together."""
    parts = tuple(_hidden(genome, node) for node in genome.hidden)
    return Outline(
        key=key(genome),
        text=_text(genome),
        input_shape=problem.input_shape,
        outputs=problem.outputs,
        parameters=len(genome.connections),
        cost=cost(genome) * steps,
        parts=(*parts, _outputs(genome)),
        facts=_facts(genome, steps),
    )


def graph(phenotype: Phenotype) -> Graph:
    """The network for a picture; the bias stands among the inputs, where a node hears it."""
    genome = phenotype.genome
    levels = dict.fromkeys(range(genome.inputs + 1), 0)
    for node in genome.hidden:
        below = [levels[source] for source in genome.inward[node] if source < node and source in levels]
        levels[node] = 1 + max(below, default=0)
    top = 1 + max(levels.values())
    heard = any(source == 0 for _, source in genome.connections)
    nodes = [GraphNode(0, 0, "b", "input")] if heard else []
    nodes += [GraphNode(node, 0, str(node), "input") for node in range(1, genome.inputs + 1)]
    nodes += [GraphNode(node, levels[node], str(node), "hidden") for node in genome.hidden]
    nodes += [GraphNode(node, top, str(node), "output") for node in genome.out]
    edges = tuple((source, target, weight) for (target, source), weight in phenotype.genes.items())
    return Graph(tuple(nodes), edges)


def _hidden(genome: Genome, node: int) -> Part:
    heard = genome.inward[node]
    return Part("node", "hidden node", _heard(genome, node), (1,), len(heard), 1)


def _outputs(genome: Genome) -> Part:
    text = "; ".join(_heard(genome, node) for node in genome.out)
    count = sum(len(genome.inward[node]) for node in genome.out)
    return Part("out", "outputs", text, (genome.outputs,), count, genome.outputs)


def _heard(genome: Genome, node: int) -> str:
    sources = ", ".join("bias" if source == 0 else str(source) for source in genome.inward[node])
    return f"{node} ← {sources or 'nothing'}"


def _text(genome: Genome) -> str:
    hidden = f"{len(genome.hidden)} hidden" if genome.hidden else "no hidden node"
    joined = plural(len(genome.connections), "connection")
    return f"{genome.inputs} in, {hidden}, {genome.outputs} out, {joined}"


def _facts(genome: Genome, steps: int) -> dict[str, str]:
    counts = Counter(genome.activation(node) for node in genome.hidden)
    hidden = listed([f"{number} {name}" for name, number in counts.most_common()]) if counts else "none"
    outputs = listed(dict.fromkeys(genome.activation(node) for node in genome.out))
    direction = "recurrent, it remembers" if genome.recurrent else "feed-forward"
    return {
        "hidden nodes": hidden,
        "output activation": outputs,
        "connections": direction + (f", {steps} steps an input" if steps > 1 else ""),
    }
