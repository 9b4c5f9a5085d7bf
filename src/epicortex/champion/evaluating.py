"""A champion on labelled data of any kind: every sample is read as `predict` reads it, and answered once.

What the answers amount to is counted in `evaluation.figures`; how it is shown is left to the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Facts, is_picture
from epicortex.champion.judging import Labelling, Quantities, judged
from epicortex.champion.rows import ENDINGS, labels_apart, labels_of, raw_values, rows_of
from epicortex.data import DataOptions, DataSet, answers, load
from epicortex.data.catalog import BUILT_INS
from epicortex.data.loading import listed
from epicortex.data.readers.archive import is_archive, unpacked
from epicortex.data.readers.frames import NAME, are_parts, by_part, is_frame, named
from epicortex.data.readers.labelled import from_labels
from epicortex.data.scanning import Listing
from epicortex.data.wording import listing, shown
from epicortex.errors import ConfigError, DataError
from epicortex.evaluation.figures import Bin, Tested, calibration_error, counted, reliability

Part = Literal["auto", "train", "val", "test", "all"]
_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one sample; classes are numbers, in the order of the champion's."""

    name: str
    label: int
    answer: int
    sure: float
    """The probability of the answer."""
    label_chance: float
    """The probability of the right class."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How a champion does on labelled data."""

    classes: tuple[str, ...]
    answers: list[Answer]
    tested: Tested
    confusion: NDArray[np.int64]
    """How often each class (row) was taken for which (column)."""
    bins: list[Bin]
    """How sure it was and how often right, with the temperature of the model."""
    calibration: float
    """How far being sure was from being right, on average."""
    unreadable: tuple[str, ...] = ()
    untempered: float | None = None
    """The same without the temperature of the model; None where it has none."""

    def mistakes(self) -> list[Answer]:
        """The wrong answers, those of which it was surest first."""
        wrong = [one for one in self.answers if one.answer != one.label]
        return sorted(wrong, key=lambda one: (-one.sure, one.name))


def evaluate(
    source: Any,
    data: Any,
    *,
    part: Part = "auto",
    options: DataOptions | None = None,
    data_dir: Path | None = None,
) -> Evaluation | Quantities | Labelling:
    """How a champion does on labelled data: a run folder, a file or a module, and a data set of any kind.

    A champion for regression gives `Quantities`, one for sets of labels a `Labelling`. Of data with several
    parts the test part counts, unless another `part` is asked for.
    """
    model = _model(source)
    options = replace(options or DataOptions(), task=model.facts.task)
    unreadable: list[str] = []
    names: list[str] = []
    labels: list[Any] = []
    rows: list[NDArray[np.float64]] = []
    for some, values, called in _batches(model, data, part, options, data_dir, unreadable):
        rows.append(np.asarray(model.answer(values), np.float64))
        labels += called
        names += some
    if not names:
        raise DataError(f"there is nothing to evaluate on: {listing(unreadable, 3) or 'the data is empty'}")
    if model.facts.task != "classes":
        return judged(model.facts, names, np.stack(labels), np.concatenate(rows), unreadable)
    return _evaluated(model.facts, names, np.array(labels, np.int64), np.concatenate(rows), unreadable)


def _evaluated(
    facts: Facts,
    names: Sequence[str],
    labels: NDArray[np.int64],
    chances: NDArray[np.float64],
    unreadable: Sequence[str],
) -> Evaluation:
    answers, count = chances.argmax(1), len(facts.classes)
    found = [
        Answer(name, int(label), int(answer), float(row[answer]), float(row[label]))
        for name, label, answer, row in zip(names, labels, answers, chances, strict=True)
    ]
    bins, untempered = reliability(chances, labels), None
    if facts.temperature is not None:
        untempered = calibration_error(reliability(_without(facts.temperature, chances), labels))
    return Evaluation(
        facts.classes,
        found,
        counted(answers, labels, count),
        np.bincount(labels * count + answers, minlength=count**2).reshape(count, count),
        bins,
        calibration_error(bins),
        tuple(unreadable),
        untempered,
    )


