"""The layered networks of the paper: convolutions, then full layers, in one line."""

from epicortex.families.family import Direction
from epicortex.families.layered.crossover import cross
from epicortex.families.layered.family import LayeredFamily
from epicortex.families.layered.mutation import mutate
from epicortex.families.layered.operators import (
    OPERATORS,
    KernelOperator,
    LayerOperator,
    Mutated,
    NodeOperator,
    Operator,
    StrideOperator,
)
from epicortex.families.layered.rules import Rules
from epicortex.families.layered.shapes import draw_kernels, draw_stride
from epicortex.families.layered.statistics import Statistics
from epicortex.families.layered.surgery import adapt, draw_phenotype

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
