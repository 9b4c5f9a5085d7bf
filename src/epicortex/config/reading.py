"""TOML as far as a config goes: text to plain values, in a time that grows with its size and no faster.

The library takes hours for a few megabytes of nested keys, so nesting is looked at before it is parsed.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from epicortex.errors import ConfigError

_DEEPEST: Final = 16
#: What may hold dots and brackets that mean nothing: strings of all four kinds, and comments.
_OPAQUE: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)
_LONG_KEY: Final = re.compile(rf"(?:[\w-]\s*\.\s*[\w-]*){{{_DEEPEST}}}")


def parse(text: str, origin: str) -> dict[str, Any]:
    """What the text says; a `ConfigError` of one line where it is not TOML, or nested too deeply.

    >>> parse('[data]\\nsource = "a.b.c"', "mine.toml")
    {'data': {'source': 'a.b.c'}}
    >>> parse("a." * 50 + "a = 1", "mine.toml")
    Traceback (most recent call last):
    epicortex.errors.ConfigError: mine.toml is nested too deeply to be a config
    """
    if _is_deep(text):
        raise ConfigError(f"{origin} is nested too deeply to be a config")
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also a number too long to be read
        raise ConfigError(f"{origin} is not TOML: {error}") from None


def _is_deep(text: str) -> bool:
    bare = _OPAQUE.sub("s", text)
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", bare):
        depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST:
            return True
    return _LONG_KEY.search(bare) is not None
