"""Normalised residual networks with kernels of individual shape: growth keeps what a network has learned."""

from epicortex.families.residual.family import ResidualFamily
from epicortex.families.residual.founders import sized_founder
from epicortex.families.residual.genome import Block, Genome, Recipe, Stage
from epicortex.families.residual.options import ResidualOptions
from epicortex.families.residual.phenotype import Phenotype

__all__ = [
    "Block",
    "Genome",
    "Phenotype",
    "Recipe",
    "ResidualFamily",
    "ResidualOptions",
    "Stage",
    "sized_founder",
]
