"""Which picture file a sample of a data set came from: found by reading the files once more and comparing.

Only files of the classes asked for are read. A data set that is no folder of pictures has no such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from epicortex.data import DataOptions
from epicortex.data.loading import listed
from epicortex.data.scanning import scan
from epicortex.errors import DataError

if TYPE_CHECKING:
    from epicortex.champion.module import Classifier
    from epicortex.data import DataSet

#: More files than this are not read for a report.
MOST_FILES: Final = 20_000


def found(
    classifier: Classifier,
    data: DataSet,
    places: Iterable[int],
    source: str | None,
    options: DataOptions | None = None,
) -> Mapping[int, Path]:
    """The files of some test samples, by their places; those that cannot be told are left out.

    Where there are no classes, all files are read, as the `options` say which they are.
    """
    root = None if source is None else Path(source)
    if root is None or len(data.input_shape) != 3 or not root.is_dir():
        return {}
    try:
        listing = scan(root) if data.task == "classes" else listed(root, options or DataOptions())
    except (DataError, OSError):
        return {}
    wanted: dict[tuple[str, bytes], list[int]] = {}
    for place in places:
        own = data.classes[int(data.y_test[place])] if data.task == "classes" else ""
        key = (own, _bytes(data.x_test[place]))
        wanted.setdefault(key, []).append(place)
    classes = {name for name, _ in wanted}
    files = [(path, label) for path, label in listing.files.get("test") or listing.files["train"]]
    if data.task != "classes":
        files = [(path, "") for path, _ in files]
    # what lies in an archive has no file of its own to name
    mine = [(path, label) for path, label in files if label in classes and isinstance(path, Path)]
    if len(mine) > MOST_FILES:
        return {}
    origins: dict[int, Path] = {}
    for path, label in mine:
        try:
            key = (label, _bytes(classifier.read(path)[0]))
        except (DataError, OSError):
            continue
        for place in wanted.get(key, ()):
            origins.setdefault(place, path)
        if len(origins) == sum(map(len, wanted.values())):
            break
    return origins


def _bytes(sample: np.ndarray) -> bytes:
    return np.ascontiguousarray(sample, np.float32).tobytes()
