"""From checked parts to a `DataSet`: the test split where there is none, the checks people need, the scaling.

Where the parts come from is left to the readers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from epicortex.data.dataset import DEEP, DataSet, LabelKind
from epicortex.data.options import DataOptions
from epicortex.data.splits import split_validation
from epicortex.data.values import measure
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError

SPLIT_SEED = 2_718_281
"""Of the test part that is split off: fixed, so that every run is judged by the same samples."""
FEW = 10


@dataclass(frozen=True, slots=True)
class Part:
    """Prepared samples, their labels, and what to call them when they have to be named."""

    x: np.ndarray
    y: np.ndarray
    names: Sequence[str] | None = None

    def call(self, index: int) -> str:
        """The sample's name, or its number."""
        return self.names[index] if self.names is not None else f"sample {index}"


def assemble(
    name: str,
    parts: dict[str, Part],
    *,
    classes: tuple[str, ...],
    divisor: float,
    options: DataOptions,
    notes: Sequence[str] = (),
    gather: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda x, rows: x[rows],
    bits: int = DEEP,
    kind: LabelKind = "text",
) -> DataSet:
    """Make the data set of `parts` (train, and test and val where there are such). `gather` picks rows."""
    notes = list(notes)
    if len(classes) < 2:
        raise DataError(f"{name} has only the class {listing(classes)}; at least two are needed")
    parts = dict(parts)
    images = parts["train"].x.ndim > 2
    hashes = {part: _hashes(content.x) if images else [] for part, content in parts.items()}
    if "test" not in parts:
        notes += _split_test(parts, hashes, options, gather)
    train, test, val = parts["train"], parts["test"], parts.get("val")
    _check_counts(name, train, classes, options)
    notes += _small_classes(parts, classes)
    notes += _leaks(parts, hashes)
    return DataSet(
        name=name,
        x_train=train.x,
        y_train=train.y,
        x_test=test.x,
        y_test=test.y,
        x_val=val.x if val else None,
        y_val=val.y if val else None,
        classes=classes,
        scaling=measure(train.x, divisor),
        notes=tuple(notes),
        bits=bits,
        label_kind=kind,
    )


def _split_test(
    parts: dict[str, Part],
    hashes: dict[str, list[bytes]],
    options: DataOptions,
    gather: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[str]:
    """Put a test part beside `train`; identical images stay together, or it would ask what was taught."""
    whole, marks = parts["train"], hashes["train"]
    rows, held = split_validation(whole.y, options.test_fraction, np.random.default_rng(SPLIT_SEED))
    if marks:
        taught = {marks[row] for row in rows}
        back = np.array([marks[row] in taught for row in held], bool)
        rows, held = np.sort(np.concatenate([rows, held[back]])), held[~back]
    if len(held):
        for part, index in (("train", rows), ("test", held)):
            names = None if whole.names is None else [whole.names[row] for row in index]
            parts[part] = Part(gather(whole.x, index), whole.y[index], names)
            hashes[part] = [marks[row] for row in index] if marks else []
    else:
        parts["test"] = Part(whole.x[:0], whole.y[:0])
        hashes["test"] = []
    if options.test_fraction == 0:
        return []
    return [f"there is no test part: {len(held)} of {len(whole.y)} samples were set aside for testing"]


def _check_counts(name: str, train: Part, classes: tuple[str, ...], options: DataOptions) -> None:
    counts = np.bincount(train.y, minlength=len(classes))
    few = np.flatnonzero(counts < options.min_per_class)
    if len(few):
        small = listing([f"{classes[label]} ({counts[label]})" for label in few])
        raise DataError(
            f"{name}: too few training samples in the class {small}; "
            f"at least {options.min_per_class} are needed (data.min_per_class)"
        )


def _small_classes(parts: dict[str, Part], classes: tuple[str, ...]) -> list[str]:
    counts = np.bincount(parts["train"].y, minlength=len(classes))
    notes = []
    few = [f"{classes[label]} ({counts[label]})" for label in np.flatnonzero(counts < FEW)]
    if few:
        notes.append(f"classes with fewer than {FEW} training samples: {listing(few)}")
    elif counts.max() > 10 * counts.min():
        small, large = classes[int(counts.argmin())], classes[int(counts.argmax())]
        notes.append(
            f"the classes are uneven: {shown(large)} has {counts.max()} samples, "
            f"{shown(small)} {counts.min()}"
        )
    for part, content in parts.items():
        absent = np.flatnonzero(np.bincount(content.y, minlength=len(classes)) == 0)
        if len(content.y) and len(absent):
            notes.append(f"the {part} part has no {listing([classes[label] for label in absent])}")
    return notes


def _leaks(parts: dict[str, Part], hashes: dict[str, list[bytes]]) -> list[str]:
    """What identical images tell: a test or validation sample that was taught proves nothing."""
    notes = []
    names = [part for part in ("train", "val", "test") if part in parts]
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            first = {mark: row for row, mark in reversed(list(enumerate(hashes[one])))}
            shared = [(row, first[mark]) for row, mark in enumerate(hashes[other]) if mark in first]
            if shared:
                pairs = [f"{parts[other].call(row)} = {parts[one].call(twin)}" for row, twin in shared]
                notes.append(f"{len(shared)} images of {other} are also in {one}: {listing(pairs, most=3)}")
    repeated = sum(count - 1 for count in Counter(hashes["train"]).values())
    if repeated:
        notes.append(f"{repeated} training images are copies of others")
    labels = dict(zip(hashes["train"], parts["train"].y.tolist(), strict=False))
    clashing = [
        parts["train"].call(row)
        for row, (mark, label) in enumerate(zip(hashes["train"], parts["train"].y.tolist(), strict=False))
        if labels[mark] != label
    ]
    if clashing:
        notes.append(f"identical training images with different classes: {listing(clashing)}")
    return notes


def _hashes(x: np.ndarray) -> list[bytes]:
    return [hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=16).digest() for row in x]
