"""The champion on the test set: what it takes for what, and where it is surest of the wrong class.

The data is found as the run's config says, and used only if it is the run's own; where it is not found, the
report says why. Training and fitness are left to others: this only looks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.config import changed
from epicortex.errors import DataError, EpiCortexError
from epicortex.report import pictures
from epicortex.report.pictures import Picture
from epicortex.run.consent import check_files
from epicortex.text import one_line

if TYPE_CHECKING:
    from epicortex.champion.file import Champion
    from epicortex.data import DataSet
    from epicortex.run.record import RunRecord

MOST_WRONG: Final = 24
#: With more classes than this, cells of a table are too small to read; a picture takes its place.
MOST_CLASSES: Final = 25
#: With more than this, not even that.
MOST_IN_PICTURE: Final = 1000
MOST_PAIRS: Final = 15
_BATCH: Final = 512
_LONGEST_NAME: Final = 24


@dataclass(frozen=True, slots=True)
class Wrong:
    """A test sample that the champion gets wrong."""

    place: int
    """Its place in the test set, from 0."""
    is_class: str
    taken_for: str
    confidence: float
    """The probability that it gives the wrong class."""
    picture: Picture | None


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """How the champion does on the test set."""

    samples: int
    accuracy: float
    classes: list[str]
    confusion: NDArray[np.int64]
    """How often each class (row) was taken for which (column)."""
    wrong: list[Wrong]
    picture: Picture | None
    """The confusion matrix as a picture, where there are too many classes for a table."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """The confusion matrix with rows that sum to 1; a class without samples has zeros."""
        shares: NDArray[np.float64] = self.confusion / np.maximum(1, self.confusion.sum(1, keepdims=True))
        return shares

    @property
    def pairs(self) -> list[tuple[str, str, int, float]]:
        """The most frequent mistakes: class, taken for, how often, and the share of the class."""
        counts = self.confusion * (1 - np.eye(len(self.classes), dtype=np.int64))
        order = np.argsort(-counts, axis=None, kind="stable")[:MOST_PAIRS]
        places = [divmod(int(place), len(self.classes)) for place in order]
        return [
            (
                self.classes[row],
                self.classes[column],
                int(counts[row, column]),
                float(self.shares[row, column]),
            )
            for row, column in places
            if counts[row, column]
        ]


def look(
    run: RunRecord, champion: Champion, data_dir: Path | None = None, *, trust: bool = False
) -> Tested | str:
    """The champion on its test set, or why that is not known."""
    if run.config.evaluator != "backprop":
        return f"fitness comes from the evaluator {one_line(run.config.evaluator)}, not from labelled data."
    try:
        decided = ["data.directory"] if data_dir is not None else []
        check_files(run.path, run.config, decided, trust=trust)
        data = _find_data(run, data_dir)
    except (EpiCortexError, OSError) as error:
        return one_line(str(error), 400)
    if not len(data.y_test):
        return f"{one_line(data.name)} has no test part."
    if (champion.outline.input_shape, champion.outline.outputs) != (data.input_shape, len(data.classes)):
        return "the champion does not fit the data of this run."
    if len(data.classes) > MOST_IN_PICTURE:
        return f"a matrix of {len(data.classes):,} classes is too large to be drawn."
    return examine(champion, data)


def examine(champion: Champion, data: DataSet) -> Tested:
    """The champion on the test part of a data set."""
    classes = [one_line(name, _LONGEST_NAME) for name in champion.classes]
    probabilities = _probabilities(champion, data.x_test)
    labels, taken = np.asarray(data.y_test), probabilities.argmax(1)
    number = len(classes)
    confusion = np.bincount(labels * number + taken, minlength=number**2).reshape(number, number)
    confidence = probabilities[np.arange(len(taken)), taken]
    order = np.lexsort((np.arange(len(taken)), -confidence))
    worst = order[(taken != labels)[order]][:MOST_WRONG]
    tested = Tested(
        samples=len(labels),
        accuracy=float((taken == labels).mean()),
        classes=classes,
        confusion=confusion,
        wrong=[
            Wrong(
                int(place),
                classes[labels[place]],
                classes[taken[place]],
                float(confidence[place]),
                pictures.sample(data.x_test[place], data.scaling.divisor),
            )
            for place in worst
        ],
        picture=None,
    )
    if number <= MOST_CLASSES:
        return tested
    return replace(tested, picture=pictures.heat(tested.shares))


def _find_data(run: RunRecord, data_dir: Path | None) -> DataSet:
    from epicortex.run import assembly as preparation

    config = run.config
    if config.data.source is None:
        raise DataError("it was handed over by a program, and is not kept in the run's folder.")
    if data_dir is not None:
        config = changed(config, data={"directory": str(data_dir)})
    data = preparation.load_data(config.data.source, config)
    if data.digest != run.info.data_digest:
        raise DataError(f"what is found as {config.data.source} now is not the data of this run.")
    return data


def _probabilities(champion: Champion, x: Any) -> NDArray[np.float64]:
    from epicortex.champion.module import Classifier

    return Classifier(champion).predict_proba(x).astype(np.float64)
