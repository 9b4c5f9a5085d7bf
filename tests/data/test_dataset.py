"""The prepared data set: what it refuses, and that a saved one comes back equal, mapped and shared."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from epicortex.data import DataSet, Scaling, load, split_validation, tensor
from epicortex.errors import DataError


def small(*, val: bool = True, notes: tuple[str, ...] = ("a note",)) -> DataSet:
    rng = np.random.default_rng(1)

    def images(n: int) -> np.ndarray:
        return rng.integers(0, 256, (n, 3, 5, 4), dtype=np.uint8)

    def labels(n: int) -> np.ndarray:
        return np.arange(n, dtype=np.int64) % 3

    return DataSet(
        name="small",
        x_train=images(11),
        y_train=labels(11),
        x_test=images(4),
        y_test=labels(4),
        x_val=images(3) if val else None,
        y_val=labels(3) if val else None,
        classes=("cat", "dog", "grüne Gans"),
        scaling=Scaling(255.0, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
        notes=notes,
    )


def assert_equal(one: DataSet, other: DataSet) -> None:
    for name in ("x_train", "y_train", "x_test", "y_test", "x_val", "y_val"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
    fields = ("name", "classes", "scaling", "notes", "digest", "input_shape")
    assert all(getattr(one, name) == getattr(other, name) for name in fields)


@pytest.mark.parametrize("val", [True, False])
def test_a_saved_data_set_comes_back_equal(tmp_path: Path, val: bool) -> None:
    data = small(val=val)
    saved = data.save(tmp_path / "d.safetensors")
    assert_equal(data, saved)
    assert_equal(data, DataSet.open(tmp_path / "d.safetensors", verify=True))
    assert saved.path == tmp_path / "d.safetensors"
    assert isinstance(saved.x_train, np.memmap)
    assert list(tmp_path.iterdir()) == [saved.path]


def test_the_file_is_ordinary_safetensors(tmp_path: Path) -> None:
    data = small().save(tmp_path / "d.safetensors")
    np.testing.assert_array_equal(load_file(tmp_path / "d.safetensors")["x_train"], data.x_train)


def test_arrays_cannot_be_written_to_by_accident(tmp_path: Path) -> None:
    data = small().save(tmp_path / "d.safetensors")
    with pytest.raises(ValueError, match="read-only"):
        data.x_train[0] = 0


def test_a_tensor_of_mapped_data_shares_its_memory_and_cannot_reach_the_file(tmp_path: Path) -> None:
    data = small().save(tmp_path / "d.safetensors")
    before = (tmp_path / "d.safetensors").read_bytes()
    view = tensor(data.x_train)
    assert view.data_ptr() == data.x_train.ctypes.data
    assert torch.equal(view, torch.from_numpy(np.array(data.x_train)))
    view.zero_()
    assert (tmp_path / "d.safetensors").read_bytes() == before


def test_mapped_data_travels_as_its_path(tmp_path: Path) -> None:
    data = small().save(tmp_path / "d.safetensors")
    assert len(pickle.dumps(data)) < 1000
    assert_equal(pickle.loads(pickle.dumps(data)), data)
    assert_equal(copy.deepcopy(data), data)
    assert_equal(pickle.loads(pickle.dumps(small())), small())


def test_a_file_replaced_by_other_data_is_noticed_by_a_process_that_reopens_it(tmp_path: Path) -> None:
    sent = pickle.dumps(small().save(tmp_path / "d.safetensors"))
    small(val=False).save(tmp_path / "d.safetensors")
    with pytest.raises(DataError, match="replaced"):
        pickle.loads(sent)


def test_the_digest_tells_what_can_change_a_result_and_nothing_else() -> None:
    data = small()
    assert data.digest == small(notes=()).digest
    changed = data.x_test.copy()
    changed[0, 0, 0, 0] ^= 1
    others: list[dict[str, object]] = [
        {"x_test": changed},
        {"y_test": data.y_test[::-1].copy()},
        {"classes": ("cat", "dog", "goose")},
        {"scaling": Scaling(255.0, (0.1, 0.2, 0.3), (0.4, 0.5, 0.7))},
        {"x_val": None, "y_val": None},
    ]
    fields = {name: value for name, value in vars(data).items() if name != "digest"}
    digests = {DataSet(**{**fields, **other}).digest for other in others}
    assert len(digests | {data.digest}) == 6


def test_a_flipped_bit_in_the_arrays_is_found_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "d.safetensors"
    small().save(path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    DataSet.open(path)
    with pytest.raises(DataError, match="checksum"):
        DataSet.open(path, verify=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"x_train": np.zeros((0, 3, 5, 4), np.uint8), "y_train": np.zeros(0, np.int64)}, "x_train"),
        ({"x_test": np.zeros((4, 3, 5, 5), np.uint8)}, "x_test"),
        ({"y_test": np.zeros(5, np.int64)}, "y_test"),
        ({"y_train": np.full(11, 3)}, "labels from 3"),
        ({"y_train": np.full(11, -1)}, "labels from -1"),
        ({"x_val": None}, "together"),
        ({"classes": ()}, "classes"),
        ({"scaling": Scaling(1.0, (0.0,), (1.0,))}, "scaling"),
        ({"x_train": np.zeros((11, 3, 5, 4))}, "float64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(DataError, match=says):
        DataSet(**{**vars(small()), **change})


def test_an_empty_test_part_is_allowed(tmp_path: Path) -> None:
    data = DataSet(
        **{
            **vars(small()),
            "x_test": np.zeros((0, 3, 5, 4), np.uint8),
            "y_test": np.zeros(0, np.int64),
            "digest": "",
        }
    )
    assert_equal(data, data.save(tmp_path / "d.safetensors"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"divisor": 1, "mean": [0], "std": [0]},
        {"divisor": "1", "mean": [0], "std": [1]},
        {"divisor": 10**400, "mean": [0], "std": [1]},
        {"divisor": 1, "mean": [float("nan")], "std": [1]},
    ],
)
def test_a_scaling_that_makes_no_sense_is_refused(value: object) -> None:
    with pytest.raises(DataError, match="scaling"):
        Scaling.from_json(value)


def test_a_scaling_survives_json() -> None:
    scaling = Scaling(16.0, (0.1, 1 / 3), (0.7, 1e-9))
    assert Scaling.from_json(json.loads(json.dumps(scaling.to_json()))) == scaling


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=200),
    st.floats(0, 0.99),
    st.integers(0, 2**32),
)
def test_a_split_is_stratified_complete_and_keeps_every_class_in_training(
    labels: list[int], fraction: float, seed: int
) -> None:
    y = np.array(labels)
    train, held = split_validation(y, fraction, np.random.default_rng(seed))
    assert sorted([*train, *held]) == list(range(len(y)))
    assert list(train) == sorted(train)
    assert list(held) == sorted(held)
    assert set(y[train]) == set(y)
    for label in set(labels):
        assert abs((y[held] == label).sum() - fraction * (y == label).sum()) <= 1
    again = split_validation(y, fraction, np.random.default_rng(seed))
    np.testing.assert_array_equal(again[1], held)


def test_a_split_has_the_size_asked_for_even_of_tiny_classes() -> None:
    train, held = split_validation(np.repeat(np.arange(10), 2), 0.2, np.random.default_rng(0))
    assert (len(train), len(held)) == (16, 4)


def test_the_digits_are_whole_and_their_test_third_is_fixed(tmp_path: Path) -> None:
    data = load("digits", data_dir=tmp_path)
    assert data.input_shape == (1, 8, 8)
    assert (len(data.x_train), len(data.x_test)) == (1201, 596)
    assert data.digest == load("digits", data_dir=tmp_path / "other").digest
    assert data.x_train.max() == 16
    scaled = data.scaling.apply(data.x_train)
    assert abs(scaled.mean()) < 0.01
    assert abs(scaled.std() - 1) < 0.01
    share = np.bincount(data.y_test) / (np.bincount(data.y_train) + np.bincount(data.y_test))
    np.testing.assert_allclose(share, 1 / 3, atol=0.01)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(DataError, match=r"fashion_mnist.*did you mean fashion-mnist\?"):
        load("fashion_mnist")
