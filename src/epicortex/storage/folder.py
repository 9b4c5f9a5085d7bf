"""A run's folder: its config.toml, its lock, and where everything else in it is kept.

config.toml is written first and holds the resolved config and what the run depends on, so that a run can be
resumed from it alone. What the other files hold is left to the modules beside this one.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from epicortex.config import FORMAT_VERSION, Config
from epicortex.config import resolving as settings
from epicortex.config.reading import parse
from epicortex.errors import ConfigError, StorageError
from epicortex.families.family import Arrays, Family
from epicortex.storage import atomic, codec, key, strict, tensors
from epicortex.storage.lock import NAME as LOCK
from epicortex.storage.lock import Lock
from epicortex.text import shell
from epicortex.versions import versions

_CONFIG: Final = "config.toml"
_ANCESTOR: Final = "ancestor.safetensors"
_FOLDERS: Final = ("checkpoints", "champion", "tensorboard")
#: Paths have an end (4096 bytes on Linux, 1024 elsewhere), and the files of a run need some of it.
_LONGEST_PATH: Final = (4096 if sys.platform == "linux" else 1024) - 128
_MAX_CONFIG: Final = 4_000_000
_SEAL: Final = re.compile(rb"(.*\n)# sha256 ([0-9a-f]{64})\n", re.DOTALL)
_SIGNED: Final = re.compile(rb"(.*\n)# by ([0-9a-f]{64})\n# sha256 [0-9a-f]{64}\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run notes about itself in config.toml, besides its settings."""

    id: str
    """Drawn once; checkpoints and journals carry it, so that no other run's are taken for its own."""
    epicortex: str
    python: str
    torch: str
    numpy: str
    started: str
    """Date and time, UTC."""
    command: str
    """The command line that began the run; empty from Python."""
    data: str
    """The name of the data set."""
    data_digest: str
    ancestor: bool = False
    """Whether it began with a network of another run, which is kept in ancestor.safetensors."""

    @classmethod
    def now(cls, *, data: str, data_digest: str, command: str = "") -> RunInfo:
        """What a run that begins now has to note."""
        known = versions()
        return cls(
            id=uuid.uuid4().hex,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            command=command,
            data=data,
            data_digest=data_digest,
            epicortex=known["epicortex"],
            python=known["python"],
            torch=known["torch"],
            numpy=known["numpy"],
        )


class RunFolder:
    """A run folder that this process has locked. `create` makes one, `open` goes on with one."""

    def __init__(self, path: Path, lock: Lock, config: Config, info: RunInfo) -> None:
        self.path = path
        self.config = config
        self.info = info
        self._lock = lock

    @classmethod
    def create(
        cls, path: Path, config: Config, info: RunInfo, *, ancestor: tuple[Any, Arrays] | None = None
    ) -> RunFolder:
        """A new run folder. One that holds a run, or anything that is not ours, is refused.

        An ancestor is given as its family encodes it.
        """
        if len(os.fsencode(path.absolute())) > _LONGEST_PATH:
            raise StorageError(
                f"{path.name} is in too deep a folder: a run's files need room for their names"
            )
        atomic.refuse_link(path)
        with atomic.explained(path, "made"):
            path.mkdir(parents=True, exist_ok=True)
        lock = Lock(path)
        try:
            _refuse_occupied(path)
            if ancestor is not None:
                genome, arrays = ancestor
                pieces = tensors.serialise(arrays, {"genome": strict.dump(genome).decode()})
                atomic.replace_file(path / _ANCESTOR, pieces)
            _write_config(path, config, replace(info, ancestor=ancestor is not None))
            return cls._with_folders(path, lock)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a run that is to go on; what unfinished writes left in it is removed."""
        read_config(path)
        lock = Lock(path)
        try:
            return cls._with_folders(path, lock)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def _with_folders(cls, path: Path, lock: Lock) -> RunFolder:
        config, info = read_config(path)
        for name in _FOLDERS:
            atomic.make_folder(path / name)
        for folder in (path, path / "checkpoints", path / "champion"):
            atomic.sweep(folder)
        return cls(path, lock, config, info)

    def change(self, config: Config) -> None:
        """Go on with these settings from now on; the run is this user's own then, whoever began it."""
        if config != self.config or not is_own(self.path):
            _write_config(self.path, config, self.info)
            self.config = config

    def check(self) -> None:
        """Called before each generation is written: the folder is ours alone, and the run can be resumed."""
        self._lock.check()
        if not (self.path / _CONFIG).exists():
            _write_config(self.path, self.config, self.info)

    def ancestor(self, family: Family[Any]) -> Any | None:
        """The network that the run began with, where it did."""
        if not self.info.ancestor:
            return None
        path = self.path / _ANCESTOR
        arrays, texts = tensors.parse(atomic.read_file(path, limit=1 << 36), str(path))
        genome = strict.parse(strict.encoded(texts.get("genome", "")), str(path))
        return codec.restored(family, genome, arrays, str(path))

    def close(self) -> None:
        """Give the folder back."""
        self._lock.close()


