"""The optimisers that run natively, with the arguments and formulas of torch.optim, and one of ours.

An optimiser belongs to one vector of parameters: it keeps its memory from step to step. `lr` may be changed
between steps; `decayed` (a factor for each parameter, such as `Program.weight_mask()`) says where weight
decay applies.
"""

from __future__ import annotations

import math
from ctypes import byref
from dataclasses import dataclass, field
from operator import is_
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epicortex.native.library import (
    MatrixStructure,
    NativeError,
    OptimiserStructure,
    check,
    instruction_set,
    library,
)
from epicortex.native.program import Matrix

Array = NDArray[np.float32]


@dataclass(slots=True, kw_only=True)
class Optimiser:
    """What all have in common."""

    lr: float
    weight_decay: float = 0.0
    decayed: Array | None = None
    steps: int = field(default=0, init=False)
    memory: list[Array] = field(default_factory=list, init=False, repr=False)
    """What it remembers of each parameter; may be saved, and put back together with `steps`."""
    _known: list[Array | None] = field(default_factory=list, init=False, repr=False, compare=False)
    _size: int = field(default=-1, init=False, repr=False, compare=False)
    _structure: OptimiserStructure = field(init=False, repr=False, compare=False)

    _kind: ClassVar[int]
    _memories: ClassVar[int] = 2

    def structure(self, parameters: int) -> OptimiserStructure:
        """The next step over so many parameters, for the library; counts it."""
        if not self.memory:
            self.memory = [np.zeros(parameters, np.float32) for _ in range(self._memories)]
        arrays = [*self.memory, self.decayed]
        known = len(arrays) == len(self._known) and all(map(is_, arrays, self._known))
        if not known or self._size != parameters:
            self._point(arrays, parameters)
        self.steps += 1
        made = self._structure
        made.rate, made.decay = self.lr, self.weight_decay
        self._fill(made)
        return made

    def _point(self, arrays: list[Array | None], parameters: int) -> None:
        """Write down where the arrays are: asking them for every step takes longer than it seems."""
        for array in arrays:
            if array is None:
                continue
            if array.shape != (parameters,) or array.dtype != np.float32 or not array.flags.c_contiguous:
                raise NativeError(
                    f"an optimiser for {array.shape} numbers cannot step over {parameters} parameters"
                )
        *memory, decayed = [None if array is None else array.ctypes.data for array in arrays]
        first, second = [*memory, None, None][:2]
        self._structure = OptimiserStructure(kind=self._kind, first=first, second=second, decayed=decayed)
        self._known, self._size = arrays, parameters

    def step(self, parameters: Array, gradient: Array) -> None:
        """One step on vectors of the caller's; `Network.step` does it by itself.

        >>> weights = np.array([1.0, 2.0], np.float32)
        >>> SGD(lr=0.5).step(weights, np.array([1.0, -1.0], np.float32))
        >>> weights.tolist()
        [0.5, 2.5]
        """
        for array in (parameters, gradient):
            if array.dtype != np.float32 or array.ndim != 1 or not array.flags.c_contiguous:
                raise NativeError("parameters and gradient must be contiguous vectors of float32")
        if len(parameters) != len(gradient):
            raise NativeError("parameters and gradient must have one length")
        made = self.structure(len(parameters))
        check(
            library().epx_optimise(
                instruction_set().encode(),
                len(parameters),
                parameters.ctypes.data,
                gradient.ctypes.data,
                byref(made),
            )
        )

    def _fill(self, made: OptimiserStructure) -> None:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class SGD(Optimiser):
    """torch.optim.SGD: gradient descent with momentum."""

    lr: float = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False

    _kind: ClassVar[int] = 0
    _memories: ClassVar[int] = 1

    def _fill(self, made: OptimiserStructure) -> None:
        made.momentum, made.dampening = self.momentum, self.dampening
        made.nesterov, made.first_step = int(self.nesterov), int(self.steps == 1)


@dataclass(slots=True, kw_only=True)
class Adadelta(Optimiser):
    """torch.optim.Adadelta."""

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6

    _kind: ClassVar[int] = 1

    def _fill(self, made: OptimiserStructure) -> None:
        made.rho, made.epsilon = self.rho, self.eps


@dataclass(slots=True, kw_only=True)
class Adam(Optimiser):
    """torch.optim.Adam: weight decay is part of the gradient."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    _kind: ClassVar[int] = 2

    def _fill(self, made: OptimiserStructure) -> None:
        first, second = self.betas
        made.beta1, made.beta2, made.epsilon = first, second, self.eps
        made.correction1 = self.lr / (1.0 - first**self.steps)
        made.correction2 = math.sqrt(1.0 - second**self.steps)


@dataclass(slots=True, kw_only=True)
class AdamW(Adam):
    """torch.optim.AdamW: weight decay apart from the gradient."""

    weight_decay: float = 1e-2

    _kind: ClassVar[int] = 3


@dataclass(slots=True, kw_only=True)
class OrthogonalSGD(SGD):
    """SGD that takes orthogonal steps for matrices, as K. Jordan's Muon does.

    The step of a matrix is its momentum with all singular values brought near 1, so that no direction of
    what it learns is drowned by another. Matrices have a rate, which is a part of `lr`, and a decay of their
    own; all else is trained by SGD. Tell it where they are (`Program.matrices`) before the first step.

    >>> optimiser = OrthogonalSGD(lr=1.0, matrix_rate=0.5)
    >>> optimiser.matrices = (Matrix(0, 2, 2, np.arange(4, dtype=np.int32)),)
    >>> weights = np.zeros(5, np.float32)
    >>> optimiser.step(weights, np.array([3.0, 0.0, 0.0, 0.1, 1.0], np.float32))
    >>> [round(float(weight), 1) for weight in weights]
    [-0.3, 0.0, 0.0, -0.6, -1.0]
    """

    matrix_rate: float = 0.3
    """What their steps are times `lr`."""
    matrix_decay: float = 0.02
    """The part of them that a step of rate 1 takes away."""
    matrices: tuple[Matrix, ...] = ()
    _listed: tuple[tuple[Matrix, ...], Any] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    """The matrices that were last told to the library, and how they were told."""

    _kind: ClassVar[int] = 4

    def __post_init__(self) -> None:
        if self.dampening:
            raise NativeError("OrthogonalSGD has no dampening")

    def _fill(self, made: OptimiserStructure) -> None:
        SGD._fill(self, made)
        if self._listed is None or self._listed[0] is not self.matrices:
            rows = [
                MatrixStructure(one.first, len(one.places), one.rows, one.columns, one.places.ctypes.data)
                for one in self.matrices
            ]
            self._listed = self.matrices, (MatrixStructure * len(rows))(*rows)
        made.matrices, made.matrix_count = self._listed[1], len(self.matrices)
        made.matrix_rate, made.matrix_decay = self.lr * self.matrix_rate, self.matrix_decay
