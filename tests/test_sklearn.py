"""`EvolvedClassifier` behaves as scikit-learn expects, and learns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from epicortex import Classifier, EvolvedClassifier, EvolvedRegressor

SMALL: dict[str, Any] = {"generations": 3, "networks": 4}


@parametrize_with_checks([EvolvedClassifier(**SMALL), EvolvedRegressor(**SMALL)])  # type: ignore[untyped-decorator]
def test_scikit_learn_finds_nothing_to_complain_about(estimator: Any, check: Any) -> None:
    """None is left out by us; scikit-learn skips what needs pandas or SCIPY_ARRAY_API where those are not."""
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    bundle = load_digits()
    return bundle.images[:600], bundle.target[:600]


@pytest.fixture(scope="module")
def fitted(digits: tuple[np.ndarray, np.ndarray]) -> EvolvedClassifier:
    images, labels = digits
    return EvolvedClassifier(generations=4, networks=6, random_state=1).fit(images[:400], labels[:400])


def test_it_learns_to_read_digits(fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = digits
    assert fitted.score(images[400:], labels[400:]) > 0.4  # of ten classes; how much more depends on the CPU
    assert fitted.classes_.tolist() == list(range(10))
    assert fitted.image_shape_ == (8, 8, 1)
    assert fitted.n_features_in_ == 64
    assert [line.generation for line in fitted.history_] == [1, 2, 3, 4]
    probabilities = fitted.predict_proba(images[400:])
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(images[400:])).all()


def test_images_and_flat_rows_are_the_same_thing(
    fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    flat = images.reshape(len(images), -1)
    forms: list[tuple[Any, Any]] = [
        (flat, (8, 8)),
        (flat, (8, 8, 1)),
        (images[..., None], None),
        (list(images), (8, 8)),
    ]
    assert np.array_equal(fitted.predict_proba(flat), fitted.predict_proba(images))
    model = EvolvedClassifier(generations=1, networks=3, random_state=1)
    expected = model.fit(images[:100], labels[:100]).predict_proba(images)
    for x, shape in forms:
        model.set_params(image_shape=shape)
        assert np.array_equal(model.fit(x[:100], labels[:100]).predict_proba(x), expected)


def test_colour_images_have_their_channels_last() -> None:
    rng = np.random.default_rng(1)
    labels = np.array(["red", "green"])[rng.integers(0, 2, 80)]
    images = rng.integers(0, 60, (80, 6, 5, 3), np.uint8)
    images[labels == "red", :, :, 0] += 150
    images[labels == "green", :, :, 1] += 150
    model = EvolvedClassifier(generations=3, networks=6, random_state=1).fit(images[:60], labels[:60])
    assert model.module_.input_shape == (3, 6, 5)
    assert model.score(images[60:], labels[60:]) > 0.7
    assert set(model.predict(images)) == {"red", "green"}


def test_the_module_takes_what_the_estimator_was_fitted_to(
    fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, _ = digits
    module = fitted.module_
    assert isinstance(module, Classifier)
    x = torch.from_numpy(images[:, None].astype(np.float32))
    logits = module(x) / (module.facts.temperature or 1.0)
    probabilities = logits.softmax(1).detach().numpy()
    np.testing.assert_allclose(probabilities, fitted.predict_proba(images), atol=1e-5)


def test_a_random_state_decides_everything(digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = digits
    first, again, other = (
        EvolvedClassifier(**SMALL, random_state=seed).fit(images, labels).predict_proba(images)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_processes_give_the_same_champion(
    fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    model = clone(fitted).set_params(n_jobs=2).fit(images[:400], labels[:400])
    assert model.champion_.phenotype.same_bits(fitted.champion_.phenotype)


def test_it_works_in_a_pipeline_a_cross_validation_and_a_grid_search() -> None:
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pipeline = make_pipeline(StandardScaler(), EvolvedClassifier(**SMALL, random_state=1))
    assert cross_val_score(pipeline, x, names, cv=3).mean() > 0.5
    grid = {"evolvedclassifier__networks": [3, 4]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(x, names)
    assert search.score(x, names) > 0.5
    assert set(search.predict(x)) <= set(names)
    tried = [parameters["evolvedclassifier__networks"] for parameters in search.cv_results_["params"]]
    assert tried == [3, 4]
    assert search.best_estimator_[-1].networks == tried[search.best_index_]


def test_a_clone_has_the_parameters_and_nothing_learnt(fitted: EvolvedClassifier) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "champion_")


def test_it_survives_pickling(fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]) -> None:
    images, _ = digits
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(images), fitted.predict_proba(images))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"generations": 0}, r"evolution.generations is 0; it must be"),
        ({"preset": "papper"}, r"papper.*paper"),
        ({"image_shape": (8, 9)}, r"image_shape is \(8, 9\); it must be .* 64 numbers"),
        ({"image_shape": (64,)}, r"image_shape is \(64,\)"),
        ({"settings": {"training.optimiser": "Adan"}}, r"Adan.*Adam"),
        ({"n_jobs": 0}, r"training.workers is 0"),
    ],
)
def test_parameters_are_checked_in_fit(
    parameters: dict[str, Any], message: str, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    model = EvolvedClassifier(**{**SMALL, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(images.reshape(len(images), -1)[:100], labels[:100])


def test_images_of_another_shape_are_refused(
    fitted: EvolvedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    with pytest.raises(ValueError, match=r"images of \(4, 16\).*fitted to \(8, 8, 1\)"):
        fitted.predict(images.reshape(-1, 4, 16))
    with pytest.raises(ValueError, match=r"image_shape is \(4, 16\), but X has images of \(8, 8\)"):
        EvolvedClassifier(image_shape=(4, 16)).fit(images, labels)


def test_a_regressor_learns_numbers_in_their_unit() -> None:
    x, y = load_diabetes(return_X_y=True)
    model = EvolvedRegressor(generations=5, networks=6, preset="layered", random_state=1).fit(
        x[:350], y[:350]
    )
    assert model.score(x[350:], y[350:]) > 0.2
    assert 100 < model.predict(x).mean() < 200
    assert (model.champion_.facts.task, model.n_outputs_) == ("regression", 1)
    assert model.champion_.classes == ("target",)


def test_a_regressor_takes_several_targets_and_images() -> None:
    exercise = load_linnerud()
    small: dict[str, Any] = {"generations": 1, "networks": 3, "preset": "layered", "random_state": 1}
    several = EvolvedRegressor(**small).fit(exercise.data, exercise.target)
    assert several.predict(exercise.data[:4]).shape == (4, 3)
    images = load_digits().images[:80]
    bright = EvolvedRegressor(**small).fit(images, images.mean((1, 2)))
    assert bright.predict(images[:2]).shape == (2,)
    assert bright.image_shape_ == (8, 8, 1)


def test_a_classifier_takes_an_indicator_matrix_of_labels() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    y = (x[:, :2] > 0).astype(np.int64)
    model = EvolvedClassifier(**SMALL, random_state=1).fit(x[:150], y[:150])
    chances, found = model.predict_proba(x[150:]), model.predict(x[150:])
    assert chances.shape == found.shape == (50, 2)
    assert found.dtype == np.int64
    assert np.array_equal(found, chances >= 0.5)
    # scikit-learn's score of labels: all of a sample's must be right
    assert model.score(x[150:], y[150:]) == (found == y[150:]).all(axis=1).mean() > 0.5
    assert model.champion_.facts.task == "multilabel"
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        model.fit(x, y + 1)


def rooms(pandas: Any, rows: int = 120) -> tuple[Any, Any]:
    """A frame with a number, a text, a category of numbers, and holes; and what follows from the text."""
    rng = np.random.default_rng(1)
    colour = rng.choice(np.array(["red", "blue", None], object), rows)
    size = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows))
    frame = pandas.DataFrame(
        {"size": size, "colour": colour, "floor": pandas.Categorical(np.arange(rows) % 3)}
    )
    return frame, pandas.Series(np.where(frame["colour"] == "red", "warm", "cold"), name="feel")


def test_estimators_take_frames_with_texts_and_holes() -> None:
    pandas = pytest.importorskip("pandas")
    frame, feel = rooms(pandas)
    model = EvolvedClassifier(**SMALL, random_state=1).fit(frame, feel)
    assert model.score(frame, feel) > 0.9
    assert model.feature_names_in_.tolist() == ["size", "colour", "floor"]
    assert model.champion_.facts.columns[:4] == ("size", "colour=blue", "colour=red", "colour missing")
    with pytest.warns(UserWarning, match="valid feature names"):
        assert (model.predict(frame.to_numpy()) == model.predict(frame)).all()
    with pytest.warns(RuntimeWarning, match=r"texts that the training data did not have.*colour \(120\)"):
        model.predict(frame.assign(colour="green"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["colour", "size", "floor"]])
    numbers = EvolvedRegressor(**SMALL, random_state=1).fit(frame, frame["size"].fillna(0.0))
    assert numbers.predict(frame[:5]).shape == (5,)
