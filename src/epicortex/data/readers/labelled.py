"""Pictures whose classes stand in a CSV file beside them: which columns say what, and which files are meant.

The pictures themselves are read like those of any folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from epicortex.data.answers import JOINT
from epicortex.data.options import DataOptions
from epicortex.data.readers.pictures import ENDINGS
from epicortex.data.readers.table import LABEL_NAMES, named_columns, sound_csv
from epicortex.data.scanning import SPLITS, Listing, pictures_below
from epicortex.data.wording import column_names, listing, no_column, shown
from epicortex.errors import DataError

_SPLIT_NAMES = ("split", "subset", "part", "set", "partition")
#: How many rows are looked at to tell which column names pictures.
_SOME = 50


@dataclass(frozen=True, slots=True)
class _Columns:
    """The places of the columns that count."""

    image: int
    labels: tuple[int, ...]
    group: int | None = None
    split: int | None = None


def labels_beside(folder: Path) -> Path | None:
    """The CSV file of a folder that has no folders of classes, if there is exactly one; else None."""
    tables = sorted(path for path in folder.glob("*.csv") if not path.name.startswith("."))
    return tables[0] if len(tables) == 1 else None


def names_pictures(path: Path, options: DataOptions) -> bool:
    """Whether a column of a CSV file names pictures."""
    with sound_csv(path) as rows:
        header = next(rows, [])
        some = [row for row in islice(rows, _SOME) if row]
    sound = all(len(row) == len(header) for row in some)
    return sound and _image_column(header, some, path, options) is not None


def from_labels(path: Path, options: DataOptions) -> Listing | None:
    """The pictures that a CSV file names, with their classes; None if no column of it names pictures."""
    with sound_csv(path) as rows:
        header = next(rows, [])
        lines = [(number, row) for number, row in enumerate(islice(rows, _SOME), start=2) if row]
        _check_widths(lines, header, path)
        image = _image_column(header, [row for _, row in lines], path, options)
        if image is None:
            return None
        lines += [(number, row) for number, row in enumerate(rows, start=2 + _SOME) if row]
        _check_widths(lines, header, path)
    columns = _columns(header, image, lines, path, options)
    known = _Known(path.parent)
    found, missing = Listing(path.parent, name=path.stem), list[str]()
    for number, row in lines:
        cell, own = row[columns.image].strip(), [row[place].strip() for place in columns.labels]
        picture = known.find(cell)
        if picture is None:
            missing.append(f"{shown(cell)} (line {number})")
            continue
        if not all(own) and (len(own) > 1 or options.task in ("classes", "regression")):
            raise DataError(f"{path}: line {number} has no {header[columns.labels[own.index('')]]!r}")
        part = "train" if columns.split is None else SPLITS[row[columns.split].strip().lower()]
        found.files.setdefault(part, []).append((picture, JOINT.join(own)))
        if columns.group is not None:
            found.groups[picture] = row[columns.group].strip()
    _tell(found, path, missing, known, options)
    found.settle(options.task, [header[place] for place in columns.labels])
    if found.task != "multilabel" and (empty := [one for one in found.labels() if not one[1]]):
        raise DataError(f"{path}: {shown(found.call(empty[0][0]))} has no {header[columns.labels[0]]!r}")
    return found


def _check_widths(lines: Sequence[tuple[int, list[str]]], header: Sequence[str], path: Path) -> None:
    for number, row in lines:
        if len(row) != len(header):
            raise DataError(f"{path}: line {number} has {len(row)} columns, the header has {len(header)}")


class _Known:
    """The pictures below a folder by what people write: a path, a name, or a name without its ending."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pictures = pictures_below(folder)
        by_path = {str(path.relative_to(folder)): path for path in self.pictures}
        self._names: list[Mapping[str, Path]] = [by_path]
        for part in ("name", "stem"):
            often = Counter(getattr(path, part) for path in self.pictures)
            self._names.append({getattr(p, part): p for p in self.pictures if often[getattr(p, part)] == 1})

    def find(self, cell: str) -> Path | None:
        """The one picture that a cell means; nothing outside of the folder can be meant."""
        plain = cell.replace("\\", "/").removeprefix("./")
        last = plain.rpartition("/")[2]
        for text, names in zip((plain, last, last), self._names, strict=True):
            if text in names:
                return names[text]
        return None


def _image_column(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: Path, options: DataOptions
) -> int | None:
    if options.image_column is not None:
        return _named(header, options.image_column, path)
    for place in range(len(header)):
        cells = [row[place].strip() for row in rows]
        if cells and all(Path(cell).suffix.lower() in ENDINGS for cell in cells):
            return place
    return None


def _columns(
    header: Sequence[str],
    image: int,
    lines: Sequence[tuple[int, list[str]]],
    path: Path,
    options: DataOptions,
) -> _Columns:
    lower = [name.strip().lower() for name in header]
    group = None if options.group_column is None else _named(header, options.group_column, path)
    split = next((lower.index(name) for name in _SPLIT_NAMES if name in lower), None)
    if split is not None and not all(row[split].strip().lower() in SPLITS for _, row in lines):
        split = None
    if options.label_column is not None:
        labels = tuple(
            _named(header, name, path) for name in named_columns(header, options.label_column, path)
        )
    else:
        others = [place for place in range(len(header)) if place not in (image, group, split)]
        named = [lower.index(name) for name in LABEL_NAMES if name in lower and lower.index(name) in others]
        if not named and len(others) != 1:
            names = column_names([header[place] for place in others])
            raise DataError(f"{path}: which column is the class? give --data.label-column, one of {names}")
        labels = ((named or others)[0],)
    return _Columns(image, labels, group, split)


def _named(header: Sequence[str], name: str, path: Path) -> int:
    if name not in header:
        raise DataError(no_column(path, name, header))
    return list(header).index(name)


def _tell(found: Listing, path: Path, missing: Sequence[str], known: _Known, options: DataOptions) -> None:
    """Refuse rows without a picture, unless they may be skipped, and tell of pictures without a row."""
    if not any(found.files.values()):
        raise DataError(f"{path} names no picture that is in {path.parent}: {listing(missing, 3)}")
    if not found.files.get("train"):
        raise DataError(f"{path} has no rows for training")
    text = f"{len(missing)} rows of {path.name} name no picture in {path.parent}: {listing(missing)}"
    if missing and options.unreadable == "refuse":
        raise DataError(f"{text}; --data.unreadable skip leaves them out")
    if missing:
        found.notes.append(text)
    used = {picture for files in found.files.values() for picture, _ in files}
    unused = [str(one.relative_to(path.parent)) for one in known.pictures if one not in used]
    if unused:
        found.notes.append(f"{len(unused)} pictures stand in no row of {path.name}: {listing(unused, 3)}")
