"""What the `epicortex data` command does: list, check and get the built-in data sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epicortex.data.catalog import BUILT_INS
from epicortex.data.options import Progress
from epicortex.data.places import data_dir as _data_dir
from epicortex.data.readers.builtin import BuiltIn, Located, locate, missing, prepare
from epicortex.errors import DataError

State = Literal["present", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one built-in data set."""

    name: str
    summary: str
    state: State
    files: tuple[str, ...]
    """The files that are there; of a missing data set those that are not."""
    where: Path
    """The folder of the files, or the one they would be put in."""
    notes: tuple[str, ...] = ()
    """What was found amiss."""


def status(data_dir: Path | None = None) -> list[Status]:
    """All built-in data sets, by a look at the folders only; `check` reads the files.

    >>> [one.state for one in status() if one.name == "digits"]
    ['present']
    """
    folder = _data_dir(data_dir)
    return [_look(spec, folder) for spec in BUILT_INS.values()]


def check(name: str, *, data_dir: Path | None = None) -> Status:
    """Read all files of a data set and compare them with what is known of them."""
    spec, folder = built_in(name), _data_dir(data_dir)
    found = _look(spec, folder)
    located = locate(spec, folder)
    if located is None:
        return found
    try:
        data = prepare(spec, located)
    except DataError as error:
        return _present(spec, folder, located, "damaged", (str(error),))
    return _present(spec, folder, located, "present", data.notes)


def get(
    name: str,
    *,
    data_dir: Path | None = None,
    mirrors: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Status:
    """Fetch what is not there or damaged, then check it.

    `mirrors` (else EPICORTEX_MIRROR) are addresses below which NAME/FILE lies, used instead of the known.
    """
    from epicortex.data.download import download

    spec, folder = built_in(name), _data_dir(data_dir)
    found = check(name, data_dir=folder)
    if found.state == "present":
        return found
    if found.state == "damaged" and found.where != folder / spec.folder:
        # A good copy elsewhere would never be used, since this one is found first.
        raise DataError(f"{found.notes[0]}; move {found.where} away, then try again")
    bases = list(mirrors) if mirrors is not None else os.environ.get("EPICORTEX_MIRROR", "").split()
    for remote in spec.remotes:
        addresses = [f"{base.rstrip('/')}/{spec.folder}/{remote.name}" for base in bases]
        download(remote, folder / spec.folder, mirrors=addresses or None, progress=progress)
    found = check(name, data_dir=folder)
    if found.state != "present":
        raise DataError(f"{name} was fetched but is {found.state}: {'; '.join(found.notes or found.files)}")
    return found


def built_in(name: str) -> BuiltIn:
    """The built-in data set of this name."""
    if name not in BUILT_INS:
        raise DataError(f"there is no built-in data set {name!r}; there are {', '.join(BUILT_INS)}")
    return BUILT_INS[name]


def _look(spec: BuiltIn, folder: Path) -> Status:
    located = locate(spec, folder)
    if located is None:
        files, _ = missing(spec, folder)
        return Status(spec.name, spec.summary, "missing", files, folder / spec.folder)
    return _present(spec, folder, located, "present", ())


def _present(spec: BuiltIn, folder: Path, located: Located, state: State, notes: tuple[str, ...]) -> Status:
    where = located.paths[0].parent if located.paths else folder
    return Status(spec.name, spec.summary, state, tuple(path.name for path in located.paths), where, notes)
