"""A program made ready to run: training steps, scores and losses on flat vectors that the caller owns."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_double, c_void_p
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.native.library import BatchStructure, NativeError, check, instruction_set, library
from epicortex.native.optimisers import Optimiser
from epicortex.native.program import CrossEntropy, Program

Array = NDArray[np.float32]
#: What the time of a training step goes into; see csrc/stopwatch.h.
WORK: Final = (
    "pack",
    "gather",
    "conv",
    "conv_weights",
    "conv_input",
    "conv_bias",
    "statistics",
    "pointwise",
    "pointwise_back",
    "norm_back",
    "pool",
    "pool_back",
    "full",
    "full_input",
    "full_weights",
    "loss",
    "optimiser",
)
Rows = NDArray[np.integer[Any]] | Sequence[int]


@dataclass(frozen=True, slots=True)
class Scaling:
    """(x / divisor − mean) / std of each channel, made as one multiplication and one addition."""

    divisor: float = 1.0
    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)

    def factors(self, channels: int) -> tuple[Array, Array]:
        """What to multiply with, and what to add.

        >>> [part.tolist() for part in Scaling(255, [0.5], [0.25]).factors(2)]
        [[0.01568627543747425, 0.01568627543747425], [-2.0, -2.0]]
        """
        mean, std = (np.asarray(values, np.float64) for values in (self.mean, self.std))
        scale, offset = 1.0 / (self.divisor * std), -mean / std
        if any(part.shape not in ((1,), (channels,)) for part in (scale, offset)):
            raise NativeError(
                f"scaling of {max(len(mean), len(std))} channels does not fit data of {channels}"
            )
        return (
            np.ascontiguousarray(np.broadcast_to(scale, channels), np.float32),
            np.ascontiguousarray(np.broadcast_to(offset, channels), np.float32),
        )


class Network:
    """Runs a program on `parameters` and `state`, which it changes in place and which belong to the caller.

    >>> from epicortex.native import SGD, Conv, Full, Activation
    >>> program = Program((1, 6, 6), [Conv([(3, 3), (1, 3)]), Activation("relu"), Full(2)])
    >>> rng = np.random.default_rng(1)
    >>> parameters = rng.normal(0, 0.1, program.parameters).astype(np.float32)
    >>> network = Network(program, parameters)
    >>> images, labels = rng.integers(0, 256, (40, 1, 6, 6), dtype=np.uint8), np.arange(40) % 2
    >>> scaling, rows, optimiser = Scaling(255.0, [0.5], [0.5]), np.arange(40), SGD(lr=0.1, momentum=0.9)
    >>> more = {"scaling": scaling, "optimiser": optimiser}
    >>> losses = [network.step(images, rows, labels, **more) for _ in range(100)]
    >>> losses[-1] < 0.1 < losses[0]
    True
    >>> network.score(images, rows, scaling=scaling).shape
    (40, 2)
    """

    def __init__(
        self,
        program: Program,
        parameters: Array,
        state: Array | None = None,
        *,
        simd: str | None = None,
    ) -> None:
        """`simd` names an instruction set other than the one in use."""
        self.program = program
        handle, encoded = c_void_p(), program.encode()
        self._simd = simd or instruction_set()
        check(library().epx_create(encoded.ctypes.data, len(encoded), self._simd.encode(), byref(handle)))
        self._handle = handle.value
        self._free = library().epx_free
        self._parameters = _vector(parameters, program.parameters, "parameters")
        self._state = _vector(
            program.initial_state() if state is None else state, program.state_size, "numbers of state"
        )
        self._gradient: Array = np.zeros(program.parameters, np.float32)
        # Asking an array for its address takes longer than it seems, so it is asked once: what changes from
        # batch to batch is copied into arrays that stay.
        vectors = (self._parameters, self._state, self._gradient)
        self._places = tuple(array.ctypes.data for array in vectors)
        self._count = program.parameters
        self._batch = BatchStructure()
        self._loss = c_double()
        self._rows, self._labels = _Kept(np.int64), _Kept(np.int64)
        self._targets, self._moves, self._flips = _Kept(np.float32), _Kept(np.int32), _Kept(np.uint8)
        self._data: NDArray[Any] | None = None
        self._scaling: Scaling | None = None
        self._scale_by(Scaling())
        self._timed = 0
        found = library().epx_parameters(self._handle), library().epx_state(self._handle)
        assert found == (program.parameters, program.state_size), "both sides count alike"

    @property
    def parameters(self) -> Array:
        """The caller's vector, which steps change."""
        return self._parameters

    @property
    def state(self) -> Array:
        """The caller's running statistics, which steps change."""
        return self._state

    @property
    def gradient(self) -> Array:
        """The gradient of the last step."""
        return self._gradient

    def __del__(self) -> None:
        # Not weakref.finalize, whose callbacks at exit would run while a thread may still be inside.
        free = getattr(self, "_free", None)
        if free is not None:
            free(self._handle)

    @property
    def workspace(self) -> int:
        """How many bytes it has taken for its work so far."""
        return int(library().epx_workspace(self._handle))

    def start_times(self) -> None:
        """From now on count where the time of training and scoring goes."""
        self._timed = library().epx_times(self._handle, None)

    def times(self) -> NDArray[np.float64]:
        """Seconds since `start_times`, [parts, `WORK`]: parts are fused operations, the last is the rest.

        >>> from epicortex.native import Full
        >>> program = Program((1, 4, 4), [Full(2)])
        >>> network = Network(program, np.zeros(program.parameters, "f4"))
        >>> network.start_times()
        >>> loss = network.step(np.zeros((3, 1, 4, 4), np.uint8), [0, 1, 2], [0, 1, 0])
        >>> [name for name, taken in zip(WORK, network.times()[0]) if taken]
        ['full', 'full_input', 'full_weights']
        """
        seconds = np.zeros(self._timed)
        library().epx_times(self._handle, seconds.ctypes.data)
        return seconds.reshape(-1, len(WORK))

    def step(
        self,
        data: NDArray[Any],
        rows: Rows,
        labels: NDArray[Any] | Sequence[int],
        *,
        scaling: Scaling | None = None,
        moves: NDArray[Any] | None = None,
        flips: NDArray[Any] | None = None,
        crop: bool = False,
        optimiser: Optimiser | None = None,
    ) -> float:
        """One training step on samples `rows` of `data` [samples, channels, *spatial]; the loss before it.

        `labels` belong to the rows: whole numbers for cross-entropy, else targets [rows, outputs]. `moves`
        [rows, spatial dimensions] says where each sample's window begins, with edges repeated beyond them;
        `flips` [rows] which windows are mirrored in the last dimension. Samples of another size than the
        program's are averaged down to it; with `crop`, windows of its size are taken out of them. Without an
        optimiser nothing but `gradient` and the running statistics changes.
        """
        count = self._take(data, rows, scaling, moves, flips, crop=crop)
        self._take_answers(labels, count)
        made = None if optimiser is None else byref(optimiser.structure(self._count))
        check(library().epx_step(self._handle, byref(self._batch), *self._places, made, byref(self._loss)))
        return self._loss.value

    def score(
        self,
        data: NDArray[Any],
        rows: Rows | None = None,
        *,
        scaling: Scaling | None = None,
        moves: NDArray[Any] | None = None,
        flips: NDArray[Any] | None = None,
        crop: bool = False,
    ) -> Array:
        """The outputs [rows, outputs] for these samples, or for all; norms use their running statistics."""
        count = self._take(data, rows, scaling, moves, flips, crop=crop)
        outputs: Array = np.empty((count, self.program.outputs), np.float32)
        self._score(outputs, None)
        return outputs

    def losses(
        self,
        data: NDArray[Any],
        rows: Rows | None,
        labels: NDArray[Any] | Sequence[int],
        *,
        scaling: Scaling | None = None,
        moves: NDArray[Any] | None = None,
        flips: NDArray[Any] | None = None,
        crop: bool = False,
    ) -> Array:
        """The loss of each sample when scored, not averaged; class weights are factors."""
        count = self._take(data, rows, scaling, moves, flips, crop=crop)
        self._take_answers(labels, count)
        losses: Array = np.empty(count, np.float32)
        self._score(None, losses)
        return losses

    def _score(self, outputs: Array | None, losses: Array | None) -> None:
        check(
            library().epx_score(
                self._handle,
                byref(self._batch),
                *self._places[:2],
                None if outputs is None else outputs.ctypes.data,
                None if losses is None else losses.ctypes.data,
            )
        )

    def _take(
        self,
        data: NDArray[Any],
        rows: Rows | None,
        scaling: Scaling | None,
        moves: NDArray[Any] | None,
        flips: NDArray[Any] | None,
        *,
        crop: bool,
    ) -> int:
        """Put a batch where the library reads it; how many samples it has."""
        own, rank = self._batch, self.program.rank
        if data is not self._data:
            self._take_data(data)
        if scaling is not self._scaling:
            self._scale_by(scaling or Scaling())
            self._scaling = scaling
        chosen = np.arange(own.samples) if rows is None else _whole(rows)
        if chosen.ndim != 1:
            raise NativeError("rows must be a list of numbers")
        count = len(chosen)
        own.rows, own.count, own.crop = self._rows.put(chosen), count, crop
        own.moves = own.flips = own.labels = own.targets = None
        if moves is not None:
            if rank == 0 or np.shape(moves) != (count, rank):
                raise NativeError(f"moves must be [rows, {rank}], not {np.shape(moves)}")
            places = np.zeros((count, 2), np.int32)
            places[:, 2 - rank :] = moves
            own.moves = self._moves.put(places)
        if flips is not None:
            own.flips = self._flips.put(_shaped(_whole(flips), (count,)))
        return count

    def _take_data(self, data: NDArray[Any]) -> None:
        rank = self.program.rank
        if data.ndim != rank + 2 or data.dtype not in (np.uint8, np.float32) or not data.flags.c_contiguous:
            raise NativeError(
                f"data must be contiguous uint8 or float32 of {rank + 2} dimensions, "
                f"not {data.dtype} {data.shape}"
            )
        own = self._batch
        own.data, own.bytes = data.ctypes.data, int(data.dtype == np.uint8)
        own.samples, own.channels = data.shape[:2]
        own.width = data.shape[-1] if rank else 1
        own.height = data.shape[2] if rank == 2 else 1
        self._data = data  # it must live as long as its address is known

    def _scale_by(self, scaling: Scaling) -> None:
        self._factors = scaling.factors(self.program.input_shape[0])
        self._batch.scale, self._batch.offset = (array.ctypes.data for array in self._factors)

    def _take_answers(self, labels: NDArray[Any] | Sequence[int], count: int) -> None:
        if isinstance(self.program.loss, CrossEntropy):
            self._batch.labels = self._labels.put(_shaped(_whole(labels), (count,)))
        else:
            wanted = np.asarray(labels)
            self._batch.targets = self._targets.put(_shaped(wanted, (count, self.program.outputs)))


