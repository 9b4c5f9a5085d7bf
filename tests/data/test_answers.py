"""What labels are taken for, and how they become arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud

from epicortex.data import DataOptions, DataSet, answers, load
from epicortex.errors import DataError

LABELS = st.lists(st.sets(st.sampled_from(["a", "b", "long name", "Zürich"])), min_size=1, max_size=20)


def read(x: Any, y: Any, **options: Any) -> DataSet:
    return load((x, y), options=DataOptions(**options))


@given(LABELS)
def test_sets_of_labels_come_back_as_they_were(sets: list[set[str]]) -> None:
    cells = [";".join(sorted(one)) for one in sets]
    names = sorted(set().union(*sets)) or ["a"]
    y, found = answers.label_sets(cells, names)
    assert found == names
    assert [{name for name, one in zip(names, row, strict=True) if one} for row in y] == sets


def test_real_targets_are_taken_for_what_they_are() -> None:
    diabetes = load_diabetes()
    data = read(diabetes.data, diabetes.target)
    assert (data.task, data.classes, str(data.y_train.dtype)) == ("regression", ("target",), "float32")
    assert any("--data.task classes" in note for note in data.notes)
    assert read(load_iris().data, load_iris().target).task == "classes"
    assert read(load_digits().images, load_digits().target).task == "classes"
    assert read(load_iris().data, load_iris().data[:, 0]).task == "regression"
    exercise = load_linnerud()
    several = read(exercise.data, exercise.target)
    assert (several.task, several.y_train.shape[1], len(several.classes)) == ("regression", 3, 3)


def test_a_person_decides_where_the_data_does_not_suit() -> None:
    x, y = np.random.default_rng(1).normal(size=(90, 3)), np.arange(90) % 3
    forced = read(x, y, task="regression")
    assert forced.task == "regression"
    assert forced.notes[0].startswith("there is no test part")
    quantity = np.repeat(np.arange(30), 3)
    assert read(x, quantity, task="classes", test_fraction=0.0).classes == tuple(map(str, range(30)))
    with pytest.raises(DataError, match="of 0 and 1"):
        read(x, y, task="multilabel")
    with pytest.raises(DataError, match=r"--data\.task regression"):
        read(x, y / 4)  # fractions, but only three of them
    one_hot = np.eye(3, dtype=int)[y]
    assert read(x, one_hot).task == "multilabel"
    assert np.array_equal(read(x, one_hot, task="classes", test_fraction=0.0).y_train, y)


def test_arrays_of_labels_and_texts_are_sets() -> None:
    digits = load_digits()
    t = digits.target[:200]
    y = np.stack([t % 2 == 0, t > 4], axis=1)
    data = read(digits.images[:200], y.astype(int), test_fraction=0.0)
    assert (data.task, data.classes, str(data.y_train.dtype)) == ("multilabel", ("0", "1"), "uint8")
    texts = np.array([";".join(n for n, one in zip(("even", "big"), row, strict=True) if one) for row in y])
    named = read(digits.images[:200], texts, test_fraction=0.0)
    assert named.classes == ("big", "even")
    np.testing.assert_array_equal(named.y_train[:, ::-1], data.y_train)
    assert named.class_counts() == {"big": int((t > 4).sum()), "even": int((t % 2 == 0).sum())}


@pytest.mark.parametrize(
    ("y", "options", "says"),
    [
        (np.r_[np.arange(39) / 7, np.nan], {"task": "regression"}, "missing, infinite or too large"),
        (np.full(40, 2.5), {"task": "regression"}, "same number in all training samples"),
        (np.array(["a", "b"] * 20), {"task": "regression"}, "numbers"),
        (np.zeros((40, 2), int), {"task": "multilabel"}, "no label stands at some"),
        (np.arange(40) % 3, {"task": "multilabel"}, "of 0 and 1"),
    ],
)
def test_labels_that_cannot_be_are_one_line(y: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        read(np.random.default_rng(1).normal(size=(40, 2)), y, **options)
    assert "\n" not in str(caught.value)


def test_targets_are_standardised_with_the_training_part_alone() -> None:
    x, y = load_diabetes(return_X_y=True)
    data = read(x, y)
    assert data.targets is not None
    np.testing.assert_allclose(data.targets.mean, data.y_train.mean(0), rtol=1e-6)
    np.testing.assert_allclose(data.targets.std, data.y_train.std(0), rtol=1e-6)
    scaled = data.targets.apply(data.y_train)
    np.testing.assert_allclose([scaled.mean(), scaled.std()], [0, 1], atol=1e-5)
    assert 0.7 < data.targets.apply(data.y_test).std() < 1.3


def test_splits_have_numbers_of_every_size_and_every_common_set() -> None:
    rng = np.random.default_rng(1)
    y = rng.lognormal(size=200)
    parts = read(rng.normal(size=(200, 2)), y)
    assert abs(np.median(parts.y_train) - np.median(parts.y_test)) < 0.25
    sets = rng.integers(0, 2, (200, 2))
    labels = read(rng.normal(size=(200, 2)), sets)
    assert len(labels.y_test) == 40
    assert len(np.unique(labels.y_test, axis=0)) == 4


def test_a_data_set_with_numbers_is_stored_and_opened(tmp_path: Path) -> None:
    x, y = load_diabetes(return_X_y=True)
    data = read(x, y)
    again = data.save(tmp_path / "d.safetensors")
    assert (again.task, again.targets, again.digest) == (data.task, data.targets, data.digest)
    assert DataSet.open(tmp_path / "d.safetensors", verify=True).task == "regression"
    plain = read(x, (y > 100).astype(int))
    assert plain.compute_digest() != data.digest
