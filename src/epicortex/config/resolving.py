"""From presets, files and options to one frozen config, and back to TOML.

Layers are laid over each other: a packaged preset, a person's file, single changes. What is wrong with any of
them becomes a `ConfigError` of one line that names the field, the value, what is allowed, and what was likely
meant. Files only name operators, engines and the like; nothing read here is imported or run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from epicortex.config import fields
from epicortex.config.ecosystem import EvolutionConfig
from epicortex.config.models import FORMAT_VERSION, MOVED, Config
from epicortex.config.reading import parse
from epicortex.errors import ConfigError
from epicortex.machine import available_cores
from epicortex.text import did_you_mean, one_line, shell

DEFAULT_PRESET: Final = "default"
#: A config is a page of text; whatever is larger is something else.
MAX_FILE_BYTES: Final = 1_000_000
#: The engines that a file may choose: they start no code but ours, and on this machine alone.
LOCAL_ENGINES: Final = ("serial", "processes")
_MOST_PER_CORE: Final = 4
_TARGET: Final = "evolution.target"
#: What else a file may hold at its top: the preset it changes, and what a run notes about itself.
_BASE, _FORMAT, _NOTES = "preset", "format", "run"

Layer: TypeAlias = dict[str, dict[str, Any]]
"""Values by section and field; the section of settings that have none is empty."""


@dataclass(slots=True)
class _Layers:
    """Raw values by section and field, and who said what."""

    values: Layer = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def lay(self, layer: Layer, origin: str) -> None:
        evolution = layer.get("evolution", {})
        if "generations" in evolution and "minutes" not in evolution:
            # Whoever counts generations does not want a preset's minutes to count.
            layer = {**layer, "evolution": {"minutes": None, **evolution}}
        training = layer.get("training", {})
        known = self.values.get("training", {}).get("optimiser")
        if training.get("optimiser", known) != known:
            # Another optimiser does not take a preset's arguments, and has nothing to inherit.
            own = {"optimiser_arguments": {}, "optimiser_state": "fresh"}
            layer = {**layer, "training": {**own, **training}}
        for section, changes in layer.items():
            self.values.setdefault(section, {}).update(changes)
            named = {fields.dotted(section, name): origin for name in changes}
            self.origins.update({section: origin} | named if section else named)

    def config(self, called: Mapping[str, str]) -> Config:
        try:
            config = _validated(self.values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"][:2])
            line = self._line(name, first, called.get(name))
            # A conflict between two fields of a section is of no single origin.
            origin = None if first["type"] == "value_error" else self.origins.get(name)
            raise ConfigError(f"{origin}: {line}" if origin else line) from None
        self._check_target(config, called.get(_TARGET))
        return config

    def _check_target(self, config: Config, option: str | None) -> None:
        """An accuracy is a fraction; a reward may be anything."""
        target = config.evolution.target
        if target is None or not config.is_accuracy or 0 < target <= 1:
            return
        name = f"{_TARGET} ({option})" if option else _TARGET
        given = fields.shown(self.values["evolution"]["target"])
        line = f"{name} is {given}; it must be a number above 0 and at most 1, or {fields.NONE}"
        origin = self.origins.get(_TARGET)
        raise ConfigError(f"{origin}: {line}" if origin else line)

    def _line(self, name: str, error: ErrorDetails, option: str | None) -> str:
        if error["type"] == "json_invalid":
            return "a setting holds text that is not valid Unicode"
        if error["type"] == "value_error":
            return f"{name}.{error['ctx']['error']}"
        setting = fields.settings().get(name)
        if setting is None:
            return _unknown(name, error["input"])
        value = self.values[setting.section][setting.field]
        advice = did_you_mean(str(value), map(str, get_args(setting.type)))
        called = f"{name} ({option})" if option else name
        return f"{called} is {fields.shown(value)}; it must be {setting.allowed}{advice}"


def preset_names() -> tuple[str, ...]:
    """The packaged presets.

    >>> preset_names()
    ('default', 'layered', 'paper', 'published', 'residual', 'task')
    """
    files = resources.files("epicortex.config").joinpath("presets").iterdir()
    return tuple(sorted(Path(file.name).stem for file in files if file.name.endswith(".toml")))


def resolve(
    preset: str | Path = DEFAULT_PRESET,
    changes: Mapping[str, object] | None = None,
    *,
    called: Mapping[str, str] | None = None,
) -> Config:
    """A config from a preset (a name, or a TOML file) and changes by dotted name.

    `called` says by which option a person set a field, where that is not its own name.

    >>> resolve("paper", {"evolution.max_networks": 32}).evolution.max_networks
    32
    """
    layers = _Layers()
    _lay_preset(layers, preset)
    _leave_to_person(layers, changes or {})
    layers.lay(fields.by_section(changes or {}), "")
    _follow(layers, changes or {})
    return layers.config(called or {})


def is_of_a_preset(config: Config, name: str) -> bool:
    """Whether a preset gives a setting this value: then perhaps nobody chose it.

    >>> is_of_a_preset(resolve("paper", {"training.batch_size": 77}), "training.batch_size")
    False
    """
    value = fields.value_of(config, name)
    return any(fields.value_of(resolve(preset), name) == value for preset in preset_names())


def of(given: Config | Mapping[str, Any] | None) -> Config:
    """A config, or the one of the preset `default` with changes: by dotted name, or section by section.

    >>> of({"evolution.seed": 7}) == of({"evolution": {"seed": 7}})
    True
    """
    if isinstance(given, Config):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(
            f"config is of the type {type(given).__name__}; it must be what epicortex.configure gives, or a "
            "dict of changes such as {'evolution.generations': 20}"
        )
    changes: dict[str, object] = {}
    for name, value in (given or {}).items():
        if isinstance(value, Mapping) and name in _section_names():
            changes |= {fields.dotted(name, own): item for own, item in value.items()}
        else:
            changes[name] = value
    return resolve(changes=changes)


def most_workers() -> int:
    """How many workers a file may ask for on this machine.

    >>> most_workers() >= 4
    True
    """
    return _MOST_PER_CORE * available_cores()


def changed(config: Config, /, **sections: Mapping[str, object]) -> Config:
    """The config with some fields changed, by section, checked anew; what is wrong raises `ConfigError`.

    >>> changed(Config(), evolution={"generations": 5}).evolution.generations
    5
    """
    layers = _Layers()
    layers.lay(_sections(config.model_dump(mode="json")), "")
    layers.lay({section: dict(changes) for section, changes in sections.items()}, "")
    return layers.config({})


def from_values(values: Mapping[str, Any]) -> Config:
    """The config that `Config.model_dump` gave, in this version or before; what is left out is the paper's.

    >>> from_values(Config().model_dump(mode="json")) == Config()
    True
    """
    layers = _Layers()
    layers.lay(_translated(_sections(values)), "")
    return layers.config({})


def loads(text: str, *, origin: str) -> Config:
    """The config that `dumps` wrote, in this version or before; every field left out is the paper's."""
    layers = _Layers()
    _lay_text(layers, text, origin, base="paper")
    return layers.config({})


