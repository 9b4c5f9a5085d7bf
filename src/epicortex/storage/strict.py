"""From JSON to frozen dataclasses and back, trusting nothing.

JSON is read within bounds of size, depth and count; a dataclass is built only from values of exactly the
types that it declares. Floats keep every bit: they are written as the shortest text that reads back the same.
Not pydantic: it sets no bound on how many values there are, and ignores unknown fields of plain dataclasses.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, TypeVar

from epicortex.errors import StorageError

T = TypeVar("T")

MAX_ITEMS: Final = 20_000_000
_MAX_WHOLE: Final = 2**63
_MAX_TEXT: Final = 1_000_000


def parse(text: bytes, where: str, *, max_items: int = MAX_ITEMS) -> Any:
    """Read JSON; what is damaged, too deep or has too many values is a `StorageError`.

    >>> parse(b'{"a": [1, 2.5]}', "here")
    {'a': [1, 2.5]}
    """
    # Counted before parsing: a small file of brackets would become gigabytes of lists.
    if text.count(b",") + text.count(b"[") + text.count(b"{") > max_items:
        raise StorageError(f"{where} holds more than {max_items} values; this was not written by EpiCortex")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise StorageError(f"{where} is nested too deeply; this was not written by EpiCortex") from None
    except ValueError as error:
        raise StorageError(f"{where} is damaged: it is not JSON ({str(error)[:100]})") from None


def dump(value: Any) -> bytes:
    """The one way that JSON is written in our files: compact, ASCII, in the order given, never NaN."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def encoded(text: str) -> bytes:
    """Text that a file holds, as bytes again, whatever it holds: half a surrogate pair is no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def sealed(value: dict[str, Any]) -> bytes:
    """JSON that carries its own checksum, for `unseal`."""
    return dump({**value, "sha256": hashlib.sha256(dump(value)).hexdigest()}) + b"\n"


def unseal(text: bytes, where: str) -> dict[str, Any]:
    """What `sealed` was given; a text in which anything changed is a `StorageError`."""
    value = parse(text, where)
    try:
        sound = isinstance(value, dict) and sealed({k: v for k, v in value.items() if k != "sha256"}) == text
    except ValueError:  # a number that is infinite, which is never written
        sound = False
    if not sound:
        raise StorageError(f"{where} is damaged: it does not match its checksum")
    del value["sha256"]
    return dict(value)


def check_format(value: Any, expected: int, where: str) -> None:
    """Refuse a format that this version does not read, and say so if it is a newer one."""
    if type(value) is not int or value != expected:
        newer = type(value) is int and value > expected
        advice = "a newer EpiCortex wrote it and can read it" if newer else "it is damaged or not ours"
        raise StorageError(f"{where} has the format {short(value)}, this version reads {expected}: {advice}")


def plain(value: Any, *, leave_out: frozenset[str] = frozenset()) -> Any:
    """A dataclass as plain JSON values; `leave_out` names fields of its own that are not wanted."""
    if is_dataclass(value):
        names = (field.name for field in fields(value))
        return {name: plain(getattr(value, name)) for name in names if name not in leave_out}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def build(kind: Callable[..., T], value: Any, where: str, *, given: Mapping[str, Any] | None = None) -> T:
    """A dataclass from plain JSON values: exactly its fields, exactly their types.

    Fields in `given` come from there instead. A field that has a default may be missing, so that files of an
    earlier version can be read; an unknown one is refused.
    """
    given = given or {}
    if not isinstance(value, dict):
        raise StorageError(f"{where} must be an object, not {short(value)}")
    hints = _hints(kind)
    if unknown := set(value) - set(hints):
        raise StorageError(f"{where} has an unknown field {short(min(unknown))}")
    arguments = dict(given)
    for field in _fields(kind):
        if field.name in arguments:
            continue
        if field.name in value:
            arguments[field.name] = _checked(hints[field.name], value[field.name], f"{where}, {field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise StorageError(f"{where} lacks the field {field.name}")
    return kind(**arguments)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _fields(kind: Any) -> tuple[Field[Any], ...]:
    return fields(kind)


def _checked(hint: Any, value: Any, where: str) -> Any:
    """The value, if it is of the declared type; lists become tuples and objects dataclasses."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return _checked(hint, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise StorageError(f"{where} must be a list, not {short(value)}")
        return tuple(_checked(arguments[0], item, where) for item in value)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise StorageError(f"{where} must be an object, not {short(value)}")
        return {name: _checked(arguments[1], item, f"{where}, {name[:40]}") for name, item in value.items()}
    if origin is Literal:
        right = isinstance(value, str) and value in arguments
    elif is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, where)
    else:
        right = _SCALARS[hint](value)
    if not right:
        raise StorageError(f"{where} cannot be {short(value)}")
    return float(value) if hint is float else value


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) < _MAX_WHOLE


_SCALARS: Final[dict[Any, Callable[[Any], bool]]] = {
    bool: lambda value: isinstance(value, bool),
    int: _is_whole,
    float: lambda value: _is_whole(value) or (isinstance(value, float) and math.isfinite(value)),
    str: lambda value: isinstance(value, str) and len(value) <= _MAX_TEXT,
}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def short(value: Any) -> str:
    """A value as a message may quote it: in one line, in ASCII, and not long."""
    text = json.dumps(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."
