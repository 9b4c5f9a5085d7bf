"""DataFrames are read as the same table in a file is, and champions find their columns by name."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicortex import configure, evaluate, evolve
from epicortex.champion.evaluating import Evaluation
from epicortex.data import DataOptions, load
from epicortex.errors import DataError
from tests.data.test_columns import cells, written

pandas = pytest.importorskip("pandas")
LABEL = "class"


@pytest.fixture
def wine(tmp_path: Path) -> tuple[Path, Any]:
    """A file, and the frame that pandas makes of it."""
    path = written(tmp_path / "wine.csv", *cells(120))
    return path, pandas.read_csv(path, na_values=["?"])


def test_a_frame_is_the_same_data_as_its_file(wine: tuple[Path, Any], tmp_path: Path) -> None:
    path, frame = wine
    file = load(path, data_dir=tmp_path / "data")
    whole, parted = load(frame), load((frame.drop(columns=LABEL), frame[LABEL]))
    assert file.digest == whole.digest == parted.digest
    assert file.table == whole.table == parted.table
    left_out = [note for note in file.notes if "left out" in note]
    assert len(left_out) == 3
    assert set(left_out) <= set(whole.notes)


def test_parts_labels_and_groups_are_columns(wine: tuple[Path, Any]) -> None:
    _, frame = wine
    data = load({"train": frame[:90], "test": frame[90:]})
    assert (len(data.x_train), len(data.x_test)) == (90, 30)
    number = load(frame.drop(columns=LABEL).dropna(subset="ash"), options=DataOptions(label_column="ash"))
    assert (number.task, number.classes) == ("regression", ("ash",))
    frame["cellar"] = np.arange(120) // 10
    grouped = load(frame, options=DataOptions(group_column="cellar"))
    assert "cellar" not in grouped.columns
    assert any("groups of their own" in note for note in grouped.notes)


def test_kinds_of_pandas_columns() -> None:
    rows = 40
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([None, *range(1, rows)], "Int64"),
            "flag": np.arange(rows) % 2 == 0,
            "grade": pandas.Categorical(np.arange(rows) % 3),
            "day": pandas.date_range("2024-01-01", periods=rows),
            7: np.linspace(0, 1, rows),
        }
    )
    data = load((frame, np.arange(rows) % 2))
    assert data.columns == ("whole", "flag", "grade=0", "grade=1", "grade=2", "7")
    assert any("'day' holds dates" in note for note in data.notes)
    with pytest.raises(DataError, match="more than one column a"):
        load((pandas.DataFrame(np.ones((4, 2)), columns=["a", "a"]), [0, 1, 0, 1]))


def test_labels_that_are_missing_are_no_class(wine: tuple[Path, Any]) -> None:
    _, frame = wine
    frame.loc[[3, 5], LABEL] = None
    with pytest.raises(DataError, match="y_train lacks 2 labels, first that of sample 3"):
        load(frame)


def test_a_champion_answers_frames_and_files_alike(wine: tuple[Path, Any], tmp_path: Path) -> None:
    path, frame = wine
    config = configure("layered", {"evolution.generations": 2, "evolution.max_networks": 4})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = evolve(frame, config, progress=False)
    assert any("left out" in str(one.message) for one in told)
    model = result.module
    backwards = frame[frame.columns[::-1]]
    assert model.predict(frame) == model.predict(backwards)
    of_file = evaluate(model, path)
    assert isinstance(of_file, Evaluation)
    frame.to_parquet(tmp_path / "wine.parquet")
    for data in (frame, (frame.drop(columns=LABEL), frame[LABEL]), tmp_path / "wine.parquet"):
        found = evaluate(model, data)
        assert isinstance(found, Evaluation)
        assert [one.sure for one in found.answers] == [one.sure for one in of_file.answers]
        assert found.tested == of_file.tested
    with pytest.warns(RuntimeWarning, match=r"did not have, in the column colour \(120\)"):
        model.predict(frame.assign(colour="green"))
    with pytest.raises(DataError, match="DataFrame lacks the column ash"):
        model.predict(frame.drop(columns="ash"))