def dumps(config: Config) -> str:
    """The config as TOML, with every field, so that later defaults change nothing.

    >>> loads(dumps(Config()), origin="config.toml") == Config()
    True
    """
    lines = []
    for section, values in _sections(config.model_dump()).items():
        heading = [f"[{section}]"] if section else []
        lines += [*heading, *(f"{name} = {toml(value)}" for name, value in values.items()), ""]
    return "\n".join(lines)


def _lay_preset(layers: _Layers, preset: str | Path) -> None:
    if str(preset) in preset_names():
        file = resources.files("epicortex.config").joinpath("presets", f"{preset}.toml")
        _lay_text(layers, file.read_text("utf-8"), f"preset {preset}", base=None)
        return
    path = Path(preset)
    if path.suffix != ".toml":
        raise ConfigError(_no_preset(str(preset)))
    _lay_text(layers, _read(path), str(preset), base=DEFAULT_PRESET)


def _leave_to_person(layers: _Layers, changes: Mapping[str, object]) -> None:
    """Refuse what a preset file may not decide, since it may come from anyone, unless a person decides it."""
    training, ray = (layers.values.get(section, {}) for section in ("training", "ray"))
    engine, address, workers = training.get("engine"), ray.get("address"), training.get("workers")
    if isinstance(engine, str) and engine not in LOCAL_ENGINES and "training.engine" not in changes:
        raise ConfigError(
            f"{layers.origins['training.engine']}: training.engine is {fields.shown(engine)}, which a file "
            f"cannot choose; give --engine {shell([one_line(engine)])} to use it"
        )
    if address is not None and changes.get("training.engine") == "ray" and "ray.address" not in changes:
        raise ConfigError(
            f"{layers.origins['ray.address']}: ray.address is {fields.shown(address)}; a file cannot join a "
            "cluster: give --ray.address to join it, or --ray.address none to train on this machine"
        )
    if type(workers) is int and workers > most_workers() and "training.workers" not in changes:
        raise ConfigError(
            f"{layers.origins['training.workers']}: training.workers is {workers}; a file may ask for "
            f"at most {most_workers()} on this machine: give --workers to use more"
        )


