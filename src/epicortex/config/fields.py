"""What each setting may hold, in words, and how text from a command line becomes its value.

All of it is read off the models in `config`, so a field added there is known here. Whether a value is
allowed is decided by the models alone.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from epicortex.config.models import Config
from epicortex.text import nearest

#: How a person writes that a setting has no value.
NONE: Final = "none"
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
_LONGEST_VALUE: Final = 60


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the config."""

    section: str
    """Empty for a setting of the config as a whole."""
    field: str
    type: Any
    """Its type, without None."""
    optional: bool
    """Whether it may be none."""
    default: Any
    description: str
    allowed: str
    """What it may hold, in words that follow "it must be"."""

    @property
    def name(self) -> str:
        """Its dotted name, as in files and messages."""
        return dotted(self.section, self.field)

    @property
    def option(self) -> str:
        """Its option on the command line."""
        return "--" + self.name.replace("_", "-")


@cache
def settings() -> Mapping[str, Setting]:
    """Every setting by its dotted name.

    >>> settings()["evolution.max_networks"].allowed
    'a whole number from 2 to 1000000'
    """
    found = []
    for name, field in Config.model_fields.items():
        section = _section(field)
        if section is None:
            found.append(_setting("", name, field))
        else:
            found += [_setting(name, own, inner) for own, inner in section.model_fields.items()]
    return {setting.name: setting for setting in found}


def dotted(section: str, field: str) -> str:
    """A setting's name as people write it.

    >>> dotted("evolution", "seed"), dotted("", "family")
    ('evolution.seed', 'family')
    """
    return f"{section}.{field}" if section else field


def split(name: str) -> tuple[str, str]:
    """The section and the field of a dotted name; the section is empty where it has none.

    >>> split("evolution.seed"), split("family")
    (('evolution', 'seed'), ('', 'family'))
    """
    section, dot, field = name.partition(".")
    return (section, field) if dot else ("", section)


def by_section(changes: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Changes by dotted name, section by section.

    >>> by_section({"evolution.seed": 2, "family": "layered"})
    {'evolution': {'seed': 2}, '': {'family': 'layered'}}
    """
    sections: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        section, field = split(name)
        sections.setdefault(section, {})[field] = value
    return sections


def nearest_setting(name: str) -> Setting | None:
    """The setting that a wrong dotted name most likely means.

    One of that name in another section, else one of a similar name in its own section, else in any.

    >>> nearest_setting("evolution.batch-size").name
    'training.batch_size'
    """
    section, rest = split(name.replace("-", "_"))
    own = {setting.field: setting for setting in settings().values() if setting.section == section}
    every = {setting.field: setting for setting in settings().values()}
    if rest in every and rest not in own:
        return every[rest]
    for known in (own, every):
        guess = nearest(rest, known)
        if guess:
            return known[guess]
    return None


def value_of(config: Config, name: str) -> Any:
    """A setting's value by its dotted name.

    >>> value_of(Config(), "evolution.max_networks")
    111
    """
    section, field = split(name)
    return getattr(getattr(config, section) if section else config, field)


def shown(value: object) -> str:
    """A value as one short piece of a line, whatever it holds.

    >>> shown("a\\nb"), shown(0.5), shown(None)
    ('"a\\\\nb"', '0.5', 'none')
    """
    if value is None:
        return NONE
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def from_text(setting: Setting, text: str) -> object:
    """The value that a person's text means; text that means none stays as it is, for the model to refuse.

    >>> from_text(settings()["evolution.target"], "97%")
    0.97
    >>> from_text(settings()["training.optimiser_arguments"], "lr=0.1,nesterov=true")
    {'lr': 0.1, 'nesterov': True}
    >>> from_text(settings()["training.optimiser_arguments"], '{"lr": 0.1, "betas": [0.9, 0.99]}')
    {'lr': 0.1, 'betas': [0.9, 0.99]}
    """
    if setting.optional and text.lower() == NONE:
        return None
    kind, origin = setting.type, get_origin(setting.type)
    if kind is bool or bool in get_args(kind):
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
    if kind is int or kind is float or _or_a_number(kind):
        return _number(text, float if kind is float else int)
    if origin is tuple:
        item, separators = _bare(get_args(kind)[0])[0], text
        if item is int:
            separators = text.replace("×", ",").replace("x", ",")
        parts = [part.strip() for part in separators.split(",")] if text else []
        return [_number(part, item) if item in (int, float) else part for part in parts]
    if origin is dict:
        return _pairs(text)
    return text


def _or_a_number(kind: Any) -> bool:
    """Whether a whole number is one of several things that a setting may be."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    return any(_bare(part)[0] is int for part in parts)


def _number(text: str, kind: type[int] | type[float]) -> object:
    try:
        if kind is float and text.endswith("%"):
            return round(float(text[:-1]) / 100, 12)
        return kind(text)
    except ValueError:
        return text


def _pairs(text: str) -> object:
    """`lr=0.1,nesterov=true`, or a JSON object."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            return text
        try:
            pairs[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            pairs[name.strip()] = value.strip()
    return pairs


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _setting(section: str, name: str, field: FieldInfo) -> Setting:
    kind, optional = _bare(field.annotation)
    extra = field.json_schema_extra
    words = extra.get("allowed") if isinstance(extra, dict) else None
    allowed = str(words) if words else _words(kind, field.metadata)
    return Setting(
        section=section,
        field=name,
        type=kind,
        optional=optional,
        default=field.get_default(call_default_factory=True),
        description=field.description or "",
        allowed=f"{allowed}, or {NONE}" if optional else allowed,
    )


def _bare(annotation: Any) -> tuple[Any, bool]:
    """A type without None and without its limits, and whether None was there."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        if len(parts) < len(get_args(annotation)):
            return _bare(parts[0])[0], True
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0], False
    return annotation, False


def _words(kind: Any, limits: Iterable[Any]) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if kind is int or kind is float:
        return ("a whole number" if kind is int else "a number") + _range(limits)
    if origin is tuple:
        items = get_args(kind)
        if Ellipsis in items:
            return "names, with commas between"
        inner = [info for item in items[:1] for info in getattr(item, "__metadata__", ())]
        of = {key: value for info in inner for key, value in _limits(_metadata(info)).items()}
        return f"{len(items)} whole numbers{_range_words(of)}, such as 28,28"
    if origin is dict:
        return "pairs of name and value, such as lr=0.1,momentum=0.9, or a JSON object"
    other = [word for part in get_args(kind) for word in get_args(part)] if bool in get_args(kind) else []
    words = {bool: "true or false"}.get(kind, "text")
    return f"true, false or {', '.join(other)}" if other else words


def _metadata(info: Any) -> Iterable[Any]:
    return info.metadata if isinstance(info, FieldInfo) else (info,)


def _limits(limits: Iterable[Any]) -> dict[str, Any]:
    kinds = ("ge", "gt", "le", "lt")
    return {kind: getattr(limit, kind) for limit in limits for kind in kinds if hasattr(limit, kind)}


def _range(limits: Iterable[Any]) -> str:
    return _range_words(_limits(limits))


def _range_words(limits: Mapping[str, Any]) -> str:
    if {"ge", "le"} <= set(limits):
        return f" from {limits['ge']} to {limits['le']}"
    words = {"ge": "of at least", "gt": "above", "le": "at most", "lt": "below"}
    parts = [f"{words[kind]} {limits[kind]}" for kind in words if kind in limits]
    return " " + " and ".join(parts) if parts else ""
