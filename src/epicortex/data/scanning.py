"""Finds the pictures of a folder and the class and part (train, val, test) each belongs to. Opens none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epicortex.data import answers
from epicortex.data.dataset import LabelKind
from epicortex.data.readers.pictures import ENDINGS, Source
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError
from epicortex.measures import TaskKind

SPLITS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}
_MAX_DEPTH = 16


@dataclass(slots=True)
class Listing:
    """The pictures found: for each part (train, val, test) the files with their classes."""

    root: Path
    files: dict[str, list[tuple[Source, str]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    name: str = ""
    """What the data is called, where that is not the name of its folder."""
    groups: dict[Source, str] = field(default_factory=dict)
    """What must not be in two parts at once, such as a patient: by picture."""
    kind: LabelKind = "text"
    """What the labels are."""
    task: TaskKind = "classes"
    """What is predicted of a picture."""
    outputs: tuple[str, ...] = ()
    """The names of the numbers, or of the labels, where that is not a class."""

    def paths(self) -> list[Source]:
        """All pictures, in order."""
        return [path for files in self.files.values() for path, _ in files]

    def labels(self) -> list[tuple[Source, str]]:
        """All pictures with their labels, in order."""
        return [one for files in self.files.values() for one in files]

    def settle(self, asked: str, columns: Sequence[str] = ("label",)) -> None:
        """Find out, from the labels, what is predicted; or take what was asked for."""
        cells = {part: [label for _, label in files] for part, files in self.files.items()}
        self.task, outputs, notes = answers.settled(cells, asked, str(self.root), columns)
        self.outputs = tuple(outputs)
        self.notes += notes

    def call(self, source: Source) -> str:
        """What a picture is called when it has to be named."""
        return str(source.relative_to(self.root)) if isinstance(source, Path) else str(source)


def scan(root: Path, group_level: int | None = None) -> Listing:
    """List the pictures below `root`, in an order that depends on nothing but their names.

    With `group_level`, the folder so many levels below that of the class says what a picture belongs to.
    """
    found = Listing(root)
    ignored: Counter[str] = Counter()
    empty: list[str] = []
    tops = _folders(root, ignored)
    # A folder train/ with pictures of trains in it is a class; one with folders in it is a part.
    split = any(SPLITS.get(top.name.lower()) == "train" and _folders(top, Counter()) for top in tops)
    if len(tops) > 1 and not split and not class_folders(root):
        raise DataError(
            f"{root} has {listing([f'{top.name}/' for top in tops])}, but no folders of classes in them"
            f"{_unlabelled(root)}"
        )
    for top in tops:
        part = SPLITS.get(top.name.lower()) if split else "train"
        if part is None:
            raise DataError(
                f"{root} has train/ and also {shown(top.name)}/; beside train/ only val/ and test/ may be"
            )
        for folder in _folders(top, ignored) if split else [top]:
            own: Counter[str] = Counter()
            files = [(path, folder.name) for path in _pictures(folder, root.resolve(), own)]
            if not files and (own or part == "train"):
                empty.append(f"{shown(folder.relative_to(root))}/ ({_counted(own) or 'empty'})")
            ignored += own
            if group_level is not None:
                found.groups.update({path: _group(path, folder, group_level) for path, _ in files})
            found.files.setdefault(part, []).extend(files)
    if not any(found.files.values()):
        if next(_pictures(root, root.resolve(), Counter()), None) is not None:
            raise DataError(f"{root} holds pictures, but no class folders{_unlabelled(root)}")
        raise DataError(
            f"{root} holds no class folders with pictures: make one folder for each class, "
            f"with {', '.join(sorted(ENDINGS))} files in it{_found(ignored)}"
        )
    if not found.files.get("train"):
        raise DataError(f"{root} has no pictures for training")
    if empty:
        raise DataError(
            f"{root}: no pictures for a class in {listing(empty)}: files ending in "
            f"{', '.join(sorted(ENDINGS))} are read; convert them, or remove the folder"
        )
    found.files = {part: files for part, files in found.files.items() if files}
    classes = {label for _, label in found.files["train"]}
    if len(classes) == 1 and _tables(root):
        raise DataError(f"{root} has pictures in the only folder {listing([*classes])}/{_unlabelled(root)}")
    if ignored:
        found.notes.append(f"ignored: {_counted(ignored)}")
    return found


def _tables(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("*.csv") if not is_hidden(path.name))


def _unlabelled(root: Path) -> str:
    """What to do with pictures of which nothing says what they show."""
    tables = _tables(root)
    if len(tables) > 1:
        return f": if a CSV file says what they show, give that file ({listing(tables)})"
    if tables:
        return (
            f", and no column of {shown(tables[0])} names pictures with their endings: --data.image-column "
            "says which column names them"
        )
    return (
        ": make one folder for each class, or put a CSV file beside them with a column that names the "
        "pictures and one that says what each shows"
    )


def _group(path: Path, folder: Path, level: int) -> str:
    below = path.relative_to(folder).parts
    if len(below) <= level:
        raise DataError(f"{path} does not lie {level} folders below its class (--data.group-level)")
    return "/".join(below[:level])


def pictures_below(folder: Path) -> list[Path]:
    """All pictures in a folder that a data set would be made of: nothing hidden, no links that lead out."""
    return list(_pictures(folder, folder.resolve(), Counter()))


def _counted(ignored: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(ignored.items(), key=lambda one: -one[1]))


def _found(ignored: Counter[str]) -> str:
    return f" (there are {_counted(ignored)})" if ignored else ""


def class_folders(root: Path) -> list[Path]:
    """The visible folders that may be classes: none where all are parts, without folders in them."""
    tops = _folders(root, Counter())
    parts = all(top.name.lower() in SPLITS for top in tops)
    return [] if parts and not any(_folders(top, Counter()) for top in tops) else tops


def _folders(folder: Path, ignored: Counter[str]) -> list[Path]:
    """The visible subfolders by name; links to folders are left, since they can lead anywhere."""
    found = []
    for entry in _entries(folder):
        if entry.is_symlink() and entry.is_dir():
            ignored["links to folders"] += 1
        elif entry.is_dir(follow_symlinks=False) and not is_hidden(entry.name):
            found.append(Path(entry.path))
    return found


def _pictures(folder: Path, root: Path, ignored: Counter[str], depth: int = 0) -> Iterator[Path]:
    if depth > _MAX_DEPTH:
        raise DataError(f"{folder} is too deep: pictures lie in the folder of their class")
    for entry in _entries(folder):
        path = Path(entry.path)
        if is_hidden(entry.name):
            continue
        if entry.is_dir():
            if entry.is_symlink():
                ignored["links to folders"] += 1
            else:
                yield from _pictures(path, root, ignored, depth + 1)
        elif path.suffix.lower() not in ENDINGS or not entry.is_file():
            ignored[f"{shown(path.suffix, 20)} files" if path.suffix else "files without an ending"] += 1
        elif entry.is_symlink() and not path.resolve().is_relative_to(root):
            ignored["links that lead out of the folder"] += 1
        else:
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from None


def is_hidden(name: str) -> bool:
    """Whether a file or folder is left alone, as systems leave such behind."""
    return name.startswith((".", "__MACOSX"))
