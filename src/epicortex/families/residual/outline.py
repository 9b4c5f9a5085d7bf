"""A residual network as people see it: its species, its parts, its recipe."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from epicortex.families.family import Array, Outline, Part
from epicortex.families.genes import Genes
from epicortex.families.residual.genome import Genome, Recipe, texts
from epicortex.families.residual.layers import Layer
from epicortex.families.residual.phenotype import Phenotype

#: What the first layer of a stage may be, and how it is called.
_TITLES: Final = {
    "columns": "columns, normalised",
    "conv": "convolution",
    "full": "fully connected layer",
}


def cost_class(genome: Genome) -> str:
    """The species key: the power of two that a sample's multiplications reach.

    >>> from epicortex.families.residual.genome import Stage
    >>> cost_class(Genome((4,), (Stage(1, (), (2, 3), ((), ())),), out=(6,)))
    'cost 2^3'
    """
    return f"cost 2^{genome.cost.bit_length() - 1}"


def outline(genome: Genome) -> Outline:
    """The structure of a genome."""
    return Outline(
        key=cost_class(genome),
        text=str(genome),
        input_shape=genome.input_shape,
        outputs=genome.outputs,
        parameters=genome.parameters,
        cost=genome.cost,
        parts=_parts(genome),
        facts=_facts(genome),
    )


def _parts(genome: Genome) -> tuple[Part, ...]:
    """A part for each first convolution, each block, and the output layer."""
    layers, parts = iter(genome.layers), []
    for stage in genome.stages:
        entry_text, *block_texts = texts(stage)
        entry = next(layers)
        parts.append(
            Part(
                kind=_kind(entry),
                title=_TITLES[_kind(entry)],
                text=entry_text if entry.sources else f"columns {entry.nodes}",
                output=entry.output,
                parameters=entry.parameters,
                nodes=entry.nodes,
                stride=stage.stride,
                kernels=entry.kernels if stage.stride else (),
            )
        )
        for text in block_texts:
            inner, outer = next(layers), next(layers)
            parts.append(
                Part(
                    kind="block",
                    title="residual block",
                    text=text,
                    output=outer.output,
                    parameters=inner.parameters + outer.parameters,
                    nodes=inner.nodes + outer.nodes,
                    stride=inner.stride,
                    kernels=inner.kernels + outer.kernels if stage.stride else (),
                )
            )
    out = next(layers)
    parts.append(Part("out", "output layer", f"out {out.nodes}", out.output, out.parameters, out.nodes))
    return tuple(parts)


def _kind(entry: Layer) -> str:
    if not entry.sources:
        return "columns"
    return "conv" if entry.stride else "full"


def kernel_weights(phenotype: Phenotype) -> tuple[tuple[Array, ...], ...]:
    """For each part the weights of its kernels [channels, *shape]; a block's inner ones come first."""
    pairs = phenotype.pairs()
    weights = []
    for stage in phenotype.genome.stages:
        weights.append(_cut(next(pairs)))
        weights += [_cut(next(pairs)) + _cut(next(pairs)) for _ in stage.blocks]
    return (*weights, ())


def _cut(pair: tuple[Layer, Genes]) -> tuple[Array, ...]:
    """Each kernel of a layer without the zeros around it; a full layer has none."""
    layer, genes = pair
    if not layer.stride:
        return ()
    cut = []
    for weight, kernel in zip(genes.weight, layer.kernels, strict=True):
        ends = zip(layer.extent, kernel, strict=True)
        middle = (slice((most - size) // 2, (most + size) // 2) for most, size in ends)
        cut.append(weight[(slice(None), *middle)])
    return tuple(cut)


def _facts(genome: Genome) -> dict[str, str]:
    within = " inside blocks" if genome.trunk == "linear" else ""
    facts = {"activation": f"ReLU{within}", "normalisation": "batch norm"}
    if genome.spatial:
        side = "×".join([str(genome.pool)] * genome.spatial)
        facts["pooling"] = "global average" if genome.pool == 1 else f"average to {side}"
    for field in fields(Recipe):
        facts[f"{field.name} factor"] = f"{getattr(genome.recipe, field.name):.3g}"
    return facts
