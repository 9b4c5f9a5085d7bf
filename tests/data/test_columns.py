"""Tables with holes and texts: prepared as scikit-learn does it, by what the training rows say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from epicortex.data import DataOptions, DataSet, load
from epicortex.data.columns import UNKNOWN, Column, Columns, filled
from epicortex.data.readers.rows import read_rows
from epicortex.errors import DataError

HOLES = ("", "NA", "?", "nan", "null")
COLOURS = ("red", "white", "rosé")


def cells(rows: int, seed: int = 1) -> tuple[list[list[str]], list[str]]:
    """Rows of wine with holes punched in, a text, an id, a date, and a column that is empty throughout."""
    rng, wine = np.random.default_rng(seed), load_wine()
    chosen = rng.permutation(len(wine.data))[:rows]
    made = []
    for number, row in enumerate(chosen):
        numbers = [
            str(rng.choice(HOLES)) if rng.random() < 0.1 else f"{value:g}" for value in wine.data[row, :4]
        ]
        colour = "" if rng.random() < 0.1 else COLOURS[int(rng.integers(0, 3))]
        made.append([f"w{number}", *numbers, colour, "", f"{number % 28 + 1:02d}.03.2024"])
    return made, [wine.target_names[wine.target[row]] for row in chosen]


HEADER = ["bottle", "alcohol", "acid", "ash", "alkali", "colour", "remarks", "tasted", "class"]


def written(path: Path, rows: list[list[str]], labels: list[str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *([*row, one] for row, one in zip(rows, labels, strict=True))])
    return path


def opened(path: Path, **options: Any) -> DataSet:
    return load(path, data_dir=path.parent / "data", options=DataOptions(**options))


def test_a_table_with_holes_is_what_scikit_learn_makes_of_it(tmp_path: Path) -> None:
    rows, labels = cells(160)
    data = opened(written(tmp_path / "wine.csv", rows, labels))
    table = data.table
    assert table is not None
    assert table.names == ("alcohol", "acid", "ash", "alkali", "colour")
    assert data.columns[4:] == ("colour=red", "colour=rosé", "colour=white", "colour missing")
    told = " ".join(data.notes)
    for name, why in (("bottle", "different texts"), ("remarks", "no values"), ("tasted", "dates")):
        assert f"the column '{name}'" in told
        assert why in told
    raw, _ = read_rows(tmp_path / "wine.csv", table)
    # the same rows, found by their numbers: what was split off is known by its order
    everything = table.encode(raw)
    keys = {row.tobytes(): place for place, row in enumerate(everything)}
    train = [keys[row.tobytes()] for row in data.x_train]
    numbers = np.array([[float(c) if _is(c) else np.nan for c in row[1:5]] for row in rows])
    texts = np.array([[row[5] or None] for row in rows], object)
    imputer = SimpleImputer(strategy="median").fit(numbers[train])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(texts[train])
    expected = np.hstack([imputer.transform(numbers), encoder.transform(texts)])
    np.testing.assert_allclose(everything, expected, rtol=1e-6)


def _is(cell: str) -> bool:
    return cell not in HOLES


def test_texts_that_training_never_had_are_no_text_at_all() -> None:
    table = Columns((Column("n", fill=3.0), Column("t", "text", categories=("a", "b"))))
    raw = np.array([[np.nan, table.columns[1].value("new")], [1, np.nan], [2, 1]], np.float32)
    assert raw[0, 1] == UNKNOWN
    assert table.encode(raw).tolist() == [[3, 0, 0], [1, 0, 0], [2, 0, 1]]


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=30), st.integers(0, 29))
def test_only_training_rows_say_what_there_is(texts: list[str], size: int) -> None:
    draft = Columns((Column("t", "text", categories=("a", "b", "c")),))
    raw = np.array([[draft.columns[0].value(text)] for text in texts], np.float32)
    fitted = draft.fitted(raw[: size + 1])
    known = texts[: size + 1]
    assert fitted.columns[0].categories == tuple(sorted(set(known) - {""}))
    assert fitted.columns[0].missing == ("" in known)
    if fitted.inputs:
        out = fitted.encode(raw, draft)
        expected = [text in known for text in texts]
        assert out.sum(1).tolist() == [float(one) for one in expected]


def test_tables_travel_as_plain_data() -> None:
    table = Columns((Column("a", fill=2.5), Column("b", "text", categories=("x", "y"), missing=True)))
    assert Columns.from_json(table.to_json()) == table
    for broken in ({}, {"columns": [{"name": 1}]}, {"columns": [{"name": "a", "kind": "code"}]}):
        with pytest.raises(DataError):
            Columns.from_json(broken)


def test_arrays_with_holes_are_filled_in_and_predicted_likewise() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(120, 3)), np.arange(120) % 2
    x[rng.random(x.shape) < 0.1] = np.nan
    data = load((x, y))
    assert data.table is not None
    assert np.isfinite(data.x_train).all()
    np.testing.assert_allclose(filled(data.table, x[:5].astype(np.float32), 3), data.table.encode(x[:5]))
    assert filled(None, x, 3) is x


@pytest.mark.parametrize(
    ("cells_", "says"),
    [
        (["1", "2", "x", "4"], "line 4, column 'a' holds 'x', which is not a number"),
        (["1", "inf", "2", "3"], "infinite"),
        (["", "NA", "?", "-"], "no column with values"),
    ],
)
def test_a_column_that_makes_no_sense_is_one_line(tmp_path: Path, cells_: list[str], says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,label\n" + "".join(f"{one},{'xy'[n % 2]}\n" for n, one in enumerate(cells_)))
    with pytest.raises(DataError, match=says):
        opened(path, min_per_class=1, test_fraction=0.0)


def test_several_columns_of_labels_and_of_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "t.csv"
    rows = rng.normal(size=(60, 4))
    lines = [f"{a:.3f},{b:.3f},{int(c > 0)},{int(d > 0)},{c:.3f}" for a, b, c, d in rows]
    path.write_text("u,v,wet,cold,depth\n" + "\n".join(lines))
    sets = opened(path, label_column="wet,cold", test_fraction=0.0)
    assert (sets.task, sets.classes, sets.columns) == ("multilabel", ("wet", "cold"), ("u", "v", "depth"))
    numbers = opened(path, label_column="depth, wet", test_fraction=0.0)
    assert (numbers.task, numbers.classes) == ("regression", ("depth", "wet"))
    np.testing.assert_allclose(numbers.y_train[:, 0], rows[:, 2], atol=1e-3)
    with pytest.raises(DataError, match="no column 'warm'"):
        opened(path, label_column="wet,warm")
    with pytest.raises(DataError, match="several label columns"):
        opened(path, label_column="wet,cold", task="classes")


def test_parquet_with_holes_texts_and_dates_equals_the_same_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, labels = cells(100)
    plain = opened(written(tmp_path / "t.csv", rows, labels))
    columns: dict[str, Any] = {name: [row[place] for row in rows] for place, name in enumerate(HEADER[:-1])}
    for name in HEADER[1:5]:
        columns[name] = [float(cell) if _is(cell) else None for cell in columns[name]]
    columns["colour"] = [cell or None for cell in columns["colour"]]
    columns["tasted"] = arrow.array([0] * 100, arrow.timestamp("s"))
    columns["remarks"] = arrow.array([None] * 100, arrow.float64())
    parquet.write_table(arrow.table({**columns, "class": labels}), tmp_path / "t.parquet")
    data = load(tmp_path / "t.parquet", data_dir=tmp_path / "data")
    assert data.digest == plain.digest
    assert data.table == plain.table
