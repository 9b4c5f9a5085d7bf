"""People's own data: pictures, `.npz`, tables, arrays, torch data sets, and what people are told."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import resource
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from epicortex.data import DataOptions, DataSet, load, read_image
from epicortex.data.readers.frames import cells_of
from epicortex.data.readers.parquet import read_columns
from epicortex.data.readers.pictures import look
from epicortex.errors import DataError

RNG = np.random.default_rng(11)


def picture(size: tuple[int, int] = (10, 12), mode: str = "RGB", value: int | None = None) -> Image.Image:
    """(height, width) pixels, random unless `value` is given."""
    channels = len(mode) if mode in ("RGB", "RGBA", "LA") else 1
    shape = (*size, channels)[: 3 if channels > 1 else 2]
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8) if value is None else np.full(shape, value, np.uint8)
    return Image.fromarray(pixels).convert(mode)


def put(path: Path, image: Image.Image | None = None, **how: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image or picture()).save(path, **how)
    return path


def fill(folder: Path, classes: tuple[str, ...] = ("cat", "dog"), count: int = 12, **kind: Any) -> bool:
    for name in classes:
        for number in range(count):
            put(folder / name / f"{number:03}.png", picture(**kind))
    return True


def opened(folder: Path, tmp_path: Path, **options: Any) -> DataSet:
    return load(folder, data_dir=tmp_path / "data", options=DataOptions(**options))


def told(data: DataSet) -> str:
    return "\n".join(data.notes)


# Folders of pictures


def test_a_folder_for_each_class_becomes_a_data_set(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=10)
    first = np.asarray(Image.open(tmp_path / "pets" / "cat" / "000.png")).transpose(2, 0, 1)
    data = opened(tmp_path / "pets", tmp_path)
    assert data.name == "pets"
    assert data.classes == ("cat", "dog")
    assert data.input_shape == (3, 10, 12)
    assert data.x_train.dtype == np.uint8
    assert (len(data.x_train), len(data.x_test)) == (16, 4)
    assert np.bincount(data.y_test).tolist() == [2, 2]
    assert data.class_counts() == {"cat": 8, "dog": 8}
    everything = np.concatenate([data.x_train, data.x_test])
    assert any(np.array_equal(row, first) for row in everything)
    scaled = data.scaling.apply(data.x_train)
    np.testing.assert_allclose(scaled.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(axis=(0, 2, 3)), 1, atol=1e-5)
    assert "4 of 20 samples were set aside for testing" in told(data)
    assert data.path is not None
    assert data.path.parent == tmp_path / "data" / "cache"


def test_the_result_does_not_depend_on_threads_or_cache(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=80)
    one = opened(tmp_path / "pets", tmp_path / "a", decode_workers=1)
    four = opened(tmp_path / "pets", tmp_path / "b", decode_workers=4)
    assert one.digest == four.digest == opened(tmp_path / "pets", tmp_path / "a", decode_workers=3).digest
    assert len(list((tmp_path / "a" / "data" / "cache").iterdir())) == 1


def test_given_parts_are_kept_apart(tmp_path: Path) -> None:
    for part, count in (("train", 6), ("val", 3), ("test", 2)):
        fill(tmp_path / "pets" / part, count=count)
    data = opened(tmp_path / "pets", tmp_path)
    assert data.x_val is not None
    assert (len(data.x_train), len(data.x_val), len(data.x_test)) == (12, 6, 4)
    assert data.classes == ("cat", "dog")


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    fill(tmp_path / "vehicles", ("bus", "train"))
    assert opened(tmp_path / "vehicles", tmp_path).classes == ("bus", "train")


def test_val_without_test_still_gets_a_test_part(tmp_path: Path) -> None:
    for part, count in (("Train", 10), ("valid", 3)):
        fill(tmp_path / "pets" / part, count=count)
    data = opened(tmp_path / "pets", tmp_path)
    assert data.x_val is not None
    assert (len(data.x_train), len(data.x_val), len(data.x_test)) == (16, 6, 4)


def test_no_test_part_is_made_if_none_is_wanted(tmp_path: Path) -> None:
    fill(tmp_path / "pets")
    data = opened(tmp_path / "pets", tmp_path, test_fraction=0.0)
    assert (len(data.x_train), len(data.x_test)) == (24, 0)
    assert data.notes == ()


@pytest.mark.parametrize(
    ("ending", "how"),
    [("png", {}), ("jpg", {"quality": 95}), ("JPEG", {}), ("webp", {"lossless": True}), ("bmp", {})],
)
def test_every_usual_format_is_read(tmp_path: Path, ending: str, how: dict[str, Any]) -> None:
    for name, value in (("dark", 40), ("light", 200)):
        for number in range(10):
            put(tmp_path / "tones" / name / f"{number}.{ending}", picture(value=value + number), **how)
    data = opened(tmp_path / "tones", tmp_path)
    means = data.x_train.reshape(len(data.x_train), -1).mean(axis=1)
    assert (means[data.y_train == 0] < 60).all()
    assert (means[data.y_train == 1] > 190).all()


def test_sizes_and_modes_are_made_alike_and_reported(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=10)
    put(tmp_path / "pets" / "cat" / "large.png", picture((40, 20)))
    for mode in ("L", "1", "LA", "P", "RGBA", "CMYK", "I;16"):
        image = (
            Image.fromarray(np.full((10, 12), 40_000, np.uint16))
            if mode == "I;16"
            else picture().convert(mode)
        )
        ending = "jpg" if mode == "CMYK" else "png"
        put(tmp_path / "pets" / "dog" / f"mode-{mode}.{ending}", image)
    data = opened(tmp_path / "pets", tmp_path)
    assert data.input_shape == (3, 10, 12)
    assert "1 of 28 images were resized to 10 × 12" in told(data)
    assert "4 of 28 images were converted to RGB" in told(data)


def test_gray_pictures_have_one_channel_unless_asked_otherwise(tmp_path: Path) -> None:
    fill(tmp_path / "pets", mode="L")
    assert opened(tmp_path / "pets", tmp_path).input_shape == (1, 10, 12)
    assert opened(tmp_path / "pets", tmp_path, channels="rgb").input_shape == (3, 10, 12)
    fill(tmp_path / "colourful")
    assert opened(tmp_path / "colourful", tmp_path, channels="gray").input_shape == (1, 10, 12)


def test_the_size_is_the_common_one_else_the_median_and_never_too_large(tmp_path: Path) -> None:
    for number, side in enumerate((8, 10, 12, 30, 31)):
        fill(tmp_path / "mixed" / "train", count=2, size=(side, side + 1))
        for name in ("cat", "dog"):
            for index in range(2):
                (tmp_path / "mixed" / "train" / name / f"{index:03}.png").rename(
                    tmp_path / "mixed" / "train" / name / f"{number}-{index}.png"
                )
    assert opened(tmp_path / "mixed", tmp_path).input_shape == (3, 12, 13)
    fill(tmp_path / "photos", size=(300, 400))
    data = opened(tmp_path / "photos", tmp_path, max_side=64)
    assert data.input_shape == (3, 48, 64)
    assert "24 of 24 images were resized to 48 × 64 (--data.image-size sets another size)" in told(data)
    # few pictures may be large, many may not
    assert opened(tmp_path / "photos", tmp_path).input_shape == (3, 168, 224)
    data = opened(tmp_path / "photos", tmp_path, total_pixels=24 * 90 * 120)
    assert data.input_shape == (3, 90, 120)
    assert "24 of 300 × 400 would take longer; --data.image-size 300,400 keeps their size" in told(data)
    assert opened(tmp_path / "photos", tmp_path, total_pixels=1).input_shape == (3, 48, 64)
    assert opened(tmp_path / "photos", tmp_path, image_size=(20, 30)).input_shape == (3, 20, 30)


def test_a_picture_taken_sideways_is_turned_upright(tmp_path: Path) -> None:
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    path = put(tmp_path / "p.jpg", Image.fromarray(pixels), exif=exif, quality=95)
    got = read_image(path, (1, 40, 20))[0]
    assert got[:18].mean() > 240
    assert got[22:].mean() < 15


def test_transparent_is_white_and_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    clear = put(tmp_path / "clear.png", Image.new("RGBA", (4, 4), (200, 0, 0, 0)))
    assert (read_image(clear, (3, 4, 4)) == 255).all()
    deep = put(tmp_path / "deep.png", Image.fromarray(np.full((4, 4), 0x8040, np.uint16)))
    assert (read_image(deep, (1, 4, 4)) == 0x80).all()


def test_pictures_that_do_not_open_are_listed_and_skipped_or_refused(tmp_path: Path) -> None:
    fill(tmp_path / "pets")
    whole = put(tmp_path / "whole.png", picture((50, 50))).read_bytes()
    (tmp_path / "pets" / "cat" / "broken.png").write_bytes(b"not a picture")
    (tmp_path / "pets" / "dog" / "half.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "pets" / "dog" / "empty.jpg").write_bytes(b"")
    data = opened(tmp_path / "pets", tmp_path, unreadable="skip")
    assert len(data.x_train) + len(data.x_test) == 24
    assert "3 of 27 pictures were left out" in told(data)
    for name in ("broken.png", "half.png", "empty.jpg"):
        assert name in told(data)
    with pytest.raises(DataError, match=r"(broken|half|empty)\.(png|jpg) does not open.*data\.unreadable"):
        opened(tmp_path / "pets", tmp_path)
    (tmp_path / "pets" / "cat" / "second.png").write_bytes(b"not a picture")
    with pytest.raises(DataError, match="4 of 28 pictures do not open") as caught:
        opened(tmp_path / "pets", tmp_path)
    assert all(name in str(caught.value) for name in ("broken.png", "half.png", "empty.jpg", "second.png"))


def test_a_folder_where_nothing_opens_is_one_line(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / "a.png").write_text("?")
    with pytest.raises(DataError, match="none of the 2 pictures"):
        opened(tmp_path / "pets", tmp_path, unreadable="skip")


def test_a_picture_that_claims_to_be_huge_is_never_decoded(tmp_path: Path) -> None:
    fill(tmp_path / "pets")
    raw = bytearray(put(tmp_path / "pets" / "cat" / "huge.png").read_bytes())
    raw[16:24] = (60_000).to_bytes(4, "big") * 2
    import zlib

    raw[29:33] = zlib.crc32(raw[12:29]).to_bytes(4, "big")
    (tmp_path / "pets" / "cat" / "huge.png").write_bytes(raw)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = opened(tmp_path / "pets", tmp_path, unreadable="skip")
    assert "huge.png" in told(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    with pytest.raises(DataError, match="200 × 300 pixels, more than the 1000 allowed"):
        read_image(put(tmp_path / "p.png", picture((300, 200))), (3, 8, 8), max_pixels=1000)


def test_only_the_allowed_formats_are_opened_whatever_the_name_says(tmp_path: Path) -> None:
    icon = io.BytesIO()
    picture().save(icon, "ICO")
    (tmp_path / "p.png").write_bytes(icon.getvalue())
    with pytest.raises(DataError, match="does not open as a picture: it is damaged, or none of PNG, JPEG"):
        read_image(tmp_path / "p.png", (3, 8, 8))


def test_names_with_line_breaks_are_told_on_one_line(tmp_path: Path) -> None:
    fill(tmp_path / "pets", ("cat", "dog\n\x1b[31m"), count=5)
    (tmp_path / "pets" / "cat" / "two\nlines.png").write_bytes(b"?")
    data = opened(tmp_path / "pets", tmp_path, unreadable="skip")
    assert data.classes == ("cat", "dog\n\x1b[31m")
    assert "two?lines.png" in told(data)
    assert "dog??[31m" in told(data)
    assert all(note.isprintable() for note in data.notes)


def test_hidden_files_other_files_and_links_that_lead_away_are_ignored(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=10)
    outside = put(tmp_path / "outside" / "secret.png")
    cat = tmp_path / "pets" / "cat"
    (cat / ".DS_Store").write_bytes(b"x")
    (cat / "Thumbs.db").write_bytes(b"x")
    (cat / "._001.png").write_bytes(b"x")
    (tmp_path / "pets" / ".git").mkdir()
    (tmp_path / "pets" / "__MACOSX").mkdir()
    (tmp_path / "pets" / "readme.txt").write_text("hello")
    (cat / "away.png").symlink_to(outside)
    (cat / "loop").symlink_to(tmp_path / "pets")
    (tmp_path / "pets" / "elsewhere").symlink_to(outside.parent)
    (cat / "twin.png").symlink_to(cat / "000.png")
    os.mkfifo(cat / "pipe.png")
    data = opened(tmp_path / "pets", tmp_path)
    assert data.classes == ("cat", "dog")
    assert len(data.x_train) + len(data.x_test) == 21
    (ignored,) = [note for note in data.notes if note.startswith("ignored:")]
    for what in ("1 links that lead out of the folder", "2 links to folders", "1 .db files", "1 .png files"):
        assert what in ignored


def test_a_class_without_a_picture_that_can_be_read_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "pets")
    for name in ("a.xcf", "b.xcf", "notes.txt"):
        (tmp_path / "pets" / "emu").mkdir(exist_ok=True)
        (tmp_path / "pets" / "emu" / name).write_bytes(b"?")
    with pytest.raises(DataError, match=r"in emu/ \(2 \.xcf files, 1 \.txt files\): files ending in \.bmp"):
        opened(tmp_path / "pets", tmp_path)
    for path in (tmp_path / "pets" / "emu").iterdir():
        path.rename(path.with_suffix(".png"))
    with pytest.raises(DataError, match="no picture of the class emu opens"):
        opened(tmp_path / "pets", tmp_path, unreadable="skip")


def test_tiff_and_gif_are_read_and_further_pages_are_told(tmp_path: Path) -> None:
    digits = load_digits()
    for number, (image, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        if label > 2 or number > 200:
            continue
        pixels = Image.fromarray((image * 255 / 16).astype(np.uint8))
        how: dict[str, Any] = {"save_all": True, "append_images": [pixels]} if number % 2 else {}
        put(tmp_path / "d" / str(label) / f"{number}{('.tif', '.gif', '.tiff')[label]}", pixels, **how)
    data = opened(tmp_path / "d", tmp_path)
    assert data.classes == ("0", "1", "2")
    assert data.input_shape == (1, 8, 8)
    assert "files hold several pictures; the first of each is read" in told(data)
    first = Image.fromarray((digits.images[0] * 255 / 16).astype(np.uint8))
    assert any(np.array_equal(row[0], np.asarray(first)) for row in (*data.x_train, *data.x_test))


def test_twelve_bits_in_a_file_of_sixteen_keep_their_contrast(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(10):
            values = RNG.integers(0, 4096, (6, 6)).astype(np.uint16)
            values[0, 0] = 4095
            put(tmp_path / "pets" / name / f"{number}.tif", Image.fromarray(values))
    data = opened(tmp_path / "pets", tmp_path)
    assert data.bits == 12
    assert data.x_train.max() == 255
    assert "have more than 8 bits a pixel and reach 4095: the highest 8 of 12 bits are read" in told(data)
    assert DataSet.open(data.save(tmp_path / "copy.safetensors").path or "").bits == 12


@pytest.mark.parametrize("ending", ["tif", "png", "jpg", "webp"])
def test_pictures_that_lie_on_their_side_are_seen_upright(tmp_path: Path, ending: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    bright = np.zeros((8, 16), np.uint8)
    bright[:, :8] = 255  # left as stored, on top as seen
    path = put(tmp_path / f"p.{ending}", Image.fromarray(bright), exif=exif)
    assert (look(path).height, look(path).width) == (16, 8)
    seen = read_image(path, (1, 16, 8))[0]
    assert seen[:6].mean() > 200
    assert seen[10:].mean() < 50


def test_floating_point_and_too_deep_pictures_say_what_to_do(tmp_path: Path) -> None:
    fractions = put(tmp_path / "f.tif", Image.fromarray(np.zeros((4, 4), np.float32)))
    with pytest.raises(DataError, match=r"its pixels are fractions.*save it with 8 or 16 bits"):
        read_image(fractions, (1, 4, 4))
    deep = put(tmp_path / "d.tif", Image.fromarray(np.full((4, 4), 70_000, np.int32)))
    with pytest.raises(DataError, match="its pixels go up to 70000"):
        look(deep)


def test_identical_images_in_two_parts_are_reported_by_name(tmp_path: Path) -> None:
    for part in ("train", "test"):
        fill(tmp_path / "pets" / part, count=10)
    leaked = put(tmp_path / "pets" / "train" / "cat" / "leaked.png")
    (tmp_path / "pets" / "test" / "cat" / "copy.png").write_bytes(leaked.read_bytes())
    (tmp_path / "pets" / "train" / "dog" / "wrong.png").write_bytes(leaked.read_bytes())
    notes = told(opened(tmp_path / "pets", tmp_path))
    assert "1 images of test are also in train: test/cat/copy.png = train/cat/leaked.png" in notes
    assert "1 training images are copies of others" in notes
    assert "identical training images with different classes: train/cat/leaked.png" in notes


def test_a_test_part_split_off_holds_no_image_that_is_taught(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(30):
            put(
                tmp_path / "pets" / name / f"{number}.png",
                picture(value=number // 3 + (100 if name == "dog" else 0)),
            )
    data = opened(tmp_path / "pets", tmp_path, test_fraction=0.5)
    assert "also in" not in told(data)
    taught = {row.tobytes() for row in data.x_train}
    assert all(row.tobytes() not in taught for row in data.x_test)


def test_small_and_uneven_classes_are_told_and_tiny_ones_refused(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=5)
    assert "fewer than 10 training samples: cat (4), dog (4)" in told(opened(tmp_path / "pets", tmp_path))
    put(tmp_path / "pets" / "emu" / "only.png")
    with pytest.raises(DataError, match=r"too few training samples in the class emu \(1\); at least 2"):
        opened(tmp_path / "pets", tmp_path)
    fill(tmp_path / "uneven", ("cat",), count=130)
    fill(tmp_path / "uneven", ("dog",), count=13)
    assert "the classes are uneven: cat has 104 samples, dog 10" in told(
        opened(tmp_path / "uneven", tmp_path)
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda root: root.mkdir(), "no class folders"),
        (lambda root: put(root / "a.png"), "holds pictures, but no class folders: make one folder for each"),
        (lambda root: (root / "cat").mkdir(parents=True), "no class folders"),
        (lambda root: fill(root, ("cat",)), "only the class cat"),
        (lambda root: (fill(root / "train"), fill(root / "test", ("cat", "emu"))), "test/ has the class emu"),
        (lambda root: (fill(root / "train"), fill(root / "extra")), "also extra/"),
        (
            lambda root: ((root / "train" / "cat").mkdir(parents=True), fill(root / "test")),
            "no pictures for training",
        ),
    ],
)
def test_a_folder_that_makes_no_sense_is_one_line(tmp_path: Path, make: Any, says: str) -> None:
    make(tmp_path / "pets")
    with pytest.raises(DataError, match=says) as caught:
        opened(tmp_path / "pets", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_changed_folder_is_read_again(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=10)
    first = opened(tmp_path / "pets", tmp_path)
    put(tmp_path / "pets" / "cat" / "new.png")
    second = opened(tmp_path / "pets", tmp_path)
    assert len(second.x_train) + len(second.x_test) == 21
    assert first.digest != second.digest
    assert second.path == first.path


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=70)
    seen: list[tuple[str, int, int]] = []
    load(tmp_path / "pets", data_dir=tmp_path, progress=lambda *now: seen.append(now))
    assert seen[-1] == ("reading train", 140, 140)
    assert {what for what, _, _ in seen} == {"looking at", "reading train"}


@pytest.mark.slow
def test_fifty_thousand_pictures_stay_under_a_gigabyte(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (1000, 32, 32, 3), dtype=np.uint8)
    for number in range(50_000):
        image = pixels[number % 1000] ^ np.uint8(number // 1000)
        put(
            tmp_path / "pets" / f"class{number % 10}" / f"{number}.png",
            Image.fromarray(image),
            compress_level=0,
        )
    script = textwrap.dedent("""
        import resource, sys
        from pathlib import Path
        from epicortex.data import load
        data = load(Path(sys.argv[1]), data_dir=Path(sys.argv[2]))
        assert len(data.x_train) + len(data.x_test) == 50_000
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """)
    command = [sys.executable, "-c", script, str(tmp_path / "pets"), str(tmp_path / "data")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 1_000_000


# Arrays


def test_arrays_of_every_usual_layout_become_channels_first() -> None:
    y = np.arange(20) % 2
    shapes = {
        (20, 7): (7,),
        (20, 8, 9): (1, 8, 9),
        (20, 8, 9, 3): (3, 8, 9),
        (20, 3, 8, 9): (3, 8, 9),
        (20, 1, 8, 9): (1, 8, 9),
        (20, 5, 6, 7, 1): (1, 5, 6, 7),
    }
    for shape, expected in shapes.items():
        x = RNG.random(shape)
        assert load((x, y)).input_shape == expected
    unclear = RNG.integers(0, 256, (20, 3, 4, 3), dtype=np.uint8)
    with pytest.raises(DataError, match=r"data\.layout"):
        load((unclear, y))
    assert load((unclear, y), options=DataOptions(layout="channels_last")).input_shape == (3, 3, 4)
    sound = load((RNG.random((20, 100, 2)), y), options=DataOptions(layout="channels_last"))
    assert sound.input_shape == (2, 100)


def test_images_become_bytes_where_that_changes_no_value() -> None:
    raw = RNG.integers(0, 256, (30, 1, 16, 16), dtype=np.uint8)
    raw[0, 0] = np.arange(256).reshape(16, 16)
    y = np.arange(30) % 3
    plain = load((raw, y))
    for same in (raw.astype(np.float32), raw.astype(float), raw.astype(np.int64)):
        data = load((same, y))
        assert data.x_train.dtype == np.uint8
        assert data.digest == plain.digest
    for other in (raw / 255.0, raw / 255.0 - 0.5, raw * 2.0):
        data = load((other, y), options=DataOptions(test_fraction=0))
        assert data.x_train.dtype == np.float32
        assert np.array_equal(data.x_train, other.astype(np.float32))
        assert data.scaling.divisor == 1.0
    mask = load((raw > 127, y))
    assert mask.x_train.dtype == np.uint8
    assert mask.scaling.divisor == 1.0


def test_labels_may_be_names_or_any_whole_numbers() -> None:
    x = RNG.random((30, 4))
    assert load((x, ["b", "a", "c"] * 10)).classes == ("a", "b", "c")
    assert load((x, np.array([10, -5, 2] * 10))).classes == ("-5", "2", "10")
    assert load((x, np.array([1.0, 0.0, 1.0] * 10))).classes == ("0", "1")
    assert load((x, np.array([True, False, True] * 10))).classes == ("0", "1")
    assert load((x, np.array([["a"], ["b"], ["b"]] * 10))).classes == ("a", "b")
    assert load((x, torch.arange(30) % 2)).classes == ("0", "1")


def test_four_arrays_are_training_and_test() -> None:
    x, y = RNG.random((30, 4)), np.arange(30) % 3
    data = load((x[:20], y[:20], x[20:], y[20:]))
    np.testing.assert_array_equal(data.x_test, x[20:].astype(np.float32))
    assert data.path is None
    named = load({"x_train": x[:20], "y_train": y[:20], "x_val": x[20:], "y_val": y[20:]})
    assert named.x_val is not None
    assert len(named.x_val) == 10


def test_a_column_that_never_changes_does_no_harm() -> None:
    x = RNG.random((20, 3))
    x[:, 1] = 1e6
    data = load((x, np.arange(20) % 2))
    assert np.isfinite(data.scaling.apply(data.x_train)).all()
    assert data.scaling.std[1] == 1.0


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((np.zeros((4, 2)), np.zeros(3)), "x_train has 4 samples, y_train 3"),
        ((np.zeros((0, 2)), np.zeros(0)), "empty"),
        ((np.zeros(4), np.zeros(4)), r"has the shape \(4,\)"),
        ((np.full((4, 2), np.nan), [0, 1, 0, 1]), "missing, infinite or too large, first in sample 0"),
        ((np.full((4, 2), 1e300), [0, 1, 0, 1]), "too large"),
        ((np.zeros((4, 2)), [0.5, 1, 0, 1]), "fractions"),
        ((np.zeros((4, 2)), [0, 0, 0, 0]), "only the class 0"),
        ((np.array([["a"]] * 4), [0, 1, 0, 1]), "numbers are needed"),
        ((np.zeros((4, 2)), np.zeros((4, 2, 2))), "one label for each sample"),
        (([[1, 2], [3]], [0, 1]), "cannot be made an array"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((4, 3)), [0, 1, 0, 1]), "must be alike"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((1, 2)), [7]), "the class '7'"),
        ((np.zeros((4, 2)), [0, 1, 0, 1], np.zeros((1, 2)), ["a"]), "must be alike"),
        ({"x_train": np.zeros((4, 2))}, "x_train and y_train are needed together"),
        ({}, "x_train and y_train"),
        (np.zeros((4, 2)), "cannot be made from ndarray"),
        (7, "cannot be made from int"),
    ],
)
def test_arrays_that_make_no_sense_are_one_line(source: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        load(source)
    assert "\n" not in str(caught.value)


# Torch data sets


class Pets(Dataset[tuple[torch.Tensor, int]]):
    classes = ("cat", "dog")

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index == self.fails_at:
            raise RuntimeError("no such pet")
        return torch.full((3, 4, 4), index / 255), index % 2


class Stream(IterableDataset[tuple[np.ndarray, str]]):
    def __iter__(self) -> Any:
        return ((np.full((6, 5, 3), number, np.uint8), "ab"[number % 2]) for number in range(20))


def test_a_torch_data_set_is_read_and_keeps_its_class_names() -> None:
    data = load(Pets())
    assert data.classes == ("cat", "dog")
    assert data.input_shape == (3, 4, 4)
    assert load((Pets(), Pets())).x_test.max() == np.float32(19 / 255)
    assert load((Pets(), Pets())).x_test.shape == (20, 3, 4, 4)
    assert load(Stream()).classes == ("a", "b")
    table = load(TensorDataset(torch.rand(20, 5), torch.arange(20) % 2))
    assert table.input_shape == (5,)


def test_an_error_in_a_persons_data_set_names_the_item() -> None:
    with pytest.raises(DataError, match="item 7 raised RuntimeError: no such pet"):
        load(Pets(fails_at=7))


# .npz


def npz(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, **arrays)
    return path


def test_npz_is_read_under_all_its_usual_names(tmp_path: Path) -> None:
    x, y = RNG.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8), np.arange(30) % 3
    full = npz(tmp_path / "full.npz", x_train=x[:20], y_train=y[:20], x_test=x[20:], y_test=y[20:])
    data = load(full, data_dir=tmp_path)
    assert data.name == "full"
    np.testing.assert_array_equal(data.x_test, x[20:].transpose(0, 3, 1, 2))
    assert data.path is not None
    med = npz(
        tmp_path / "med.npz",
        **{f"{part}_images": x for part in ("train", "val", "test")},
        **{f"{part}_labels": y[:, None] for part in ("train", "val", "test")},
    )
    assert load(med, data_dir=tmp_path).x_val is not None
    named = npz(tmp_path / "named.npz", x=x, y=y, classes=np.array(["ant", "bee", "cow"]))
    assert load(named, data_dir=tmp_path).classes == ("ant", "bee", "cow")
    np.savez(tmp_path / "order.npz", x=np.asfortranarray(x), y=y)
    assert load(tmp_path / "order.npz", data_dir=tmp_path).digest == load((x, y)).digest


def bomb(header: bytes, size: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x_train.npy", "w", force_zip64=True) as member:
            member.write(header)
            for _ in range(size >> 20):
                member.write(bytes(2**20))
        archive.writestr("y_train.npy", b"")
    return out.getvalue()


def header(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


class _Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch executed",)


def test_hostile_npz_files_are_refused_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickled = io.BytesIO()
    np.save(pickled, np.array([_Bomb()], dtype=object), allow_pickle=True)
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("x_train.npy", pickle.dumps(_Bomb()))
        archive.writestr("y_train.npy", pickle.dumps(_Bomb()))
    objects = io.BytesIO()
    with zipfile.ZipFile(objects, "w") as archive:
        archive.writestr("x_train.npy", pickled.getvalue())
        archive.writestr("y_train.npy", pickled.getvalue())
    cases = {
        "refused: 'x_train.npy' unpacks to 300 MB": bomb(header((300, 2**20)), 300 * 2**20),
        "which is not its length": bomb(header((2**39, 1)), 2**20),
        "impossible shape": bomb(header((2**50, 1)), 2**20),
        "no plain numbers or text": objects.getvalue(),
        "is not an array of numpy": plain.getvalue(),
        "not a zip file": b"hello",
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for says, content in cases.items():
        (tmp_path / "evil.npz").write_bytes(content)
        with pytest.raises(DataError, match=says) as caught:
            load(tmp_path / "evil.npz", data_dir=tmp_path)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "executed").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_an_npz_larger_than_allowed_or_without_its_arrays_is_refused(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", x=RNG.random((100, 100)), y=np.arange(100) % 2)
    with pytest.raises(DataError, match=r"data\.max_bytes"):
        load(path, data_dir=tmp_path, options=DataOptions(max_bytes=1000))
    with pytest.raises(DataError, match=r"needs the arrays x_train and y_train .*it holds a, b"):
        load(npz(tmp_path / "b.npz", a=np.zeros(3), b=np.zeros(3)), data_dir=tmp_path)


# Tables

TABLE = "width,height,label\n" + "".join(f"{n},{n * 2.5},{'ab'[n % 2]}\n" for n in range(30))


def table(tmp_path: Path, text: str, **options: Any) -> DataSet:
    (tmp_path / "t.csv").write_text(text)
    return load(tmp_path / "t.csv", data_dir=tmp_path, options=DataOptions(**options))


def test_a_csv_with_a_label_column_becomes_a_table(tmp_path: Path) -> None:
    data = table(tmp_path, TABLE, test_fraction=0.0)
    assert data.input_shape == (2,)
    assert data.classes == ("a", "b")
    np.testing.assert_array_equal(data.x_train[:, 1], np.arange(30) * np.float32(2.5))
    for delimiter in ";\t":
        other = table(tmp_path, "\ufeff" + TABLE.replace(",", delimiter), test_fraction=0.0)
        assert other.digest == data.digest
    chosen = table(tmp_path, TABLE.replace("label", "kind"), label_column="kind", test_fraction=0.0)
    assert chosen.digest == data.digest


def test_rows_that_look_like_signals_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    waves = np.cumsum(rng.normal(size=(80, 64)), axis=1).astype(np.float32)
    assert "neighbouring columns are alike, as in signals" in told(
        load((waves, np.arange(80) % 2), data_dir=tmp_path)
    )
    mixed = rng.normal(size=(80, 64)).astype(np.float32)
    assert "signals" not in told(load((mixed, np.arange(80) % 2), data_dir=tmp_path))


def test_whole_number_labels_are_sorted_as_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n % 11}\n" for n in range(44))
    assert table(tmp_path, "value,class\n" + rows).classes == tuple(map(str, range(11)))


def test_a_column_that_counts_the_rows_is_left_out(tmp_path: Path) -> None:
    rows = TABLE.splitlines()
    counted = [f",{rows[0]}"] + [f"{number},{row}" for number, row in enumerate(rows[1:])]
    data = table(tmp_path, "\n".join(counted))
    assert data.input_shape == (2,)
    assert "only counts the rows" in told(data)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 columns"),
        ("a,label\n", "no rows"),
        ('"a\nz",b\n1,2\n', r"one of a\?z, b"),
        ("a,b\n1,2\n", r"which column is the class\? give --data\.label-column, one of a, b"),
        ("a,label\n1,x,3\n", "line 2 has 3 columns, the header has 2"),
        ("a,label\n1,x\nred,y\n", "line 3, column 'a' holds 'red', which is not a number"),
        ("a,label\n1,x\ninf,y\n", "infinite"),
        ("a,label\n,x\nnan,y\n", "no column with values"),
        ("a,label\n1,\n2,x\n", "empty cells"),
        ('a,label\n"1,x\n', "sound CSV"),
        ("a,label\n1," + "x" * 200_000 + "\n", "sound CSV"),
        ("a,label\n1," + "x" * 300 + "\n", "over 200 characters"),
        ("a,label\n1," + "," * 5_000_000, "a line of more than"),
        ("," * 200_000 + "label\n", "200001 columns"),
    ],
)
def test_a_table_that_makes_no_sense_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        table(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_missing_label_column_lists_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'kind'; it has width, height, label"):
        table(tmp_path, TABLE, label_column="kind")


def test_a_csv_that_is_not_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,label\n\xff\xfe,x\n")
    with pytest.raises(DataError, match="UTF-8"):
        load(tmp_path / "t.csv", data_dir=tmp_path)


def test_parquet_equals_the_same_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"width": list(range(30)), "height": [n * 2.5 for n in range(30)], "label": ["a", "b"] * 15}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet", data_dir=tmp_path).digest == table(tmp_path, TABLE).digest
    parquet.write_table(arrow.table({**columns, "width": ["red", "blue"] * 15}), tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet", data_dir=tmp_path).columns == ("width=blue", "width=red", "height")
    parquet.write_table(arrow.table({**columns, "label": [None, "b"] * 15}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="empty cells"):
        load(tmp_path / "t.parquet", data_dir=tmp_path)
    parquet.write_table(arrow.table({**columns, "width": [1e300] * 30}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="too large"):
        load(tmp_path / "t.parquet", data_dir=tmp_path)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 hello PAR1")
    with pytest.raises(DataError, match="sound Parquet"):
        load(tmp_path / "t.parquet", data_dir=tmp_path)


def test_parquet_without_its_library_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(DataError, match="pip install pyarrow"):
        load(tmp_path / "t.parquet", data_dir=tmp_path)


@pytest.mark.parametrize("source", ["x" * 5000, "~nobody-here/pets", "a\0b", "", "no/such/file.csv"])
def test_a_path_that_cannot_be_is_one_line(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        load(source, data_dir=tmp_path)
    assert len(str(caught.value)) < 1000


def test_a_file_of_another_kind_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.pkl").write_bytes(b"")
    with pytest.raises(DataError, match=r"ending in \.npz, \.csv, \.parquet"):
        load(tmp_path / "t.pkl")


# What must not go unnoticed


def test_files_exchanged_with_equal_times_and_sizes_are_noticed(tmp_path: Path) -> None:
    """A cache of the old labels would train a new run on them, and nobody would know."""
    pets = tmp_path / "pets"
    fill(pets, count=10)
    for path in pets.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))
    before = opened(pets, tmp_path)
    assert opened(pets, tmp_path).digest == before.digest
    cats, dogs = pets / "cat", pets / "dog"
    cats.rename(pets / "x")
    dogs.rename(cats)
    (pets / "x").rename(dogs)
    for path in pets.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))
    after = opened(pets, tmp_path)
    assert after.digest != before.digest


def test_a_table_changed_in_place_with_its_times_put_back_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("v,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(40)))
    stat = path.stat()
    before = load(path, data_dir=tmp_path)
    path.write_text("v,label\n" + "".join(f"{n},{'ba'[n % 2]}\n" for n in range(40)))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert load(path, data_dir=tmp_path).digest != before.digest


def test_long_names_in_a_small_table_take_no_room(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 400_000
    numbers = arrow.array(np.arange(rows) % 2, arrow.int32())
    names = arrow.DictionaryArray.from_arrays(numbers, arrow.array(["a" * 200, "b" * 200]))
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"v": numbers, "label": names}), path)
    assert path.stat().st_size < 500_000
    tracemalloc.start()
    try:
        data = load(path, data_dir=tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert data.classes == ("a" * 200, "b" * 200)
    assert peak < 100e6  # as an array of texts they would take 320 MB
    with pytest.raises(DataError, match=r"more than data\.max_bytes allows"):
        load(path, data_dir=tmp_path, options=DataOptions(max_bytes=rows * 8))


_READ = """
import json, resource, sys
from pathlib import Path
from epicortex.data import DataOptions, load
from epicortex.data.readers.parquet import read_columns
from epicortex.errors import DataError

