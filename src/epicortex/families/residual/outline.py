"""A residual network as people see it: its species, its parts, its recipe."""

from __future__ import annotations

from dataclasses import fields

from epicortex.families.family import Outline, Part
from epicortex.families.residual.genome import Genome, Recipe, texts


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
                kind="conv" if stage.stride else "full",
                text=entry_text,
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
                    text=text,
                    output=outer.output,
                    parameters=inner.parameters + outer.parameters,
                    nodes=inner.nodes + outer.nodes,
                    stride=inner.stride,
                    kernels=inner.kernels + outer.kernels if stage.stride else (),
                )
            )
    out = next(layers)
    parts.append(Part("out", f"out {out.nodes}", out.output, out.parameters, out.nodes))
    return tuple(parts)


def _facts(genome: Genome) -> dict[str, str]:
    facts = {"activation": "ReLU", "normalisation": "batch norm"}
    if genome.spatial:
        side = "×".join([str(genome.pool)] * genome.spatial)
        facts["pooling"] = "global average" if genome.pool == 1 else f"average to {side}"
    for field in fields(Recipe):
        facts[f"{field.name} factor"] = f"{getattr(genome.recipe, field.name):.3g}"
    return facts
