"""`EvolvedClassifier` and `EvolvedRegressor`: evolution as scikit-learn estimators.

It turns rows or images into a data set, runs an evolution in memory, and predicts with the champion. Files,
resuming and callbacks are left to `evolve`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from epicortex.champion.module import Classifier
from epicortex.config import Config, EvolutionConfig
from epicortex.config import resolving as settings
from epicortex.data import DataSet, answers
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

    def _evolve(self, x: NDArray[np.float32], y: NDArray[Any], names: Sequence[str], task: TaskKind) -> None:
        """Evolve a champion for checked samples, and keep it."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        small = len(x) < _ENOUGH
        try:
            data = DataSet(
                name="arrays",
                x_train=x,
                y_train=y,
                x_test=x[:0],
                y_test=y[:0],
                x_val=x if small else None,
                y_val=y if small else None,
                classes=tuple(names),
                scaling=measure(x, 1.0),
                task=task,
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
        flat, shape = _flattened(X)
        rows = validate_data(self, flat, dtype=np.float32, reset=False)
        if shape is not None and _with_channels(shape) != self.image_shape_:
            raise ValueError(f"X has images of {shape}; the estimator was fitted to {self.image_shape_}")
        # In double precision: a sample's figures must not hang on those it is computed with.
        double = self.module_.double()
        return np.asarray(double.answer(_inputs(rows, self.image_shape_)), np.float64)

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

    Images are N×H×W or N×H×W×C, or flat rows together with `image_shape`.

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
        The labels.
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
        flat, shape = _flattened(X)
        rows, labels = validate_data(self, flat, y, dtype=np.float32)
        check_classification_targets(labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"samples of at least 2 classes are needed; all are of one class, {classes[0]}")
        self.image_shape_ = _settled(shape, self.image_shape, rows.shape[1])
        x = _inputs(rows, self.image_shape_)
        names = [str(label) for label in classes.tolist()]
        self._evolve(x, numbers.astype(np.int64), names, "classes")
        self.classes_ = classes
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probability of each class [samples, classes], in the order of `classes_`."""
        return self._answers(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest label of each sample."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


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
        flat, shape = _flattened(X)
        rows, values = validate_data(
            self, flat, y, dtype=np.float32, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        values = np.asarray(values, np.float64)
        self.image_shape_ = _settled(shape, self.image_shape, rows.shape[1])
        self.n_outputs_ = 1 if values.ndim == 1 else values.shape[1]
        self.flat_ = values.ndim == 1
        targets = values.reshape(len(values), -1).astype(np.float32)
        if not np.isfinite(targets).all():
            raise ValueError("y holds values that are infinite or too large for float32")
        names = answers.names_of(y, self.n_outputs_, "target")
        self._evolve(_inputs(rows, self.image_shape_), targets, names, "regression")
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
