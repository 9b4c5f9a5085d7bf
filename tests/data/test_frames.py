"""DataFrames are read as the same table in a file is, and champions find their columns by name."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicortex import configure, evaluate, evolve
from epicortex.champion.evaluating import Evaluation
from epicortex.champion.judging import Labelling, Quantities
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


def test_a_group_column_that_is_not_there_is_refused(wine: tuple[Path, Any]) -> None:
    with pytest.raises(DataError, match="DataFrame has no column 'celar'"):
        load(wine[1], options=DataOptions(group_column="celar"))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_several_outputs_are_columns_of_a_frame_or_of_an_array(task: str) -> None:
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    y = pandas.DataFrame({"first, of two": frame["a"] * 2, "second": frame["b"] - frame["c"]})
    y = y.round(1) if task == "regression" else (y > 0).astype("Int64")
    whole = pandas.concat([frame, y], axis=1)
    assert load((frame, y)).task == task  # pandas' own whole numbers are numbers
    config = configure("layered", {"evolution.generations": 1, "evolution.max_networks": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a part was set aside for testing
        model = evolve((frame, y), config, progress=False).module
    assert model.facts.classes == ("first, of two", "second")
    of_whole = evaluate(model, whole)
    for labels in (y, y[y.columns[::-1]], y.to_numpy(np.float64)):
        found = evaluate(model, (frame, labels))
        assert isinstance(found, Quantities | Labelling)
        assert isinstance(of_whole, Quantities | Labelling)
        np.testing.assert_array_equal(found.right, of_whole.right)
        assert found.figures == of_whole.figures
    with pytest.raises(DataError, match="80 rows, and 79 labels"):
        evaluate(model, (frame, y[:79]))


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
    # whatever the parts are, holes become what they were in training
    parts = {"train": frame[:40], "test": frame[40:]}
    by_part = [evaluate(model, parts, part=part) for part in ("train", "test", "all")]
    sure = [[one.sure for one in found.answers] for found in by_part if isinstance(found, Evaluation)]
    assert sure[0] + sure[1] == sure[2] == [one.sure for one in of_file.answers]
    four = [apart for one in parts.values() for apart in (one.drop(columns=LABEL), one[LABEL])]
    found = evaluate(model, four)
    assert isinstance(found, Evaluation)
    assert [one.sure for one in found.answers] == sure[1]
    with pytest.raises(DataError, match="the data has no part val; it has train, test"):
        evaluate(model, parts, part="val")
    with pytest.warns(RuntimeWarning, match=r"did not have, in the column colour \(120\)"):
        model.predict(frame.assign(colour="green"))
    with pytest.raises(DataError, match="DataFrame lacks the column ash"):
        model.predict(frame.drop(columns="ash"))
