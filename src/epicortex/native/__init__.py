"""Compiled arithmetic: irregular networks at the speed of the machine.

A `Program` says what a network computes, operation by operation; a `Network` runs it on flat vectors of
parameters. One training step is one call. The same program gives the same bits with AVX-512, AVX2 and the
portable code.

>>> program = Program((1, 8, 8), [Conv([(3, 3), (1, 5)]), Activation("relu"), Full(10)])
>>> program.parameters
1306
>>> available()
True

`docs/native.md` explains the layout in memory, the tiles, the order of sums, and how to add an operation.
"""

from epicortex.native.library import NativeError, available, instruction_set, instruction_sets, why_not
from epicortex.native.losses import sample_losses
from epicortex.native.network import Network, Scaling, update_average
from epicortex.native.optimisers import SGD, Adadelta, Adam, AdamW, Optimiser, OrthogonalSGD
from epicortex.native.program import (
    ACTIVATIONS,
    Activation,
    Add,
    Conv,
    CrossEntropy,
    Full,
    Loss,
    Matrix,
    Norm,
    Operation,
    Pool,
    Program,
    SigmoidCrossEntropy,
    SquaredError,
)

__all__ = [
    "ACTIVATIONS",
    "SGD",
    "Activation",
    "Adadelta",
    "Adam",
    "AdamW",
    "Add",
    "Conv",
    "CrossEntropy",
    "Full",
    "Loss",
    "Matrix",
    "NativeError",
    "Network",
    "Norm",
    "Operation",
    "Optimiser",
    "OrthogonalSGD",
    "Pool",
    "Program",
    "Scaling",
    "SigmoidCrossEntropy",
    "SquaredError",
    "available",
    "instruction_set",
    "instruction_sets",
    "sample_losses",
    "update_average",
    "why_not",
]
