"""`EvolvedClassifier` and `EvolvedRegressor`: evolution as scikit-learn estimators.

It turns rows or images into a data set, runs an evolution in memory, and predicts with the champion. Files,
resuming and callbacks are left to `evolve`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from epicortex.champion.judging import HALF
from epicortex.champion.module import Classifier
from epicortex.champion.rows import values_of
from epicortex.config import Config, EvolutionConfig
from epicortex.config import resolving as settings
from epicortex.data import DataSet, answers
from epicortex.data.assemble import Part
from epicortex.data.columns import Columns
from epicortex.data.readers.frames import draft, is_frame, named
from epicortex.data.readers.table import encoded
from epicortex.data.values import measure
from epicortex.errors import ConfigError, DataError
from epicortex.measures import TaskKind
from epicortex.run.lifecycle import evolve

#: Of fewer samples a part would be too small to measure fitness on; they are measured on all.
_ENOUGH: Final = 50
#: The paper's sizes are the defaults; a smaller ecosystem has founders in proportion.
_PAPER: Final = EvolutionConfig()
_FOUNDERS: Final = _PAPER.initial_networks / _PAPER.max_networks


class _Evolved(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the settings of a run, and samples as networks take them."""

    def __init__(
        self,
        *,
        generations: int = 10,
        networks: int = 12,
        image_shape: tuple[int, ...] | None = None,
        validation_fraction: float = 0.2,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.generations = generations
        self.networks = networks
        self.image_shape = image_shape
        self.validation_fraction = validation_fraction
        self.preset = preset
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def module_(self) -> Classifier:
        """The champion as a new `nn.Module` on raw values [samples, channels, height, width]."""
        check_is_fitted(self, "champion_")
        return Classifier(self.champion_)

    def _evolve(self, x: _Samples, y: NDArray[Any], names: Sequence[str], task: TaskKind) -> None:
        """Evolve a champion for checked samples, and keep it."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        small = len(x.values) < _ENOUGH
        try:
            data = DataSet(
                name="arrays",
                x_train=x.values,
                y_train=y,
                x_test=x.values[:0],
                y_test=y[:0],
                x_val=x.values if small else None,
                y_val=y if small else None,
                classes=tuple(names),
                scaling=measure(x.values, 1.0),
                task=task,
                columns=() if x.table is None else x.table.inputs,
                table=x.table,
                notes=tuple(x.notes),
            )
            result = evolve(data, self._config(seed), progress=False)
        except (ConfigError, DataError) as error:
            raise ValueError(str(error)) from error
        assert result.champion is not None  # it ran to its end
        self.champion_ = result.champion
        self.history_ = result.history

    def _answers(self, X: ArrayLike) -> NDArray[np.float64]:
        """What the champion says [samples, outputs]: probabilities, or numbers."""
        check_is_fitted(self, "champion_")
        # In double precision: a sample's figures must not hang on those it is computed with.
        double = self.module_.double()
        if self.champion_.facts.table is not None:
            return np.asarray(double.answer(self._cells(X)), np.float64)
        flat, shape = _flattened(X)
        rows = validate_data(self, flat, dtype=np.float32, reset=False)
        if shape is not None and _with_channels(shape) != self.image_shape_:
            raise ValueError(f"X has images of {shape}; the estimator was fitted to {self.image_shape_}")
        return np.asarray(double.answer(_inputs(rows, self.image_shape_)), np.float64)

    def _taken(self, X: Any, y: Any, **how: Any) -> tuple[_Samples, Any]:
        """Checked samples and labels; a DataFrame may have texts and holes."""
        if is_frame(X) and self.image_shape is None:
            labels = validate_data(self, y=y, **how)
            validate_data(self, X, skip_check_array=True)
            check_consistent_length(X, labels)
            self.columns_, self.image_shape_ = [str(name) for name in X.columns], None
            return _tabled(X, labels), labels
        flat, shape = _flattened(X)
        rows, labels = validate_data(self, flat, y, dtype=np.float32, **how)
        self.image_shape_ = _settled(shape, self.image_shape, rows.shape[1])
        return _Samples(_inputs(rows, self.image_shape_)), labels

    def _cells(self, X: Any) -> NDArray[Any]:
        """What the champion of a DataFrame takes of another, or of an array of the same columns."""
        validate_data(self, X, skip_check_array=True, reset=False)
        columns = named(X) if is_frame(X) else dict(zip(self.columns_, np.asarray(X).T, strict=True))
        notes: list[str] = []
        try:
            values = values_of(self.champion_.facts, columns, notes)
        except DataError as error:
            raise ValueError(str(error)) from error
        for note in notes:
            warnings.warn(note, RuntimeWarning, stacklevel=4)
        return values

    def _config(self, seed: int) -> Config:
        """The settings of the run; what a person gave in `settings` comes last."""
        founders = max(1, round(_FOUNDERS * self.networks))
        changes: dict[str, object] = {
            "evolution.seed": seed,
            "evolution.generations": self.generations,
            "evolution.max_networks": self.networks,
            "evolution.initial_networks": founders,
            "evolution.initial_species": max(1, min(8, founders // 2, self.networks // 2)),
            "training.fitness_on": "validation",
            "training.validation_fraction": self.validation_fraction,
            "training.engine": "serial" if self.n_jobs is None else "processes",
            "training.workers": None if self.n_jobs in (None, -1) else self.n_jobs,
        }
        config = settings.resolve(self.preset, {**changes, **(self.settings or {})})
        if config.evolution.target is None and config.evolution.budget != "planned":
            return settings.changed(config, evolution={"target": 1.0})
        return config


class EvolvedClassifier(ClassifierMixin, _Evolved):  # type: ignore[misc]
    """A classifier whose network is evolved: structure and weights, for rows of numbers or for images.

    Images are N×H×W or N×H×W×C, or flat rows together with `image_shape`. A DataFrame may have columns of
    text and missing values. `y` may be 0 and 1 [samples, labels]: then sets of labels are predicted.

    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> model = EvolvedClassifier(generations=2, networks=6, random_state=1)
    >>> model.fit(digits.images[:300], digits.target[:300]).predict(digits.images[:3]).shape
    (3,)

    Parameters
    ----------
    generations : int
        How many generations to evolve. The default is for a first look; 30 or more make a better champion.
        Presets that follow the paper end earlier where no sample is classified wrongly any more.
    networks : int
        How many networks live at the same time, in presets that follow the paper.
    image_shape : tuple of int or None
        (height, width) or (height, width, channels) of the images in flat rows; None takes rows as they are.
    validation_fraction : float
        The part of the samples that fitness is measured on. Below 50 samples, all serve both ends.
    preset : str
        The settings to begin with: "default", "layered", "paper" or a TOML file.
    settings : dict or None
        Further settings by dotted name, such as {"training.optimiser": "Adam"}.
    n_jobs : int or None
        How many networks train at the same time, in processes of their own; -1 is one a core. None trains
        one after another in this process, which is quickest for small data.
    random_state : int, RandomState or None
        An int gives the same champion every time.

    Attributes
    ----------
    classes_ : ndarray
        The labels; their numbers where `y` has a column for each.
    multilabel_ : bool
        Whether sets of labels are predicted.
    champion_ : Champion
        The fittest network by value, with its scaling; `epicortex.export` takes it.
    history_ : list of Generation
        The generations in order, as in history.jsonl.
    image_shape_ : tuple of int or None
        The shape of the images that it was fitted to.
    n_features_in_ : int
        How many numbers a sample has.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Evolve a champion for samples `X` with labels `y`."""
        several = _columns(y) > 1
        samples, labels = self._taken(X, y, multi_output=several)
        check_classification_targets(labels)
        self.multilabel_ = several
        if several:
            return self._labelled(samples, y, labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"samples of at least 2 classes are needed; all are of one class, {classes[0]}")
        names = [str(label) for label in classes.tolist()]
        self._evolve(samples, numbers.astype(np.int64), names, "classes")
        self.classes_ = classes
        return self

    def _labelled(self, samples: _Samples, y: Any, labels: Any) -> Self:
        """Evolve a champion for sets of labels, an indicator matrix."""
        matrix = np.asarray(labels.toarray() if issparse(labels) else labels)
        if not np.isin(matrix, (0, 1)).all():
            raise ValueError("y has several columns: they must hold 0 and 1, a column for each label")
        names = answers.names_of(y, matrix.shape[1], "label")
        self._evolve(samples, matrix.astype(np.uint8), names, "multilabel")
        self.classes_ = np.arange(matrix.shape[1])
        self.dtype_ = matrix.dtype
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probability of each class [samples, classes], in the order of `classes_`; or of each label."""
        return self._answers(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest label of each sample; or 0 and 1 [samples, labels]."""
        chances = self.predict_proba(X)
        if self.multilabel_:
            return (chances >= HALF).astype(self.dtype_)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """It takes sets of labels, too."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class EvolvedRegressor(RegressorMixin, _Evolved):  # type: ignore[misc]
    """A regressor whose network is evolved: one number, or several, for rows of numbers or for images.

    Parameters and attributes are those of `EvolvedClassifier`, but for `classes_`. Targets are standardised
    with the statistics of the training samples, and predictions come in their units.

    >>> from sklearn.datasets import load_diabetes
    >>> x, y = load_diabetes(return_X_y=True)
    >>> model = EvolvedRegressor(generations=2, networks=6, random_state=1)
    >>> model.fit(x[:300], y[:300]).predict(x[:3]).shape
    (3,)
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Evolve a champion for samples `X` with numbers `y` [samples] or [samples, targets]."""
        samples, values = self._taken(X, y, multi_output=True, y_numeric=True)
        if len(values) < 2:
            raise ValueError("Found array with 1 sample(s) while a minimum of 2 is required.")
        values = np.asarray(values, np.float64)
        self.n_outputs_ = 1 if values.ndim == 1 else values.shape[1]
        self.flat_ = values.ndim == 1
        targets = values.reshape(len(values), -1).astype(np.float32)
        if not np.isfinite(targets).all():
            raise ValueError("y holds values that are infinite or too large for float32")
        names = answers.names_of(y, self.n_outputs_, "target")
        self._evolve(samples, targets, names, "regression")
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The number of each sample, or [samples, targets] of several."""
        found = self._answers(X)
        return found[:, 0] if self.flat_ else found

    def __sklearn_tags__(self) -> Any:
        """It takes several targets, too."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """Samples as networks take them, and how the columns of a DataFrame became them."""

    values: NDArray[np.float32]
    table: Columns | None = None
    notes: Sequence[str] = ()


def _tabled(frame: Any, y: NDArray[Any]) -> _Samples:
    """A DataFrame with its texts and holes as inputs."""
    notes: list[str] = []
    try:
        table, cells = draft(named(frame), notes)
        parts, fitted, _ = encoded(table, {"train": Part(cells, y)})
    except DataError as error:
        raise ValueError(str(error)) from error
    return _Samples(parts["train"].x, fitted, notes)


def _columns(y: Any) -> int:
    """How many columns labels have; 1 where they are a list of them."""
    shape: tuple[int, ...] | None = getattr(y, "shape", None)
    if shape is None:
        shape = np.shape(y) if isinstance(y, list | tuple) else ()
    return int(shape[1]) if len(shape) == 2 else 1


def _flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Images as flat rows, with their shape; anything else as it is."""
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) > 1:
        X = np.asarray(X)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) not in (3, 4):
        return X, None
    return np.reshape(np.asarray(X), (shape[0], math.prod(shape[1:]))), tuple(shape[1:])


def _settled(
    found: tuple[int, ...] | None, given: tuple[int, ...] | None, features: int
) -> tuple[int, ...] | None:
    """The shape (height, width, channels) of the images, or None for rows; what cannot be is refused."""
    if given is not None:
        if len(given) not in (2, 3) or math.prod(given) != features:
            raise ValueError(
                f"image_shape is {given}; it must be (height, width) or (height, width, channels) and make "
                f"up the {features} numbers of a sample"
            )
        if found is not None and _with_channels(found) != _with_channels(tuple(given)):
            raise ValueError(f"image_shape is {given}, but X has images of {found}")
        return _with_channels(tuple(given))
    return None if found is None else _with_channels(found)


def _with_channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 3 else (*shape, 1)


def _inputs(rows: NDArray[np.float32], shape: tuple[int, ...] | None) -> NDArray[np.float32]:
    """Rows as networks take them: as they are, or as images with their channels first."""
    if shape is None:
        return rows
    return np.ascontiguousarray(np.moveaxis(rows.reshape(len(rows), *shape), -1, 1))
