"""`load`: from whatever a person names to a prepared, cached `DataSet`."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from epicortex.data.catalog import BUILT_INS
from epicortex.data.dataset import FORMAT, DataSet
from epicortex.data.options import DataOptions, Progress
from epicortex.data.places import cache_dir, cache_path
from epicortex.data.places import data_dir as _data_dir
from epicortex.data.readers.archive import ARCHIVES, is_archive, unpacked
from epicortex.data.readers.arrays import from_arrays, from_torch, is_torch_dataset
from epicortex.data.readers.builtin import BuiltIn, locate, missing_error, prepare
from epicortex.data.readers.folder import from_folder
from epicortex.data.readers.frames import NAME, is_frame, parted
from epicortex.data.readers.items import from_collections, is_collection
from epicortex.data.readers.labelled import from_labels, labels_beside, names_pictures
from epicortex.data.readers.npz import from_npz
from epicortex.data.readers.parquet import from_parquet
from epicortex.data.readers.table import from_csv
from epicortex.data.scanning import Listing, class_folders, scan
from epicortex.errors import DataError, UnwritableError

DEFAULTS = DataOptions()
_FILES: dict[str, Callable[..., DataSet]] = {".npz": from_npz, ".csv": from_csv, ".parquet": from_parquet}
#: Counts up when sources are read otherwise than before, so that no cache of before is taken.
_READING = 3
#: How much of the sources is read to tell that they are the same: some megabytes at most.
_SAMPLED_FILES = 64
_SAMPLED_BLOCKS = 8
_BLOCK = 1 << 14
_ORDER = ("x_train", "y_train", "x_test", "y_test")


def load(
    source: Any,
    *,
    data_dir: Path | None = None,
    options: DataOptions = DEFAULTS,
    progress: Progress | None = None,
) -> DataSet:
    """Prepare a data set from a built-in name, a path, arrays, a DataFrame, a torch `Dataset` or a `DataSet`.

    >>> load("digits").input_shape
    (1, 8, 8)
    """
    if isinstance(source, DataSet):
        return source
    folder = _data_dir(data_dir)
    if isinstance(source, str) and source in BUILT_INS:
        return load_built_in(BUILT_INS[source], folder)
    if isinstance(source, (str, Path)):
        return _load_path(Path(source), folder, options, progress)
    return _load_object(source, folder, options, progress)


def _load_path(path: Path, data: Path, options: DataOptions, progress: Progress | None) -> DataSet:
    """A folder of pictures, a table, an `.npz`, or a prepared data set."""
    try:
        path = path.expanduser()
        found = path.exists()
    except (OSError, RuntimeError) as error:
        # A folder that may not be looked into, a name too long, a ~user who does not exist.
        raise DataError(f"{str(path)!r:.200} cannot be looked up: {error!s:.200}") from None
    if not found:
        raise _unknown(str(path))
    if path.suffix == ".safetensors" and path.is_file():
        return DataSet.open(path, verify=True)
    sources, about, make = _plan(path, cache_dir(data), options, progress)
    # Threads change how fast pictures are read, not what is read.
    settings = replace(options, decode_workers=None)
    key = f"{path.resolve()} {settings}"
    return cached(data, path.resolve().name, key, fingerprint(sources, settings, *about), make)


def _plan(
    path: Path, spool: Path | None, options: DataOptions, progress: Progress | None
) -> tuple[list[Path], list[object], Callable[[], DataSet]]:
    """What a data set depends on, and how it is made."""
    if path.is_file() and is_archive(path):
        return [path], [], partial(_from_archive, path, options=options, spool=spool, progress=progress)
    found = None
    if path.is_dir():
        found = listed(path, options)
    elif path.is_file() and path.suffix.lower() == ".csv":
        found = from_labels(path, options)
    if found is not None:
        table = [path] if path.is_file() else [] if (csv := labels_beside(path)) is None else [csv]
        pictures = [one for one in found.paths() if isinstance(one, Path)]
        make = partial(from_folder, found, options=options, spool=spool, progress=progress)
        return [*pictures, *table], [path.absolute(), *found.notes], make
    if path.is_file() and path.suffix.lower() in _FILES:
        return [path], [], partial(_FILES[path.suffix.lower()], path, options=options)
    raise DataError(
        f"{path} is no data set: a folder of pictures, a zip or tar of one ({', '.join(ARCHIVES)}), or a "
        f"file ending in {', '.join(_FILES)} is needed"
    )


def listed(folder: Path, options: DataOptions) -> Listing:
    """The pictures of a folder: by a CSV file in it that names them, or by the folders they are in."""
    table = labels_beside(folder)
    asked = any((options.image_column, options.group_column, options.label_column))
    if table is not None and (asked or len(class_folders(folder)) < 2):
        found = from_labels(table, options)
        if found is not None:
            return replace(found, root=folder, name=folder.resolve().name)
    if (column := options.group_column or options.label_column) is not None:
        raise DataError(f"{folder} holds no CSV file that names pictures and has the column {column!r}")
    found = scan(folder, options.group_level)
    if table is not None and names_pictures(table, options):
        found.notes.append(
            f"{table.name} names pictures, too, but their folders are taken for their classes; "
            "--data.label-column says which column of it to take instead"
        )
    return found


def _from_archive(
    path: Path, *, options: DataOptions, spool: Path | None, progress: Progress | None
) -> DataSet:
    with unpacked(path, options, spool) as folder:
        found = replace(listed(folder, options), name=path.name.split(".")[0] or "archive")
        try:
            return from_folder(found, options=options, spool=spool, progress=progress)
        except DataError as error:
            raise DataError(str(error).replace(str(folder), str(path))) from None


def _load_object(source: Any, data: Path, options: DataOptions, progress: Progress | None) -> DataSet:
    """Arrays and DataFrames, which stay in memory, torch data sets, and other collections of pictures."""
    if is_frame(source):
        source = {"train": source}
    if (
        isinstance(source, Mapping)
        and source
        and all(map(is_frame, source.values()))
        and "x_train" not in source
    ):
        return from_arrays(parted(source, options), name=NAME.name, options=options)
    if (parts := _collections(source)) is not None:
        return from_collections(parts, options=options, spool=cache_dir(data), progress=progress)
    if is_torch_dataset(source):
        return from_torch(source, options=options, progress=progress)
    if isinstance(source, Mapping):
        return from_arrays(source, options=options)
    if isinstance(source, (tuple, list)):
        if len(source) == 2 and all(map(is_torch_dataset, source)):
            return from_torch(*source, options=options, progress=progress)
        if len(source) in (2, 4):
            return from_arrays(dict(zip(_ORDER, source, strict=False)), options=options)
    raise DataError(
        f"a data set cannot be made from {type(source).__name__}: give a built-in name, a path, (x, y), "
        "(x_train, y_train, x_test, y_test), a DataFrame, a torch Dataset or a Hugging Face dataset"
    )


def _collections(source: Any) -> Mapping[str, Any] | None:
    """The parts of data that is collections of pictures; None where it is something else."""
    if is_collection(source):
        return {"train": source}
    if isinstance(source, Mapping) and source and all(map(is_collection, source.values())):
        return source
    if isinstance(source, tuple | list) and len(source) == 2 and all(map(is_collection, source)):
        return {"train": source[0], "test": source[1]}
    return None


def load_built_in(spec: BuiltIn, data: Path) -> DataSet:
    """One of the built-in data sets, from its files below `data` or from the cache."""
    located = locate(spec, data)
    if located is None:
        raise missing_error(spec, data)
    print_ = fingerprint(located.paths)
    return cached(data, spec.name, f"built-in {spec.name}", print_, lambda: prepare(spec, located))


def fingerprint(paths: Iterable[Path], *about: object) -> str:
    """Tells whether sources are still those a cache was made from: names, inodes, sizes and times of change.

    Times can be set by anyone and inodes differ on some network drives, so a sample of contents counts, too.
    """
    files = list(paths)
    try:
        facts = [_facts(path) for path in files]
        sample = [_sampled(path) for path in files[:: max(1, len(files) // _SAMPLED_FILES)]]
    except OSError as error:
        raise DataError(f"{error.filename} cannot be read: {error.strerror}") from None
    everything = [FORMAT, _READING, facts, sample, [repr(item) for item in about]]
    return hashlib.sha256(json.dumps(everything).encode()).hexdigest()


def _facts(path: Path) -> tuple[str, int, int, int, int]:
    stat = path.stat()
    # Nobody can set the time at which a file's entry last changed.
    return str(path.absolute()), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _sampled(path: Path) -> str:
    """A hash of some blocks of a file, evenly spaced, its first and last among them."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        step = max(1, (path.stat().st_size - _BLOCK) // (_SAMPLED_BLOCKS - 1))
        for number in range(_SAMPLED_BLOCKS):
            stream.seek(number * step)
            digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


def cached(data: Path, name: str, key: str, print_: str, make: Callable[[], DataSet]) -> DataSet:
    """The data set from the cache, made anew if it is not there, stale or damaged."""
    folder = cache_dir(data)
    if folder is None:
        return make().with_notes("no folder for the cache can be written to: the data is kept in memory")
    path = cache_path(folder, name, key)
    if path.exists():
        # One that is stale or damaged is replaced below, in one step, since others may still map it.
        with suppress(DataError):
            return DataSet.open(path, fingerprint=print_, verify=True)
    made = make()
    try:
        return made.save(path, fingerprint=print_)
    except UnwritableError as error:
        return made.with_notes(f"there is no cache, and the data is kept in memory: {error}")


def _unknown(source: str) -> DataError:
    near = difflib.get_close_matches(source.lower().replace("_", "-"), BUILT_INS, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return DataError(
        f"there is no data set or file {source!r:.200}{hint}; built in are {', '.join(BUILT_INS)}"
    )
