"""From checked parts to a `DataSet`: the test split where there is none, the checks people need, the scaling.

Where the parts come from is left to the readers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from epicortex.data.answers import strata
from epicortex.data.columns import Columns
from epicortex.data.dataset import DEEP, DataSet, LabelKind
from epicortex.data.options import DataOptions
from epicortex.data.splits import split_groups, split_validation
from epicortex.data.values import measure, signals
from epicortex.data.wording import listing, shown
from epicortex.errors import DataError
from epicortex.measures import TaskKind

SPLIT_SEED = 2_718_281
"""Of the test part that is split off: fixed, so that every run is judged by the same samples."""
FEW = 10
UNEVEN = 4
"""From how many times the samples of another class on a class is told to be too large."""


@dataclass(frozen=True, slots=True)
class Part:
    """Prepared samples, their labels, and what to call them when they have to be named."""

    x: np.ndarray
    y: np.ndarray
    names: Sequence[str] | None = None
    groups: np.ndarray | None = None
    """What each sample belongs to; no group may be in two parts."""

    def call(self, index: int) -> str:
        """The sample's name, or its number."""
        return self.names[index] if self.names is not None else f"sample {index}"


Encode = Callable[[dict[str, Part]], tuple[dict[str, Part], Columns, list[str]]]


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
    columns: Sequence[str] = (),
    task: TaskKind = "classes",
    encode: Encode | None = None,
) -> DataSet:
    """Make the data set of `parts` (train, and test and val where there are such). `gather` picks rows.

    `encode` makes inputs of the cells of a table, once it is known which rows are learnt from.
    """
    notes = list(notes)
    if task == "classes" and len(classes) < 2:
        raise DataError(f"{name} has only the class {listing(classes)}; at least two are needed")
    parts = dict(parts)
    images = parts["train"].x.ndim > 2
    hashes = {part: _hashes(content.x) if images else [] for part, content in parts.items()}
    for part in ("test", "val"):
        # Without groups a validation set is drawn when the run begins.
        if part not in parts and (part == "test" or parts["train"].groups is not None):
            notes += _split_off(part, parts, hashes, options, gather, task)
    _check_groups(name, parts)
    table = None
    if encode is not None:
        parts, table, told = encode(parts)
        notes += told
    train, test, val = parts["train"], parts["test"], parts.get("val")
    if task == "classes":
        _check_counts(name, train, classes, options, numbers=kind == "integer")
        notes += _small_classes(parts, classes)
    else:
        notes += _check_answers(name, parts, classes, task)
    notes += _leaks(parts, hashes)
    notes += [] if images else signals(train.x)
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
        columns=tuple(columns) if table is None else table.inputs,
        label_kind=kind,
        task=task,
        table=table,
    )


def _split_off(
    part: str,
    parts: dict[str, Part],
    hashes: dict[str, list[bytes]],
    options: DataOptions,
    gather: Callable[[np.ndarray, np.ndarray], np.ndarray],
    task: TaskKind,
) -> list[str]:
    """Put another part beside `train`; identical images stay together, or it would ask what was taught."""
    whole, marks = parts["train"], hashes["train"]
    if whole.groups is not None:
        rows, held = split_groups(strata(whole.y, task), whole.groups, options.test_fraction, SPLIT_SEED)
    else:
        rng = np.random.default_rng(SPLIT_SEED)
        rows, held = split_validation(strata(whole.y, task), options.test_fraction, rng)
    if marks and whole.groups is None:
        taught = {marks[row] for row in rows}
        back = np.array([marks[row] in taught for row in held], bool)
        rows, held = np.sort(np.concatenate([rows, held[back]])), held[~back]
    if len(held):
        for own, index in (("train", rows), (part, held)):
            names = None if whole.names is None else [whole.names[row] for row in index]
            groups = None if whole.groups is None else whole.groups[index]
            parts[own] = Part(gather(whole.x, index), whole.y[index], names, groups)
            hashes[own] = [marks[row] for row in index] if marks else []
    elif part == "test":
        parts[part] = Part(whole.x[:0], whole.y[:0])
        hashes[part] = []
    if options.test_fraction == 0:
        return []
    what = {"test": "testing", "val": "validation"}[part]
    among = "" if whole.groups is None else f", {len(np.unique(whole.groups[held]))} groups of their own,"
    kind = "test" if part == "test" else "validation"
    return [
        f"there is no {kind} part: {len(held)} of {len(whole.y)} samples{among} were set aside for {what}"
    ]


def _check_groups(name: str, parts: dict[str, Part]) -> None:
    """Refuse a group that is in two parts: what was learnt of it would be asked for again."""
    known: dict[str, str] = {}
    for part, content in ((one, parts[one]) for one in ("train", "val", "test") if one in parts):
        for group in () if content.groups is None else np.unique(content.groups).tolist():
            if group in known:
                raise DataError(f"{name}: the group {shown(group)} is in {known[group]} and also in {part}")
            known[group] = part


def _check_counts(
    name: str, train: Part, classes: tuple[str, ...], options: DataOptions, *, numbers: bool
) -> None:
    counts = np.bincount(train.y, minlength=len(classes))
    few = np.flatnonzero(counts < options.min_per_class)
    if numbers and len(few) > FEW:
        raise DataError(
            f"{name}: the label has {len(classes)} different numbers in {len(train.y)} samples, like a "
            "quantity: --data.task regression predicts it as one"
        )
    if len(few):
        small = listing([f"{classes[label]} ({counts[label]})" for label in few])
        raise DataError(
            f"{name}: too few training samples in the class {small}; "
            f"at least {options.min_per_class} are needed (--data.min-per-class)"
        )


def _check_answers(name: str, parts: dict[str, Part], names: tuple[str, ...], task: TaskKind) -> list[str]:
    """Refuse what cannot be learnt, and tell of labels that hardly can."""
    y = parts["train"].y
    if task == "regression":
        same = [names[place] for place in range(y.shape[1]) if len(y) and (y[:, place] == y[0, place]).all()]
        if same:
            raise DataError(f"{name}: {listing(same)} is the same number in all training samples")
        return []
    counts = y.sum(axis=0, dtype=np.int64)
    if not ((counts > 0) & (counts < len(y))).any():
        raise DataError(f"{name}: no label stands at some training samples and not at others")
    few = [f"{shown(names[place])} ({counts[place]})" for place in np.flatnonzero(counts < FEW)]
    notes = [f"labels with fewer than {FEW} training samples: {listing(few)}"] if few else []
    every = [names[place] for place in np.flatnonzero(counts == len(y))]
    return notes + ([f"labels of every training sample: {listing(every)}"] if every else [])


def _small_classes(parts: dict[str, Part], classes: tuple[str, ...]) -> list[str]:
    counts = np.bincount(parts["train"].y, minlength=len(classes))
    notes = []
    few = [f"{classes[label]} ({counts[label]})" for label in np.flatnonzero(counts < FEW)]
    if few:
        notes.append(f"classes with fewer than {FEW} training samples: {listing(few)}")
    elif counts.max() > UNEVEN * counts.min():
        small, large = classes[int(counts.argmin())], classes[int(counts.argmax())]
        notes.append(
            f"the classes are uneven: {shown(large)} has {counts.max()} samples, "
            f"{shown(small)} {counts.min()}; --training.class-weights balanced makes them count alike"
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
