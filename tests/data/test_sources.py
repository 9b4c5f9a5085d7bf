"""Other ways to bring pictures: labels in a CSV file, archives, collections in Python; and groups."""

from __future__ import annotations

import csv
import io
import stat
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from epicortex.data import DataOptions, DataSet, load
from epicortex.errors import DataError

DIGITS = load_digits()


def digit(number: int) -> Image.Image:
    return Image.fromarray((DIGITS.images[number] * 255 / 16).astype(np.uint8))


def flat(folder: Path, count: int = 120, inner: str = "img") -> Path:
    """Pictures side by side in one folder, and their classes in a CSV file."""
    (folder / inner).mkdir(parents=True)
    for number in range(count):
        digit(number).save(folder / inner / f"{number:03}.png")
    rows = [(f"{number:03}.png", f"digit {DIGITS.target[number]}") for number in range(count)]
    table(folder / "labels.csv", ("file", "shows"), rows)
    return folder


def table(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def opened(source: Any, tmp_path: Path, **options: Any) -> DataSet:
    return load(source, data_dir=tmp_path / "data", options=DataOptions(**options))


def pairs(data: DataSet) -> set[tuple[bytes, str]]:
    """Every picture with the name of its class, whatever part it is in."""
    parts = [(data.x_train, data.y_train), (data.x_test, data.y_test)]
    if data.x_val is not None and data.y_val is not None:
        parts.append((data.x_val, data.y_val))
    return {
        (row.tobytes(), data.classes[label])
        for x, y in parts
        for row, label in zip(x, y.tolist(), strict=True)
    }


def expected(count: int = 120) -> set[tuple[bytes, str]]:
    return {(np.asarray(digit(n)).tobytes(), f"digit {DIGITS.target[n]}") for n in range(count)}


@pytest.mark.parametrize("inner", ["", "img", "a/b"])
def test_labels_in_a_csv_beside_the_pictures(tmp_path: Path, inner: str) -> None:
    folder = flat(tmp_path / "flat", inner=inner)
    for source in (folder, folder / "labels.csv"):
        data = opened(source, tmp_path)
        assert pairs(data) == expected()
        assert data.input_shape == (1, 8, 8)
    (folder / inner / "007.png").unlink()
    with pytest.raises(DataError, match=r"1 rows of labels\.csv name no picture.*007\.png \(line 9\).*skip"):
        opened(folder, tmp_path)
    skipped = opened(folder, tmp_path, unreadable="skip")
    assert len(pairs(skipped)) == 119
    digit(500).save(folder / inner / "extra.png")
    assert "1 pictures stand in no row of labels.csv" in "\n".join(
        opened(folder, tmp_path, unreadable="skip").notes
    )


def test_columns_of_any_name_and_names_without_endings(tmp_path: Path) -> None:
    folder = flat(tmp_path / "flat")
    rows = [
        (f"{n:03}", DIGITS.target[n] % 2, f"w{n % 7}", "test" if n % 4 == 0 else "train") for n in range(120)
    ]
    table(folder / "labels.csv", ("id", "odd", "writer", "split"), rows)
    with pytest.raises(
        DataError, match=r"no column of labels\.csv names pictures.*--data\.image-column says"
    ):
        opened(folder, tmp_path)
    with pytest.raises(
        DataError, match=r"which column is the class\? give --data\.label-column, one of odd, writer"
    ):
        opened(folder, tmp_path, image_column="id")
    data = opened(folder, tmp_path, image_column="id", label_column="odd")
    assert (len(data.x_train), len(data.x_test)) == (90, 30)
    with pytest.raises(DataError, match="no column 'nix'; it has id, odd"):
        opened(folder, tmp_path, image_column="nix")


def test_a_column_that_is_asked_for_goes_before_folders_and_one_that_is_not_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "plates"
    rows = []
    for number in range(120):
        place = folder / f"plate {number % 3}" / f"{number:03}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        digit(number).save(place)
        rows.append((f"{place.parent.name}/{place.name}", f"digit {DIGITS.target[number]}"))
    table(folder / "labels.csv", ("file", "shows"), rows)
    by_folder = opened(folder, tmp_path)
    assert by_folder.classes == ("plate 0", "plate 1", "plate 2")
    assert "labels.csv names pictures, too, but their folders are taken for their classes" in "\n".join(
        by_folder.notes
    )
    assert pairs(opened(folder, tmp_path, label_column="shows")) == expected()
    with pytest.raises(DataError, match=r"no column 'show' \(did you mean shows\?\); it has file, shows"):
        opened(folder, tmp_path, label_column="show")
    (folder / "labels.csv").unlink()
    with pytest.raises(DataError, match="holds no CSV file that names pictures and has the column 'shows'"):
        opened(folder, tmp_path, label_column="shows")


def test_parts_without_folders_of_classes_are_not_the_classes(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    for number in range(60):
        place = folder / ("test" if number % 5 == 0 else "train") / f"{number:03}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        digit(number).save(place)
    with pytest.raises(
        DataError, match=r"has test/, train/, but no folders of classes.*put a CSV file beside"
    ):
        opened(folder, tmp_path)
    rows = [(f"{number:03}.png", f"digit {DIGITS.target[number]}") for number in range(60)]
    table(folder / "labels.csv", ("file", "shows"), rows)
    assert pairs(opened(folder, tmp_path)) == expected(60)
    table(folder / "sample.csv", ("file", "shows"), rows)
    with pytest.raises(DataError, match=r"give that file \(labels\.csv, sample\.csv\)"):
        opened(folder, tmp_path)
    assert pairs(opened(folder / "labels.csv", tmp_path)) == expected(60)


def test_a_csv_names_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    folder = flat(tmp_path / "flat")
    digit(1).save(tmp_path / "secret.png")
    table(
        folder / "labels.csv",
        ("file", "label"),
        [("../secret.png", "a"), (str(tmp_path / "secret.png"), "b")],
    )
    with pytest.raises(DataError, match="names no picture that is in"):
        opened(folder, tmp_path)


# Archives


def zipped(folder: Path, to: Path) -> Path:
    with zipfile.ZipFile(to, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))
    return to


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tar.xz"])
def test_an_archive_is_read_like_the_folder_in_it(tmp_path: Path, ending: str) -> None:
    folder = flat(tmp_path / "flat")
    path = tmp_path / f"flat.{ending}"
    if ending == "zip":
        zipped(folder, path)
    else:
        with tarfile.open(path, f"w:{ending[4:]}") as archive:  # type: ignore[call-overload]
            archive.add(folder, "whatever")
    data = opened(path, tmp_path)
    assert data.name == "flat"
    assert pairs(data) == expected()
    assert opened(path, tmp_path).path == data.path
    assert {one.name for one in (tmp_path / "data" / "cache").iterdir()} == {
        data.path.name if data.path else ""
    }


@pytest.mark.parametrize("name", ["../../out.png", "/tmp/out.png", "a/../../out.png", "..\\out.png"])
def test_an_archive_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    picture = io.BytesIO()
    digit(0).save(picture, "PNG")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(name, picture.getvalue())
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(picture.getvalue())
        tar.addfile(member, io.BytesIO(picture.getvalue()))
    for path in (tmp_path / "bad.zip", tmp_path / "bad.tar"):
        with pytest.raises(DataError, match="a name that leads out of it"):
            opened(path, tmp_path)
    assert not list(tmp_path.rglob("out.png"))


def test_links_bombs_and_rubbish_in_archives(tmp_path: Path) -> None:
    folder = flat(tmp_path / "flat")
    with tarfile.open(tmp_path / "links.tar", "w") as tar:
        tar.add(folder, "x")
        link = tarfile.TarInfo("x/img/passwd.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert pairs(opened(tmp_path / "links.tar", tmp_path)) == expected()
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as archive:
        info = zipfile.ZipInfo("x/a.png")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="holds no pictures"):
        opened(tmp_path / "links.zip", tmp_path)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/a.png", bytes(5_000_000))
    with pytest.raises(DataError, match="holds more than 1 MB"):
        opened(tmp_path / "bomb.zip", tmp_path, max_bytes=1 << 20)
    for name in ("no.zip", "no.tar.gz"):
        (tmp_path / name).write_bytes(b"rubbish" * 100)
        with pytest.raises(DataError, match="no sound archive"):
            opened(tmp_path / name, tmp_path)


# Groups


def test_no_group_is_in_two_parts(tmp_path: Path) -> None:
    folder = flat(tmp_path / "flat", count=300)
    rows = [(f"{n:03}.png", DIGITS.target[n] % 2, f"writer {n % 30}") for n in range(300)]
    table(folder / "labels.csv", ("file", "label", "writer"), rows)
    data = opened(folder, tmp_path, group_column="writer")
    whose = {np.asarray(digit(n)).tobytes(): n % 30 for n in range(300)}
    assert data.x_val is not None
    seen = [{whose[row.tobytes()] for row in part} for part in (data.x_train, data.x_val, data.x_test)]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 30
    assert min(map(len, seen)) >= 3
    assert "groups of their own" in "\n".join(data.notes)
    again = opened(folder, tmp_path / "elsewhere", group_column="writer")
    assert again.digest == data.digest


def test_groups_are_folders_below_the_class_or_a_column_of_a_table(tmp_path: Path) -> None:
    for number in range(200):
        place = tmp_path / "plates" / str(DIGITS.target[number] % 2) / f"plate {number % 20}"
        place.mkdir(parents=True, exist_ok=True)
        digit(number).save(place / f"{number}.png")
    data = opened(tmp_path / "plates", tmp_path, group_level=1)
    whose = {np.asarray(digit(n)).tobytes(): n % 20 for n in range(200)}
    taught, asked = ({whose[row.tobytes()] for row in x} for x in (data.x_train, data.x_test))
    assert asked
    assert not taught & asked
    rows = [(*DIGITS.data[n][10:14], n % 25, DIGITS.target[n] % 2) for n in range(200)]
    table(tmp_path / "t.csv", ("a", "b", "c", "d", "who", "label"), rows)
    found = opened(tmp_path / "t.csv", tmp_path, group_column="who")
    assert found.columns == ("a", "b", "c", "d")
    assert found.x_val is not None
    x, y = DIGITS.images[:200], DIGITS.target[:200] % 2
    own = opened({"x_train": x, "y_train": y, "groups": np.arange(200) % 20}, tmp_path)
    assert own.x_val is not None
    with pytest.raises(DataError, match=r"groups has the shape \(3,\)"):
        opened({"x_train": x, "y_train": y, "groups": [1, 2, 3]}, tmp_path)
    with pytest.raises(DataError, match="only 2 groups"):
        opened({"x_train": x, "y_train": y, "groups": np.arange(200) % 2}, tmp_path)


def test_a_group_in_two_parts_of_ones_own_is_refused(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for number in range(40):
            place = tmp_path / "p" / part / str(DIGITS.target[number] % 2) / f"patient {number % 8}"
            place.mkdir(parents=True, exist_ok=True)
            digit(number + (500 if part == "test" else 0)).save(place / f"{number}.png")
    with pytest.raises(DataError, match="the group patient 0 is in train and also in test"):
        opened(tmp_path / "p", tmp_path, group_level=1)


# Collections in Python


class Pairs:
    """As torchvision has them: pictures of many sizes with the numbers of their classes."""

    classes = ("even", "odd")

    def __init__(self, first: int, count: int) -> None:
        self.numbers = range(first, first + count)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        number = self.numbers[index]
        return digit(number).resize((8 + (number % 3 == 1), 8)), int(DIGITS.target[number] % 2)


class Columns:
    """As Hugging Face has them: named columns of known kinds."""

    column_names = ("image", "label")

    def __init__(self, first: int, count: int) -> None:
        self.features = {"image": type("Image", (), {})(), "label": SimpleNamespace(names=["even", "odd"])}
        self._pairs = Pairs(first, count)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, key: int | str) -> Any:
        if isinstance(key, str):
            return [self._pairs[number][1] for number in range(len(self))]
        image, label = self._pairs[key]
        return {"image": image, "label": label}


@pytest.mark.parametrize("kind", [Pairs, Columns])
def test_collections_of_pictures_are_known_by_what_they_can_do(tmp_path: Path, kind: type[Any]) -> None:
    data = opened(kind(0, 60), tmp_path)
    assert data.classes == ("even", "odd")
    assert data.input_shape == (1, 8, 8)
    assert len(data.x_train) + len(data.x_test) == 60
    first = np.asarray(digit(0).resize((8, 8)))
    assert any(np.array_equal(row[0], first) for row in (*data.x_train, *data.x_test))
    both = opened({"train": kind(0, 60), "validation": kind(60, 20), "test": kind(80, 30)}, tmp_path)
    assert both.y_val is not None
    assert (len(both.y_train), len(both.y_val), len(both.y_test)) == (60, 20, 30)
    assert both.y_test.tolist() == [int(DIGITS.target[number] % 2) for number in range(80, 110)]
    with pytest.raises(DataError, match="the parts are a, b; train is needed"):
        opened({"a": kind(0, 60), "b": kind(60, 20)}, tmp_path)