path, options, names = Path(sys.argv[1]), DataOptions(**json.loads(sys.argv[2])), sys.argv[3:]
told = []
for read in (lambda: load(path, data_dir=path.parent, options=options), lambda: read_columns(path, names)):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        result = read()
        told.append("" if not isinstance(result, dict) else [len(cells) for cells in result.values()])
    except DataError as error:
        told.append(str(error))
    told.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
print(json.dumps(told))
"""


@pytest.mark.parametrize("place", ["a text", "bytes", "a list", "a fixed length", "the group", "the label"])
def test_no_column_of_a_small_parquet_file_takes_much_room(tmp_path: Path, place: str) -> None:
    """One text that all rows share, in a file of 30 kB: as one for each row it would take 600 MB."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, long = 6000, "x" * 100_000
    shared: dict[str, Callable[[], Any]] = {
        "a text": lambda: [long] * rows,
        "bytes": lambda: [long.encode()] * rows,
        "a list": lambda: [[long]] * rows,
        "a fixed length": lambda: arrow.array([long[:10_000].encode()] * rows, arrow.binary(10_000)),
        "the group": lambda: [long if row % 2 else str(row % 20) for row in range(rows)],
        "the label": lambda: [[long]] * rows,
    }
    columns: dict[str, Any] = {"v": np.arange(rows) % 7, "label": ["a", "b"] * (rows // 2)}
    mine = "label" if place == "the label" else "w"
    columns[mine] = shared[place]()
    path = tmp_path / "t.parquet"
    # without the schema of Arrow, which would say that texts are dictionaries
    parquet.write_table(arrow.table(columns), path, store_schema=False)
    assert path.stat().st_size < 300_000
    options = {"max_bytes": 1 << 25, "group_column": "w" if place == "the group" else None}
    words = [sys.executable, "-c", _READ, str(path), json.dumps(options), "v", mine]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded, first, read, second = json.loads(done.stdout)
    assert ("neither numbers nor texts" in loaded) == (place == "the label")
    assert (loaded == "") == (place != "the label")
    assert (read == [rows, rows]) == (place not in ("a list", "the label"))
    assert first < 150  # the library that splits, too
    assert second < (100 if place != "a fixed length" else 300)


def test_truth_with_holes_is_numbers_to_the_champion_as_it_was_in_training(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    truth = [None if row % 9 == 0 else row % 2 == 0 for row in range(40)]
    whole = [None if row == 3 else row for row in range(40)]
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"t": truth, "n": whole, "label": ["a", "b"] * 20}), path)
    table = load(path, data_dir=tmp_path, options=DataOptions(test_fraction=0)).table
    assert table is not None
    assert [one.kind for one in table.columns] == ["number", "number"]
    seen = cells_of(read_columns(path, table.names), table)
    expected = [
        [math.nan if one is None else float(one) for one in row] for row in zip(truth, whole, strict=True)
    ]
    np.testing.assert_array_equal(seen, np.array(expected, np.float32))
    frame = {"t": np.array(truth, object), "n": whole}
    np.testing.assert_array_equal(cells_of(frame, table), seen)


def test_the_labels_of_a_csv_count_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("v,label\n" + "".join(f"{n % 7},{n:0190d}x\n" for n in range(1000)))
    with pytest.raises(DataError, match=r"data\.max_bytes"):
        load(path, data_dir=tmp_path, options=DataOptions(max_bytes=100_000))


def test_what_a_killed_process_left_in_the_cache_is_removed(tmp_path: Path) -> None:
    fill(tmp_path / "pets", count=10)
    cache = tmp_path / "data" / "cache"
    cache.mkdir(parents=True)
    code = (
        "import os, sys; from pathlib import Path; from epicortex.data import cachefile\n"
        "with cachefile.replacing(Path(sys.argv[1])) as stream:\n"
        "    stream.write(b'half'); stream.flush(); print(flush=True); sys.stdin.read()"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(cache / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in ("killed", "at-work")
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    writers[0].kill()
    writers[0].communicate()
    for left in cache.iterdir():
        os.utime(left, (0, 0))
    opened(tmp_path / "pets", tmp_path)
    names = sorted(path.name.split(".")[1] for path in cache.iterdir() if path.name.startswith("."))
    assert names == ["at-work"]
    writers[1].communicate()
    assert (cache / "at-work").read_bytes() == b"half"