def read_config(path: Path) -> tuple[Config, RunInfo]:
    """The settings of a run and what it notes about itself; a `StorageError` if this is no sound run."""
    atomic.refuse_link(path)
    file = path / _CONFIG
    if not path.is_dir():
        raise StorageError(f"{path} is not a run folder: there is no such folder")
    if not file.exists():
        raise StorageError(f"{path} is not a run folder: it has no {_CONFIG}")
    data = atomic.read_file(file, limit=_MAX_CONFIG)
    text, values = _unsealed(data, file)
    version = values.get("format")
    strict.check_format(version, 1 if version == 1 else FORMAT_VERSION, str(file))
    info = strict.build(RunInfo, values.get("run"), f"{file}, [run]")
    try:
        return settings.loads(text, origin=str(file)), info
    except ConfigError as error:
        raise StorageError(str(error)) from None


def is_own(path: Path) -> bool:
    """Whether this user's key sealed the config of a run, so that nobody else can have written it."""
    match = _SIGNED.fullmatch(atomic.read_file(path / _CONFIG, limit=_MAX_CONFIG))
    return match is not None and key.is_signed(match[1], match[2].decode())


def _unsealed(data: bytes, file: Path) -> tuple[str, dict[str, Any]]:
    """The text of a config.toml that is as it was written, and what TOML makes of it."""
    match = _SEAL.fullmatch(data)
    sound = match is not None and hashlib.sha256(match[1]).hexdigest().encode() == match[2]
    try:
        text = data.decode("utf-8")
        values = parse(text, str(file))
    except (UnicodeDecodeError, ConfigError):
        raise StorageError(f"{file} is damaged: it is not TOML") from None
    # A newer version may seal its files otherwise: its number is looked at first.
    version = values.get("format")
    if not sound and not (type(version) is int and version > FORMAT_VERSION):
        raise StorageError(
            f"{file} is not as it was written: it does not match its checksum. "
            "Undo the change; settings that may change are given to `epicortex resume`"
        )
    return text, values


def _write_config(path: Path, config: Config, info: RunInfo) -> None:
    notes = {name: settings.toml(_readable(value)) for name, value in asdict(info).items()}
    text = "\n".join(
        [
            "# A run of EpiCortex. To change a setting, give it to `epicortex resume`: this file is sealed.",
            f"format = {FORMAT_VERSION}",
            settings.dumps(config),
            "[run]",
            *(f"{name} = {value}" for name, value in notes.items()),
            "",
        ]
    ).encode()
    if (own := key.signature(text)) is not None:
        text += f"# by {own}\n".encode()
    seal = f"# sha256 {hashlib.sha256(text).hexdigest()}\n".encode()
    atomic.replace_file(path / _CONFIG, [text, seal])


def _readable(value: str | bool) -> str | bool:
    """Bytes of a command line that are no text become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _refuse_occupied(path: Path) -> None:
    with atomic.explained(path, "read"):
        names = {entry.name for entry in path.iterdir()}
    if _CONFIG in names:
        raise StorageError(
            f"{path} already holds a run; go on with `{shell(['epicortex', 'resume', str(path)])}`, "
            "or choose another folder"
        )
    foreign = {name for name in names if name not in (LOCK, _ANCESTOR) and not atomic.is_temporary(name)}
    if foreign:
        raise StorageError(f"{path} is not empty (it holds {min(foreign)}); choose another folder")