def _without(temperature: float, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """What probabilities would be had their logits not been divided by a temperature.

    >>> _without(2.0, np.array([[0.8, 0.2]])).round(4).tolist()
    [[0.9412, 0.0588]]
    """
    powers = chances**temperature
    result: NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
    return result


def _model(source: Any) -> Any:
    """Whatever knows its facts and answers samples."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() == ".onnx":
            from epicortex.champion.portable import load_onnx

            return load_onnx(path)
        from epicortex.champion.module import load as load_model

        return load_model(path)
    model = getattr(source, "module", source)  # the result of a run has it
    if not (hasattr(model, "predict_proba") and hasattr(model, "facts")):
        raise ConfigError(f"a champion cannot be taken from {type(source).__name__}")
    return model


Batch = tuple[list[str], NDArray[Any], list[Any]]


def _decoded(model: Any, texts: Sequence[str], where: str) -> list[Any]:
    """Labels as they stand in files: numbers of classes, or rows of numbers or of 0 and 1."""
    facts: Facts = model.facts
    if facts.task != "classes":
        return list(answers.encoded(texts, facts.task, facts.classes, where))
    number = {name: place for place, name in enumerate(facts.classes)}
    _check_known(set(texts), number)
    return [number[text] for text in texts]


def _batches(
    model: Any, data: Any, part: Part, options: DataOptions, data_dir: Path | None, unreadable: list[str]
) -> Iterator[Batch]:
    """Names, raw values and labels, a batch at a time."""
    path = Path(data).expanduser() if isinstance(data, str | Path) else None
    if path is not None and str(data) not in BUILT_INS and path.exists():
        if is_picture(model.input_shape):
            if is_archive(path) and path.is_file():
                with unpacked(path, options, None) as folder:
                    found = replace(listed(folder, options), name=str(path))
                    yield from _pictures(model, found, part, unreadable)
                return
            if (seen := _listing(path, options)) is not None:
                yield from _pictures(model, replace(seen, name=""), part, unreadable)
                return
        elif len(model.input_shape) == 1 and path.suffix.lower() in ENDINGS:
            yield from _table(model, path, options)
            return
    if len(model.input_shape) == 1 and (parts := _frames(data)) is not None:
        for name in _chosen(parts, part):
            called = "row {}" if len(parts) == 1 else f"{name}[{{}}]"
            yield from _frame(model, *parts[name], options, called)
        return
    yield from _arrays(model, load(data, data_dir=data_dir, options=_whole(options)), part)


def _listing(path: Path, options: DataOptions) -> Listing | None:
    if path.is_dir():
        return listed(path, options)
    return from_labels(path, options) if path.suffix.lower() == ".csv" else None


def _whole(options: DataOptions) -> DataOptions:
    return replace(options, test_fraction=0.0, min_per_class=1)


def _pictures(model: Any, found: Listing, part: Part, unreadable: list[str]) -> Iterator[Batch]:
    files = [one for name in _chosen(found.files, part) for one in found.files[name]]
    right = _decoded(model, [label for _, label in files], str(found.root))
    for start in range(0, len(files), _BATCH):
        names, values, labels = list[str](), list[NDArray[Any]](), list[Any]()
        for (source, _), label in zip(files[start : start + _BATCH], right[start:], strict=False):
            try:
                values.append(model.read(source))
            except DataError as error:
                unreadable.append(str(error))
                continue
            names.append(f"{found.name}/{found.call(source)}" if found.name else str(source))
            labels.append(label)
        if values:
            yield names, np.concatenate(values), labels


def _table(model: Any, path: Path, options: DataOptions) -> Iterator[Batch]:
    x, lines = rows_of(model.facts, path, model.input_shape[0], [])
    labels = labels_of(model.facts, path, options)
    yield [f"{path}:{line}" for line in lines], x, _decoded(model, labels, str(path))


def _frames(data: Any) -> dict[str, tuple[Any, Any]] | None:
    """DataFrames by part, each with its labels if they are apart; None of anything else."""
    if is_frame(data):
        return {"train": (data, None)}
    if are_parts(data):
        return {part: (frame, None) for part, frame in by_part(data).items()}
    if isinstance(data, tuple | list) and len(data) in (2, 4) and all(map(is_frame, data[::2])):
        return dict(zip(("train", "test"), zip(data[::2], data[1::2], strict=True), strict=False))
    return None


def _frame(model: Any, frame: Any, y: Any, options: DataOptions, called: str) -> Iterator[Batch]:
    if y is None:
        labels = labels_of(model.facts, named(frame), options)
    else:
        labels = labels_apart(model.facts, named(y) if is_frame(y) else _columns(y))
    x = raw_values(model.facts, frame, model.input_shape)
    if len(x) != len(labels):
        raise DataError(f"there are {len(x)} rows, and {len(labels)} labels")
    yield [called.format(row) for row in range(len(x))], x, _decoded(model, labels, NAME.name)


def _columns(y: Any) -> dict[str, Any]:
    """Labels that are no frame as columns without names."""
    array = np.asarray(y)
    return {str(place): array[:, place] for place in range(array.shape[1])} if array.ndim == 2 else {"0": y}


def _arrays(model: Any, data: DataSet, part: Part) -> Iterator[Batch]:
    if tuple(data.input_shape) != tuple(model.input_shape):
        raise DataError(
            f"{data.name} has samples of {tuple(data.input_shape)}; the champion takes "
            f"{tuple(model.input_shape)}"
        )
    facts: Facts = model.facts
    if data.task != facts.task:
        raise DataError(f"{data.name} is for {data.task}, the champion for {facts.task}")
    if len(data.classes) != len(facts.classes) and facts.task != "classes":
        raise DataError(f"{data.name} has {len(data.classes)} outputs, the champion {len(facts.classes)}")
    own = _decoded(model, data.classes, data.name) if facts.task == "classes" else []
    parts = {"train": (data.x_train, data.y_train), "test": (data.x_test, data.y_test)}
    if data.x_val is not None and data.y_val is not None:
        parts["val"] = (data.x_val, data.y_val)
    filled = {name: both for name, both in parts.items() if len(both[1])}
    for name in _chosen(filled, part):
        x, y = filled[name]
        for start in range(0, len(y), _BATCH):
            here = range(start, min(start + _BATCH, len(y)))
            some = y[start : start + _BATCH]
            labels = [own[int(label)] for label in some] if own else list(some)
            yield [f"{name}[{place}]" for place in here], x[start : start + _BATCH], labels


def _chosen(parts: Mapping[str, Any], part: Part) -> list[str]:
    """The parts that count: the one that was asked for, else the test part, else all there is."""
    if part == "all":
        return list(parts)
    if part == "auto":
        return ["test"] if "test" in parts else list(parts)
    if part not in parts:
        raise DataError(f"the data has no part {part}; it has {listing(list(parts))}")
    return [part]


def _check_known(labels: set[str], number: Mapping[str, int]) -> None:
    strange = sorted(label for label in labels if label not in number)
    if strange:
        raise DataError(
            f"the data has the class {listing(strange)}, which the champion does not know; it knows "
            f"{listing([shown(name) for name in number], 10)}"
        )
