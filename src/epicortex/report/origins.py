"""Which picture file a sample of a data set came from: found by reading the files once more and comparing.

Only files of the classes asked for are read. A data set that is not made of picture files has no such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from epicortex.data import DataOptions
from epicortex.data.loading import listed
from epicortex.data.readers.archive import is_archive, unpacked
from epicortex.data.readers.labelled import from_labels
from epicortex.errors import DataError
from epicortex.report import pictures
from epicortex.text import one_line

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier
    from epicortex.data import DataSet
    from epicortex.data.scanning import Listing
    from epicortex.report.pictures import Picture

#: More files than this are not read for a report.
MOST_FILES: Final = 20_000
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Origin:
    """The file of a sample."""

    name: str
    """Its path below the folder of the data, or in the archive."""
    picture: Picture | None
    """As the file shows it; None where a browser could not."""


def found(
    classifier: Classifier,
    data: DataSet,
    places: Iterable[int],
    source: str | None,
    options: DataOptions | None = None,
) -> Mapping[int, Origin]:
    """The files of some test samples, by their places; those that cannot be told are left out.

    Where there are no classes, all files are read. The `options` say how the data was read.
    """
    if source is None or len(data.input_shape) != 3:
        return {}
    try:
        with _pictures(Path(source), options or DataOptions()) as listing:
            return {} if listing is None else _matched(classifier, data, places, listing)
    except (DataError, OSError):
        return {}


@contextmanager
def _pictures(source: Path, options: DataOptions) -> Iterator[Listing | None]:
    """The picture files that data was read from, as long as they are there."""
    if source.is_dir():
        yield listed(source, options)
    elif source.is_file() and is_archive(source):
        with unpacked(source, options, None) as folder:
            yield listed(folder, options)
    elif source.is_file() and source.suffix.lower() == ".csv":
        yield from_labels(source, options)
    else:
        yield None


def _matched(
    classifier: Classifier, data: DataSet, places: Iterable[int], listing: Listing
) -> Mapping[int, Origin]:
    """The files that give the very values of the samples."""
    wanted: dict[tuple[str, bytes], list[int]] = {}
    for place in places:
        own = data.classes[int(data.y_test[place])] if data.task == "classes" else ""
        wanted.setdefault((own, _bytes(data.x_test[place])), []).append(place)
    classes = {name for name, _ in wanted}
    files = listing.files.get("test") or listing.files["train"]
    if data.task != "classes":
        files = [(path, "") for path, _ in files]
    mine = [(path, label) for path, label in files if label in classes and isinstance(path, Path)]
    if len(mine) > MOST_FILES:
        return {}
    origins: dict[int, Origin] = {}
    for path, label in mine:
        try:
            key = (label, _bytes(classifier.read(path)[0]))
        except (DataError, OSError):
            continue
        if fresh := [place for place in wanted.get(key, ()) if place not in origins]:
            origin = Origin(one_line(listing.call(path), _LONGEST), pictures.photograph(path))
            origins.update(dict.fromkeys(fresh, origin))
        if len(origins) == sum(map(len, wanted.values())):
            break
    return origins


def _bytes(sample: np.ndarray) -> bytes:
    return np.ascontiguousarray(sample, np.float32).tobytes()
