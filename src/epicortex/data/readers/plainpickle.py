"""Reads the plain data in a pickle without unpickling: a tiny interpreter that knows no function to call.

It understands containers, numbers, text and numpy arrays of bytes, which is what CIFAR's python batches hold.
Names in the file are compared with a short list and never looked up; anything else is a `DataError`. The
standard library takes a pickle apart; nothing there, or elsewhere, reads one without calling what it names.
"""

from __future__ import annotations

import math
import pickletools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from epicortex.errors import DataError

_NAMES = {
    "numpy.core.multiarray _reconstruct": "reconstruct",
    "numpy._core.multiarray _reconstruct": "reconstruct",
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "INT", "LONG1", "BINFLOAT"),
        *("BINSTRING", "SHORT_BINSTRING", "STRING", "BINUNICODE", "SHORT_BINUNICODE", "UNICODE"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    )
)
_IGNORED = frozenset(("PROTO", "FRAME", "STOP"))
_MARK = object()
_MAX_STEPS = 1_000_000
"""An official batch has about 60,000; each step can cost memory."""


@dataclass(slots=True)
class _Name:
    """A name that the file mentions, as a mere word."""

    word: str


@dataclass(slots=True)
class _Array:
    """An array under construction."""

    value: np.ndarray | None = None


@dataclass(slots=True)
class _DType:
    code: str


def read_pickle(data: bytes, path: Path) -> Any:
    """The value that the pickle `data` describes; `path` is only named in errors."""
    machine = _Machine(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of strange escapes in a text
            for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
                if count > _MAX_STEPS:
                    machine.refuse(f"more than {_MAX_STEPS} instructions")
                machine.step(opcode.name, argument)
    except (ValueError, IndexError, OverflowError):
        raise DataError(f"{path} is damaged: it is not a whole pickle") from None
    if len(machine.stack) != 1:
        machine.refuse("a stack that does not end with one value")
    return machine.finish(machine.stack[0])


class _Machine:
    """The stack and the memo, and one small step an opcode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def refuse(self, what: str) -> NoReturn:
        raise DataError(f"{self.path} is refused: a pickle with {what:.80}, which plain data never has")

    def finish(self, value: Any) -> Any:
        """Replace finished arrays, one level deep: that is where a batch has them."""
        if isinstance(value, dict):
            return {
                key: self.finish(item) if isinstance(item, _Array) else item for key, item in value.items()
            }
        if isinstance(value, _Array):
            if value.value is None:
                self.refuse("an array without content")
            return value.value
        return value

    def step(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name.startswith("EMPTY_"):
            self.empty(name)
        elif name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS") or name.startswith("TUPLE"):
            self.fill(name)
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = self.top()
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            if argument not in self.memo:
                self.refuse("a reference to nothing")
            self.stack.append(self.memo[argument])
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self.name(argument if name == "GLOBAL" else (self.pop(), self.pop()))
        elif name == "REDUCE":
            self.reduce()
        elif name == "BUILD":
            self.build()
        elif name not in _IGNORED:
            self.refuse(f"the instruction {name}")

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            self.refuse("an empty stack")
        return self.stack[-1]

    def pop(self) -> Any:
        value = self.top()
        self.stack.pop()
        return value

    def since_mark(self) -> list[Any]:
        index = len(self.stack) - 1
        while index >= 0 and self.stack[index] is not _MARK:
            index -= 1
        if index < 0:
            self.refuse("a missing mark")
        values = self.stack[index + 1 :]
        del self.stack[index:]
        return values

    def empty(self, name: str) -> None:
        made: dict[str, Any] = {"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}
        if name not in made:
            self.refuse(f"the instruction {name}")
        self.stack.append(made[name])

    def fill(self, name: str) -> None:
        if name.startswith("TUPLE"):
            count = name.removeprefix("TUPLE")
            values = self.since_mark() if not count else [self.pop() for _ in range(int(count))][::-1]
            self.stack.append(tuple(values))
            return
        if name.endswith("S"):
            values = self.since_mark()
        else:
            values = [self.pop() for _ in range(1 if name == "APPEND" else 2)][::-1]
        target = self.top()
        if name.startswith("APPEND"):
            if not isinstance(target, list):
                self.refuse("something appended to no list")
            target.extend(values)
            return
        keys, items = values[::2], values[1::2]
        if not isinstance(target, dict) or not all(isinstance(key, (str, bytes)) for key in keys):
            self.refuse("a table whose keys are not text")
        if len(keys) != len(items):
            self.refuse("a key without a value")
        target.update(zip(keys, items, strict=True))

    def name(self, words: str | tuple[Any, Any]) -> None:
        if isinstance(words, tuple):
            # What is not text is not shown: a few bytes can describe a list too large to print.
            words = " ".join(word if isinstance(word, str) else "?" for word in reversed(words))
        if words not in _NAMES:
            self.refuse(f"the name {words!r}")
        self.stack.append(_Name(_NAMES[words]))

    def reduce(self) -> None:
        arguments, function = self.pop(), self.pop()
        match function, arguments:
            case _Name("reconstruct"), (_Name("ndarray"), *_):
                self.stack.append(_Array())
            case _Name("dtype"), (str(code), *_):
                self.stack.append(_DType(code))
            case _Name("encode"), (str(text), "latin1"):
                # How Python 3 writes bytes for readers of Python 2.
                self.stack.append(text.encode("latin1"))
            case _:
                self.refuse("a call")

    def build(self) -> None:
        state, target = self.pop(), self.top()
        match target, state:
            case _DType(), tuple():
                return
            case _Array(value=None), (int(), tuple(shape), _DType("u1"), False | 0, str() | bytes() as raw):
                sizes = [n for n in shape if type(n) is int and 0 <= n <= len(raw)]
                if len(sizes) != len(shape) or not 1 <= len(shape) <= 4 or math.prod(sizes) != len(raw):
                    self.refuse("an array whose shape does not match its length")
                content = raw.encode("latin1") if isinstance(raw, str) else raw
                target.value = np.frombuffer(content, np.uint8).reshape(sizes)
            case _:
                self.refuse("an array of anything but bytes")
