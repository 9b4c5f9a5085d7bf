"""Networks of a real run, for measurements: only their structure is kept, weights are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.families.layered.phenotype import Phenotype


def genomes() -> list[Genome]:
    """64 networks of an MNIST run with the preset `paper`, at generation 36."""
    stored = json.loads(Path(__file__).with_name("genomes.json").read_text())
    return [Genome.from_json(json.dumps(genome)) for genome in stored["genomes"]]


def phenotypes() -> list[Phenotype]:
    """The same with weights drawn as for a newborn founder."""
    rng = np.random.default_rng(1)
    return [draw_phenotype(genome, rng=rng) for genome in genomes()]


def layers(count: int) -> list[tuple[tuple[int, ...], ConvLayer]]:
    """Different convolutional layers of these networks with their input shapes, spread evenly over all."""
    every = {
        (shape, layer): None
        for genome in genomes()
        for shape, layer in zip(genome.input_shapes, genome.layers, strict=True)
        if isinstance(layer, ConvLayer)
    }
    return [list(every)[index * len(every) // count] for index in range(count)]