def _follow(layers: _Layers, changes: Mapping[str, object]) -> None:
    """Lower a preset's number of first species where a person asks for a smaller ecosystem."""
    sizes = ("evolution.max_networks", "evolution.initial_networks", "evolution.max_species")
    if "evolution.initial_species" in changes or not any(name in changes for name in sizes):
        return
    values = layers.values["evolution"]
    known = {name: fields.settings()[f"evolution.{name}"].default for name in EvolutionConfig.model_fields}
    now = {**known, **values}
    limits = (now["max_networks"], now["initial_networks"], now["max_species"], now["initial_species"])
    if all(type(limit) is int and limit >= 1 for limit in limits):
        most, networks, species, own = limits
        values["initial_species"] = min(own, species, networks, max(1, most // 2))


def _lay_text(layers: _Layers, text: str, origin: str, *, base: str | None) -> None:
    """Lay what a TOML text says over the preset it names, or over `base`."""
    data = parse(text, origin)
    named = data.pop(_BASE, base)
    version = data.pop(_FORMAT, FORMAT_VERSION)
    data.pop(_NOTES, None)
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise ConfigError(f"{origin}: format is {fields.shown(version)}; this version reads {FORMAT_VERSION}")
    if named is not None:
        if named not in preset_names():
            raise ConfigError(f"{origin}: {_no_preset(named)}")
        _lay_preset(layers, named)
    for name, values in data.items():
        known = Config.model_fields.get(name)
        if not isinstance(values, dict) and (known is None or name in _section_names()):
            raise ConfigError(f"{origin}: {_unknown(name, values)}")
    sections = _sections(data)
    layers.lay(_without_none(_translated(sections) if version == 1 else sections), origin)


def _section_names() -> frozenset[str]:
    return frozenset(setting.section for setting in fields.settings().values())


def _sections(values: Mapping[str, Any]) -> Layer:
    """What a file or a model holds, with the settings that stand in no section in a section without name."""
    single = {name: value for name, value in values.items() if not isinstance(value, dict)}
    sections = {name: dict(value) for name, value in values.items() if isinstance(value, dict)}
    return {"": single, **sections} if single else sections


def _translated(sections: Layer) -> Layer:
    """The settings of a run that format 1 was written for: what belongs to a part has moved there."""
    result = {section: dict(values) for section, values in sections.items()}
    for old, new in MOVED.items():
        (home, name), (section, field) = fields.split(old), fields.split(new)
        if name in result.get(home, {}):
            result.setdefault(section, {})[field] = result[home].pop(name)
    # Before there was a choice, all runs trained with torch.
    result.setdefault("training", {}).setdefault("backend", "torch")
    return result


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"preset {path} cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"preset {path} is larger than {MAX_FILE_BYTES} bytes; it cannot be a config")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"preset {path} is not UTF-8 text") from None


def _without_none(layer: Layer) -> Layer:
    """TOML has no null: `name = "none"` says it, where a field may be none."""
    known = fields.settings()

    def value(name: str, given: object) -> object:
        setting = known.get(name)
        return None if setting and setting.optional and given == fields.NONE else given

    return {
        section: {name: value(fields.dotted(section, name), given) for name, given in values.items()}
        for section, values in layer.items()
    }


def _validated(values: Layer) -> Config:
    # JSON in strict mode takes lists for tuples and whole numbers for floats, but no text for numbers.
    whole = {section: fields for section, fields in values.items() if section} | values.get("", {})
    return Config.model_validate_json(json.dumps(whole, default=_plain), strict=True)


def _plain(value: object) -> object:
    """Numbers of numpy and paths count as the plain values they stand for; anything else is for the model."""
    return value.item() if hasattr(value, "item") else str(value)


def _unknown(name: str, value: object) -> str:
    section, rest = fields.split(name)
    if not section:
        section, rest = rest, ""
    if section not in _section_names():
        names = sorted(filter(None, _section_names()))
        sections, advice = ", ".join(names), did_you_mean(section, names)
        return f"there is no section {fields.shown(section)}; the sections are {sections}{advice}"
    if not rest:
        return f"{section} is {fields.shown(value)}; it must be a section with settings in it"
    meant = fields.nearest_setting(name)
    advice = f"; did you mean {meant.name}, {meant.allowed}?" if meant else ""
    return f"there is no setting {name} (it is set to {fields.shown(value)}){advice}"


def _no_preset(name: object) -> str:
    names = preset_names()
    return (
        f"there is no preset {fields.shown(name)}; it must be one of {', '.join(names)}, "
        f"or a file that ends in .toml{did_you_mean(str(name), names)}"
    )


def toml(value: object) -> str:
    """A value as TOML writes it.

    >>> print(toml({"text": "π 😀", "list": [1, 2.5]}))
    {"text" = "π 😀", "list" = [1, 2.5]}
    """
    if value is None:
        return f'"{fields.NONE}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