def update_average(average: Array, values: Array, weight: float) -> None:
    """Move an average by `weight` of its distance to new values: exponential averages of parameters.

    >>> average = np.zeros(3, np.float32)
    >>> update_average(average, np.array([1, 2, 3], np.float32), 0.5)
    >>> average.tolist()
    [0.5, 1.0, 1.5]
    """
    _vector(average, len(values), "values")
    _vector(values, len(average), "values")
    check(
        library().epx_average(
            instruction_set().encode(), len(average), average.ctypes.data, values.ctypes.data, weight
        )
    )


class _Kept:
    """An array whose address is known, as large as was ever needed."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._address = 0

    def put(self, values: NDArray[Any]) -> int:
        """Copy values in; where they are now."""
        size = values.size
        if size > self._array.size:
            self._array = np.empty(size, self._array.dtype)
            self._address = self._array.ctypes.data
        self._array[:size].reshape(values.shape)[...] = values
        return self._address


def _vector(array: Array, size: int, what: str) -> Array:
    if array.dtype != np.float32 or array.shape != (size,) or not array.flags.c_contiguous:
        raise NativeError(
            f"expected {size} {what} as a contiguous vector of float32, not {array.dtype} {array.shape}"
        )
    if not array.flags.writeable:
        raise NativeError(f"the vector of {what} must be writable")
    return array


def _whole(values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "f" and array.size:
        raise NativeError("rows, labels and flips must be whole numbers")
    return array


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if array.shape != shape:
        raise NativeError(f"expected an array of {shape}, not {array.shape}")
    return array
