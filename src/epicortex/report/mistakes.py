"""The champion on the test set: what it takes for what, its surest mistakes, and labels that look wrong.

The data is found as the run's config says, and used only if it is the run's own; where it is not found, the
report says why. Training and fitness are left to others: this only looks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.data.options import DataOptions
from epicortex.errors import EpiCortexError
from epicortex.evaluation import figures
from epicortex.report import amounts, origins, pictures
from epicortex.report.amounts import Judged
from epicortex.report.origins import Origin
from epicortex.report.pictures import Picture
from epicortex.run import own_data
from epicortex.text import one_line

if TYPE_CHECKING:
    from epicortex.champion.file import Champion
    from epicortex.data import DataSet
    from epicortex.run.record import RunRecord

MOST_WRONG: Final = 24
MOST_SUSPECTS: Final = 100
#: With more classes than this, cells of a table are too small to read; a picture takes its place.
MOST_CLASSES: Final = 25
#: With more than this, not even that.
MOST_IN_PICTURE: Final = 1000
MOST_PAIRS: Final = 15
LONGEST_NAME: Final = 60


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
    file: str | None = None
    """The file that it was read from, below the folder of the data, where that is known."""

    @property
    def name(self) -> str:
        """What people find it by."""
        return self.file or f"sample {self.place}"


@dataclass(frozen=True, slots=True)
class Recognised:
    """How the champion does on one class."""

    name: str
    taught: int
    """Its training samples."""
    tested: int
    recall: float | None
    precision: float | None
    taken_for: str
    """What it is most often mistaken for; empty where it never is."""


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """How the champion does on the test set."""

    figures: figures.Tested
    classes: list[str]
    confusion: NDArray[np.int64]
    """How often each class (row) was taken for which (column)."""
    wrong: list[Wrong]
    suspects: list[Wrong]
    """Samples whose label looks wrong, the likeliest first."""
    taught: list[int]
    """How many training samples each class has."""
    notes: tuple[str, ...]
    """What the reader of the data found worth telling."""
    picture: Picture | None
    """The confusion matrix as a picture, where there are too many classes for a table."""

    @property
    def samples(self) -> int:
        """How many there are."""
        return self.figures.samples

    @property
    def accuracy(self) -> float:
        """The fraction that is recognised."""
        return self.figures.accuracy

    @property
    def shares(self) -> NDArray[np.float64]:
        """The confusion matrix with rows that sum to 1; a class without samples has zeros."""
        shares: NDArray[np.float64] = self.confusion / np.maximum(1, self.confusion.sum(1, keepdims=True))
        return shares

    @property
    def pairs(self) -> list[tuple[str, str, int, float]]:
        """The most frequent mistakes: class, taken for, how often, and the share of the class."""
        counts = self._mistakes()
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

    @property
    def rows(self) -> list[Recognised]:
        """Every class, in the order of the outputs."""
        counts, recall, precision = self._mistakes(), self.figures.recall(), self.figures.precision()
        return [
            Recognised(
                name,
                self.taught[place],
                self.figures.support[place],
                recall[place],
                precision[place],
                self.classes[int(counts[place].argmax())] if counts[place].any() else "",
            )
            for place, name in enumerate(self.classes)
        ]

    def _mistakes(self) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self.confusion * (1 - np.eye(len(self.classes), dtype=np.int64))
        return counts


def look(
    run: RunRecord, champion: Champion, data_dir: Path | None = None, *, trust: bool = False
) -> Tested | Judged | str:
    """The champion on its test set, or why that is not known."""
    if run.config.evaluator != "backprop":
        return f"fitness comes from the evaluator {one_line(run.config.evaluator)}, not from labelled data."
    try:
        data = own_data.find(run, data_dir, trust=trust)
    except (EpiCortexError, OSError) as error:
        return one_line(str(error), 400)
    if (why := _unfit(champion, data)) is not None:
        return why
    own = run.config.data
    options = DataOptions(**own.model_dump(exclude={"source", "directory"}))
    if data.task != "classes":
        return amounts.examine(champion, data, own.source, options)
    return examine(champion, data, own.source, options)


def _unfit(champion: Champion, data: DataSet) -> str | None:
    """Why a champion cannot be looked at on this data."""
    fits = (champion.outline.input_shape, champion.outline.outputs, champion.facts.task)
    if not len(data.y_test):
        return f"{one_line(data.name)} has no test part."
    if fits != (data.input_shape, len(data.classes), data.task):
        return "the champion does not fit the data of this run."
    if data.task == "classes" and len(data.classes) > MOST_IN_PICTURE:
        return f"a matrix of {len(data.classes):,} classes is too large to be drawn."
    return None


def examine(
    champion: Champion, data: DataSet, source: str | None = None, options: DataOptions | None = None
) -> Tested:
    """The champion on the test part of a data set; `source` is where its files may be."""
    from epicortex.champion.module import Classifier

    classifier, labels = Classifier(champion), np.asarray(data.y_test)
    classes = [one_line(name, LONGEST_NAME) for name in champion.classes]
    probabilities = classifier.predict_proba(data.x_test).astype(np.float64)
    taken, number = probabilities.argmax(1), len(classes)
    confidence = probabilities[np.arange(len(taken)), taken]
    order = np.lexsort((np.arange(len(taken)), -confidence))
    worst = order[(taken != labels)[order]][:MOST_WRONG].tolist()
    suspects = suspected(probabilities, labels)[:MOST_SUSPECTS]
    shown = {*worst, *(place for place, _ in suspects)}
    files = origins.found(classifier, data, sorted(shown), source, options)

    def wrong(place: int, instead: int, picture: bool) -> Wrong:
        file, sure = files.get(place), float(probabilities[place, instead])
        seen = _picture(data, place, file) if picture else None
        return Wrong(place, classes[labels[place]], classes[instead], sure, seen, file.name if file else None)

    tested = Tested(
        figures=figures.counted(taken, labels, number),
        classes=classes,
        confusion=np.bincount(labels * number + taken, minlength=number**2).reshape(number, number),
        wrong=[wrong(place, int(taken[place]), True) for place in worst],
        suspects=[wrong(place, instead, False) for place, instead in suspects],
        taught=np.bincount(data.y_train, minlength=number).tolist(),
        notes=tuple(one_line(note, 400) for note in data.notes),
        picture=None,
    )
    if number <= MOST_CLASSES:
        return tested
    return replace(tested, picture=pictures.heat(tested.shares))


def suspected(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Samples whose label looks wrong, each with the class that looks right, the likeliest first.

    A class is believed of a sample where it gets at least the probability that it has on average for the
    samples with its label (confident learning).

    >>> sure, unsure = [0.9, 0.1], [0.6, 0.4]
    >>> suspected(np.array([sure, sure, unsure, [0.2, 0.8], [0.95, 0.05]]), np.array([0, 0, 0, 1, 1]))
    [(4, 0)]
    """
    classes = probabilities.shape[1]
    usual = np.full(classes, np.inf)
    for label in np.unique(labels):
        usual[label] = probabilities[labels == label, label].mean()
    believed = np.where(probabilities >= usual, probabilities, 0.0)
    instead = believed.argmax(1)
    rows = np.arange(len(labels))
    margin = believed[rows, instead] - probabilities[rows, labels]
    doubtful = np.flatnonzero((instead != labels) & (margin > 0))
    order = doubtful[np.argsort(-margin[doubtful], kind="stable")]
    return [(int(place), int(instead[place])) for place in order]


def _picture(data: DataSet, place: int, file: Origin | None) -> Picture | None:
    """The sample as its file shows it, in its own proportions, or else as the network sees it."""
    seen = None if file is None else file.picture
    return seen or pictures.sample(data.x_test[place], data.scaling.divisor)
