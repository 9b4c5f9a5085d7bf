"""The command that repeats a run with the same config, and every setting that was in force."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from epicortex.config import Config, fields
from epicortex.config import resolving as settings

_SOURCE: Final = "data.source"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting in the table of settings."""

    name: str
    value: str
    description: str
    changed: bool
    """Whether it differs from the preset that the command names."""


def nearest_preset(config: Config) -> str:
    """The preset from which the fewest settings differ."""
    return min(settings.preset_names(), key=lambda name: len(list(_differences(config, name))))


def evolve_command(config: Config, out: str) -> str:
    """A command line that gives this very config.

    >>> config = settings.resolve("paper", {"evolution.seed": 7, "data.source": "mnist"})
    >>> print(evolve_command(config, "again"))
    epicortex evolve mnist \\
      --preset paper \\
      --evolution.seed 7 \\
      --out again
    """
    parts = [["epicortex", "evolve", config.data.source or "DATA"], *options(config), ["--out", out]]
    return " \\\n  ".join(map(shlex.join, parts))


def options(config: Config) -> list[list[str]]:
    """The options that give this config, but for its data set.

    >>> options(settings.resolve("paper", {"evolution.seed": 7}))
    [['--preset', 'paper'], ['--evolution.seed', '7']]
    """
    preset = nearest_preset(config)
    changed = _differences(config, preset)
    return [
        ["--preset", preset],
        *([fields.settings()[name].option, _text(fields.value_of(config, name))] for name in changed),
    ]


def setting_rows(config: Config) -> list[SettingRow]:
    """Every setting."""
    changed = set(_differences(config, nearest_preset(config)))
    return [
        SettingRow(name, _text(fields.value_of(config, name)), setting.description, name in changed)
        for name, setting in fields.settings().items()
    ]


def _differences(config: Config, preset: str) -> Iterator[str]:
    other = settings.resolve(preset)
    return (
        name
        for name in fields.settings()
        if name != _SOURCE and fields.value_of(config, name) != fields.value_of(other, name)
    )


def _text(value: Any) -> str:
    """A value as `fields.from_text` reads it."""
    if value is None:
        return fields.NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}={_text(item)}" for name, item in value.items())
    return str(value)
