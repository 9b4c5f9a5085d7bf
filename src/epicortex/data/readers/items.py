"""Collections of pictures in Python: Hugging Face `datasets` and data sets like torchvision's.

They are known by what they can do, not by their type; neither library is imported. Their pictures are
prepared like those in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from epicortex.data.dataset import DataSet
from epicortex.data.options import DataOptions, Progress
from epicortex.data.readers.folder import from_folder
from epicortex.data.readers.pictures import Item
from epicortex.data.readers.table import LABEL_NAMES
from epicortex.data.scanning import SPLITS, Listing
from epicortex.data.values import label_kind
from epicortex.data.wording import column_names, listing, no_column, shown
from epicortex.errors import DataError

_IMAGES: Final = ("image", "img", "picture", "pixels", "images")


@dataclass(frozen=True, slots=True)
class _Collection:
    """One part of the data: how to get a picture by its number, and all labels."""

    picture: Callable[[int], Any]
    labels: Sequence[Any]
    classes: Sequence[str] | None


def is_table_of_columns(source: object) -> bool:
    """Whether an object is a data set as of Hugging Face: rows with named columns, of known kinds."""
    return all(hasattr(source, name) for name in ("features", "column_names", "__getitem__", "__len__"))


def holds_pictures(source: object) -> bool:
    """Whether an object gives pairs of a Pillow image and a label, as data sets of torchvision do."""
    if isinstance(source, str | bytes | Mapping | list | tuple | np.ndarray):
        return False
    if not (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        return False
    try:
        first = source[0]
    except Exception:
        return False
    return isinstance(first, tuple | list) and len(first) == 2 and _is_image(first[0])


def is_collection(source: object) -> bool:
    """Whether this module can make a data set of an object."""
    return is_table_of_columns(source) or holds_pictures(source)


def from_collections(
    parts: Mapping[str, Any], *, options: DataOptions, spool: Path | None, progress: Progress | None = None
) -> DataSet:
    """Make a data set of collections by the names of their parts, such as train, validation and test."""
    called = {name: SPLITS.get(str(name).lower()) for name in parts}
    strange = [name for name, part in called.items() if part is None]
    if strange or "train" not in called.values():
        raise DataError(
            f"the parts are {listing(list(parts))}; train is needed, and validation and test can be"
        )
    found = Listing(Path(), name=type(next(iter(parts.values()))).__name__)
    for name, source in parts.items():
        if not is_collection(source):
            raise DataError(f"the part {shown(name)} is {type(source).__name__}, which holds no pictures")
        one = _columns(source, options) if is_table_of_columns(source) else _pairs(source)
        found.kind = "text" if one.classes else label_kind(np.asarray(one.labels))
        found.files[str(called[name])] = [
            (Item(f"{name}[{number}]", partial(one.picture, number)), _name(label, one.classes))
            for number, label in enumerate(one.labels)
        ]
    if found.kind != "text":
        found.settle(options.task, [options.label_column or "target"])
    # A collection need not bear being asked by several threads at once.
    return from_folder(found, options=replace(options, decode_workers=1), spool=spool, progress=progress)


def _columns(source: Any, options: DataOptions) -> _Collection:
    image = _image_column(source, options)
    label = _label_column(source, image, options)
    names = getattr(source.features[label], "names", None)
    return _Collection(
        lambda number: _image(source[number][image]), list(source[label]), list(names) if names else None
    )


def _image_column(source: Any, options: DataOptions) -> str:
    names: list[str] = list(source.column_names)
    if options.image_column is not None:
        return _known(options.image_column, names)
    kinds = {name: type(source.features[name]).__name__ for name in names}
    found = [name for name in names if kinds[name] == "Image"] or [n for n in names if n.lower() in _IMAGES]
    if not found:
        raise DataError(f"which column holds pictures? set data.image_column to one of {column_names(names)}")
    return found[0]


def _label_column(source: Any, image: str, options: DataOptions) -> str:
    names: list[str] = [name for name in source.column_names if name != image]
    if options.label_column is not None:
        return _known(options.label_column, names)
    found = [name for name in names if hasattr(source.features[name], "names")]
    found = (
        found or [name for name in names if name.lower() in LABEL_NAMES] or (names if len(names) == 1 else [])
    )
    if not found:
        raise DataError(f"which column is the class? set data.label_column to one of {column_names(names)}")
    return found[0]


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise DataError(no_column("the data", name, names))
    return name


def _pairs(source: Any) -> _Collection:
    targets = getattr(source, "targets", None)
    if targets is None or len(targets) != len(source):
        targets = [source[number][1] for number in range(len(source))]
    labels = [one.item() if hasattr(one, "item") else one for one in targets]
    classes = getattr(source, "classes", None)
    named = isinstance(classes, list | tuple) and all(isinstance(one, str) for one in classes)
    whole = all(isinstance(one, int) and 0 <= one < len(classes or ()) for one in labels)
    return _Collection(lambda number: _image(source[number][0]), labels, classes if named and whole else None)


def _name(label: Any, classes: Sequence[str] | None) -> str:
    if classes is None:
        return str(label)
    if not isinstance(label, int) or not 0 <= label < len(classes):
        raise DataError(f"the label {shown(label)} is none of the {len(classes)} classes")
    return classes[label]


def _is_image(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("mode", "size", "getexif", "resize", "convert"))


def _image(value: Any) -> Any:
    """A Pillow image of what a collection gives."""
    if _is_image(value):
        return value
    from PIL import Image

    return Image.fromarray(np.asarray(value))
