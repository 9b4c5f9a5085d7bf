"""The compiled library: where it is, whether it can be used, and how it is called.

It has a plain C interface (csrc/interface.h) and knows nothing of Python or torch, so one build serves them
all.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Final

from epicortex.errors import EpiCortexError

#: Forces an instruction set: avx512, avx2 or portable.
SIMD_VARIABLE: Final = "EPICORTEX_SIMD"
#: Names another build of the library, as tests with sanitizers do.
LIBRARY_VARIABLE: Final = "EPICORTEX_NATIVE_LIBRARY"
_FORMAT: Final = 3
_REFUSED, _MEMORY = 1, 2


class NativeError(EpiCortexError):
    """The native library cannot do what it was asked to; the message says why."""


class BatchStructure(Structure):
    """EpxBatch of csrc/interface.h."""

    _fields_ = (
        ("data", c_void_p),
        ("samples", c_int64),
        ("channels", c_int64),
        ("height", c_int64),
        ("width", c_int64),
        ("bytes", c_int32),
        ("crop", c_int32),
        ("rows", c_void_p),
        ("count", c_int64),
        ("scale", c_void_p),
        ("offset", c_void_p),
        ("moves", c_void_p),
        ("flips", c_void_p),
        ("labels", c_void_p),
        ("targets", c_void_p),
    )


class MatrixStructure(Structure):
    """EpxMatrix of csrc/interface.h."""

    _fields_ = (
        ("first", c_int64),
        ("count", c_int64),
        ("rows", c_int64),
        ("columns", c_int64),
        ("places", c_void_p),
    )


class OptimiserStructure(Structure):
    """EpxOptimiser of csrc/interface.h."""

    _fields_ = (
        ("kind", c_int32),
        ("nesterov", c_int32),
        ("first_step", c_int32),
        ("reserved", c_int32),
        ("first", c_void_p),
        ("second", c_void_p),
        ("decayed", c_void_p),
        ("rate", c_float),
        ("decay", c_float),
        ("momentum", c_float),
        ("dampening", c_float),
        ("rho", c_float),
        ("epsilon", c_float),
        ("beta1", c_float),
        ("beta2", c_float),
        ("correction1", c_float),
        ("correction2", c_float),
        ("matrices", POINTER(MatrixStructure)),
        ("matrix_count", c_int64),
        ("matrix_rate", c_float),
        ("matrix_decay", c_float),
    )


def available() -> bool:
    """Whether the native library is built and can be loaded here.

    >>> available()
    True
    """
    return why_not() is None


@cache
def why_not() -> str | None:
    """Why the native library cannot be used, in one line; None where it can.

    >>> why_not() is None
    True
    """
    try:
        instruction_set()
    except NativeError as error:
        return str(error)
    return None


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets that this machine and this build have, the best first.

    >>> instruction_sets()[-1]
    'portable'
    """
    return tuple(library().epx_instruction_sets().decode().split(","))


def instruction_set() -> str:
    """The instruction set in use: the best, or the one that EPICORTEX_SIMD names.

    >>> instruction_set() in instruction_sets()
    True
    """
    known = instruction_sets()
    forced = os.environ.get(SIMD_VARIABLE, "").strip().lower()
    if forced and forced not in known:
        raise NativeError(f"{SIMD_VARIABLE} is {forced!r}, but this machine or build has {', '.join(known)}")
    return forced or known[0]


@cache
def library() -> ctypes.CDLL:
    """The loaded library; `NativeError` where there is none."""
    path = _path()
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise NativeError(f"the native library cannot be loaded: {error}") from error
    try:
        _declare(found)
    except AttributeError:
        raise NativeError(f"{path} is of another version; install EpiCortex again") from None
    if found.epx_format() != _FORMAT:
        raise NativeError(f"{path} is of another version; install EpiCortex again")
    return found


def check(code: int) -> None:
    """Turn a code of the library into an exception."""
    if code == 0:
        return
    message = library().epx_error().decode(errors="replace")
    if code == _MEMORY:
        raise MemoryError(message)
    if code == _REFUSED:
        raise NativeError(message)
    raise RuntimeError(f"the native library failed: {message}")


def _path() -> Path:
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return Path(named)
    ending = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    # an editable install keeps what is compiled in a folder of its own, which is on the package's path, too
    name = f"libepicortex_native{ending}"
    found = [
        path for folder in sys.modules[str(__package__)].__path__ if (path := Path(folder) / name).is_file()
    ]
    if found:
        return max(found, key=lambda path: path.stat().st_mtime)  # a developer may have built another since
    raise NativeError(
        "the native library was not built when EpiCortex was installed (is there a C++17 compiler?)"
    )


def _declare(found: ctypes.CDLL) -> None:
    pointer = c_void_p
    signatures = {
        "epx_format": (c_int32, []),
        "epx_error": (c_char_p, []),
        "epx_instruction_sets": (c_char_p, []),
        "epx_create": (c_int32, [pointer, c_int64, c_char_p, POINTER(c_void_p)]),
        "epx_free": (None, [pointer]),
        "epx_parameters": (c_int64, [pointer]),
        "epx_state": (c_int64, [pointer]),
        "epx_outputs": (c_int64, [pointer]),
        "epx_workspace": (c_int64, [pointer]),
        "epx_step": (
            c_int32,
            [
                pointer,
                POINTER(BatchStructure),
                pointer,
                pointer,
                pointer,
                POINTER(OptimiserStructure),
                POINTER(c_double),
            ],
        ),
        "epx_times": (c_int64, [pointer, pointer]),
        "epx_score": (c_int32, [pointer, POINTER(BatchStructure), pointer, pointer, pointer, pointer]),
        "epx_losses": (
            c_int32,
            [c_char_p, c_int32, c_float, c_int64, c_int64, pointer, pointer, pointer, pointer],
        ),
        "epx_optimise": (c_int32, [c_char_p, c_int64, pointer, pointer, POINTER(OptimiserStructure)]),
        "epx_average": (c_int32, [c_char_p, c_int64, pointer, pointer, c_float]),
        "epx_balance": (c_int64, [pointer, pointer, pointer, c_int64, pointer, c_int64]),
        "epx_peak": (c_double, [c_char_p, c_int64]),
    }
    for name, (result, arguments) in signatures.items():
        if name == "epx_times" and not hasattr(found, name):  # a library built before it could tell
            continue
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
