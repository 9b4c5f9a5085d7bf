"""Mutation and crossover: pure functions of a genome, its weights and a generator."""

from epicortex.variation.crossover import cross
from epicortex.variation.family import LayeredFamily
from epicortex.variation.mutation import mutate
from epicortex.variation.operators import (
    OPERATORS,
    KernelOperator,
    LayerOperator,
    Mutated,
    NodeOperator,
    Operator,
    StrideOperator,
)
from epicortex.variation.rules import Direction, Rules
from epicortex.variation.shapes import draw_kernels, draw_stride
from epicortex.variation.statistics import Statistics
from epicortex.variation.surgery import adapt, draw_phenotype

__all__ = [
    "OPERATORS",
    "Direction",
    "KernelOperator",
    "LayerOperator",
    "LayeredFamily",
    "Mutated",
    "NodeOperator",
    "Operator",
    "Rules",
    "Statistics",
    "StrideOperator",
    "adapt",
    "cross",
    "draw_kernels",
    "draw_phenotype",
    "draw_stride",
    "mutate",
]
