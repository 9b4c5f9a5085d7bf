"""What a run's files may not decide by themselves, since they may come from anyone.

A setting given on the command line or in Python is a decision; the same setting in a file is a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from epicortex.config import Config, DataConfig
from epicortex.config import resolving as settings
from epicortex.config.fields import shown
from epicortex.config.resolving import LOCAL_ENGINES
from epicortex.data.catalog import BUILT_INS
from epicortex.errors import ConfigError
from epicortex.storage.folder import is_own
from epicortex.tasks import is_task
from epicortex.text import one_line, shell


def check_engine(config: Config, changes: Mapping[str, object]) -> None:
    """Refuse an engine that reaches beyond this machine, or a cluster, that only the run's files name.

    The machines of a cluster can have this one run their code, and an engine may be anybody's package.
    """
    engine, address = config.training.engine, config.ray.address
    if engine not in LOCAL_ENGINES and "training.engine" not in changes:
        engine = one_line(engine)
        raise ConfigError(
            f"this run trained with the engine {engine}, which a file cannot choose; give "
            f"--engine {shell([engine])} again, or --engine processes to train on this machine"
        )
    if engine == "ray" and address is not None and "ray.address" not in changes:
        raise ConfigError(
            f"this run trained on the cluster {one_line(address)}; give --ray.address again to join it, "
            "or --engine processes to train on this machine"
        )


def check_files(folder: Path, config: Config, decided: Collection[str], *, trust: bool = False) -> None:
    """Refuse a run of somebody else whose files say where to read, or lift a limit, that nobody decided.

    `decided` are the settings that a person gave; `trust` is a decision about all of them.
    """
    if trust or is_own(folder):
        return
    asked = {name: value for name, value in _asked(config.data).items() if name not in decided}
    if asked:
        what = ", ".join(f"{name} = {shown(value)}" for name, value in asked.items())
        raise ConfigError(
            f"{folder} was sealed by somebody else, and its files ask for {what}; give --trust to allow it"
        )


def _asked(data: DataConfig) -> dict[str, object]:
    """Paths of the sender's choice, and limits above the usual."""
    plain = DataConfig()
    asked: dict[str, object] = {}
    if data.source is not None and data.source not in BUILT_INS and not is_task(data.source):
        asked["data.source"] = data.source
    if data.directory is not None:
        asked["data.directory"] = data.directory
    for name in ("max_pixels", "max_bytes"):
        if getattr(data, name) > getattr(plain, name):
            asked[f"data.{name}"] = getattr(data, name)
    return asked


def consented(config: Config, changes: Mapping[str, object], note: Callable[[str], None]) -> Config:
    """The config that the engine of a resumed run is made with; far too many workers become one a core."""
    check_engine(config, changes)
    asked = config.training.workers
    if config.training.engine != "processes" or "training.workers" in changes:
        return config
    if asked is None or asked <= settings.most_workers():
        return config
    note(f"the run had {asked} workers, too many for this machine: one a core is used (--workers sets it)")
    return settings.changed(config, training={"workers": None})


def resume_command(folder: Path, config: Config, plugins: Iterable[Path] = ()) -> str:
    """The command that goes on with a run, with every decision that its files cannot make.

    >>> resume_command(Path("my run"), Config())
    "epicortex resume 'my run'"
    """
    words = ["epicortex", "resume", str(folder)]
    if config.training.engine not in LOCAL_ENGINES:
        words += ["--engine", config.training.engine]
    if config.training.engine == "ray" and config.ray.address is not None:
        words += ["--ray.address", config.ray.address]
    for plugin in plugins:
        words += ["--plugin", str(plugin)]
    return shell(words)
