"""Every reader against damaged and hostile files: it gives a data set or one clear line, in bounded memory.

`READERS` lists them for any fuzzer. EPICORTEX_FUZZ_EXAMPLES sets how many files each one gets.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import resource
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from epicortex.data import DataOptions, DataSet, catalog, load, read_image
from epicortex.data.columns import Column, Columns
from epicortex.data.readers.arrays import from_arrays
from epicortex.data.readers.builtin import BuiltIn
from epicortex.data.readers.cifar import BATCHES, decode_python, read_archive, read_binary
from epicortex.data.readers.frames import cells_of, label_texts
from epicortex.data.readers.idx import read_mnist
from epicortex.data.readers.mat import read_svhn
from epicortex.data.readers.npz import from_npz
from epicortex.data.readers.parquet import from_parquet, read_columns
from epicortex.data.readers.pictures import look
from epicortex.data.readers.table import from_csv
from epicortex.errors import DataError

EXAMPLES = int(os.environ.get("EPICORTEX_FUZZ_EXAMPLES", "150"))
OPTIONS = DataOptions(
    layout="channels_first", max_bytes=2**20, min_per_class=1, test_fraction=0.0, max_pixels=10_000
)
SHAPE = (3, 4, 4)
RNG = np.random.default_rng(17)
X = RNG.integers(0, 256, (12, *SHAPE), dtype=np.uint8)
Y = np.arange(12, dtype=np.uint8) % 2


@dataclass(frozen=True)
class Reader:
    """A reader, a sound file for it, and how its changed inside becomes a file, as by compressing it."""

    name: str
    sample: Callable[[], bytes]
    read: Callable[[Path], object]
    wrap: Callable[[bytes], bytes] = bytes


def _spec(built_in: BuiltIn, train: int, test: int) -> BuiltIn:
    return replace(built_in, shape=SHAPE, train=train, test=test)


def _gzip(data: bytes) -> bytes:
    """Packed quickly, and without the date, so that the same inside is always the same file."""
    return gzip.compress(data, compresslevel=1, mtime=0)


def _idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def _beside(path: Path, name: str, content: bytes) -> Path:
    """A sound file that the reader needs besides the one under test."""
    other = path.with_name(name)
    if not other.exists():
        other.write_bytes(content)
    return other


def _read_idx(path: Path) -> object:
    spec = replace(catalog.MNIST, shape=(1, 4, 4), train=12, test=2)
    names = ("labels", "x_test", "y_test")
    rest = (_idx(Y), _idx(X[:2, 0]), _idx(Y[:2]))
    others = [_beside(path, name, content) for name, content in zip(names, rest, strict=True)]
    return read_mnist(spec, (path, *others))


def _read_labels(path: Path) -> object:
    spec = replace(catalog.MNIST, shape=(1, 4, 4), train=12, test=2)
    images = _beside(path, "x_train", _idx(X[:, 0]))
    rest = (_beside(path, "x_test", _idx(X[:2, 0])), _beside(path, "y_test", _idx(Y[:2])))
    return read_mnist(spec, (images, path, *rest))


def _binary(row: int) -> bytes:
    records = np.concatenate(
        [Y[2 * row : 2 * row + 2, None], X[2 * row : 2 * row + 2].reshape(2, -1)], axis=1
    )
    return records.tobytes()


def _read_binary(path: Path) -> object:
    others = [_beside(path, f"{batch}.bin", _binary(row)) for row, batch in enumerate(BATCHES)]
    return read_binary(_spec(catalog.CIFAR10, 10, 2), (path, *others[1:]))


def _pickle() -> bytes:
    batch = {b"data": X[:2].reshape(2, -1), b"labels": [0, 1], b"filenames": [b"a.png", b"b.png"]}
    return pickle.dumps(batch, protocol=2)


def _read_pickle(path: Path) -> object:
    return decode_python(_spec(catalog.CIFAR10, 10, 2), path, path.read_bytes(), 2)


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for row, batch in enumerate(BATCHES):
            member = tarfile.TarInfo(f"{'é' * 60}/{batch}.bin")
            member.size = len(_binary(row))
            archive.addfile(member, io.BytesIO(_binary(row)))
    return out.getvalue()


def _read_tar(path: Path) -> object:
    return read_archive(_spec(catalog.CIFAR10, 10, 2), (path,))


@cache
def _mat(count: int = 12, *, packed: bool = False) -> bytes:
    out = io.BytesIO()
    labels = np.where(Y[:count] == 0, 10, Y[:count])[:, None]
    scipy.io.savemat(out, {"X": X[:count].transpose(2, 3, 1, 0), "y": labels}, do_compression=packed)
    return b"MATLAB 5.0 MAT-file".ljust(116) + out.getvalue()[116:]  # without the date


def _pack_elements(data: bytes) -> bytes:
    """Compress each element of a plain .mat file, however damaged it is."""
    out, rest = data[:128], data[128:]
    while rest:
        size = 8 + int.from_bytes(rest[4:8], "little")
        packed = zlib.compress(rest[:size])
        out += struct.pack("<II", 15, len(packed)) + packed
        rest = rest[size:]
    return out


def _read_mat(path: Path) -> object:
    return read_svhn(_spec(catalog.SVHN, 12, 2), (path, _beside(path, "test.mat", _mat(2))))


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _npz() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, x_train=X, y_train=Y, classes=np.array(["ant", "bee"]))
    return out.getvalue()


def _around_npy(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("x.npy"), data)
        archive.writestr(zipfile.ZipInfo("y.npy"), _npy(Y))
    return out.getvalue()


def _parquet() -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    table = arrow.table({"a": [1.5, 2.5, 3.5, 4.5], "b": [1, 2, 3, 4], "label": ["x", "y", "x", "y"]})
    parquet.write_table(table, out)
    return out.getvalue()


def _champions_columns(path: Path) -> tuple[object, list[str]]:
    """What `predict` and `evaluate` read."""
    columns = read_columns(path, [*"ab", "label"])
    return cells_of(columns, Columns((Column("a"), Column("b"))), path), label_texts(columns.get("label", []))


def _csv() -> bytes:
    return b'a,"b",label\n' + b"".join(f"{n},{n / 3},{'xy'[n % 2]}\n".encode() for n in range(8))


def _picture(kind: str, mode: str = "RGB") -> Callable[[], bytes]:
    def make() -> bytes:
        out = io.BytesIO()
        exif = Image.Exif()
        exif[0x0112] = 6
        pixels = np.tile(X[0].transpose(1, 2, 0), (3, 3, 1))
        Image.fromarray(pixels).convert(mode).save(out, kind, **({} if kind == "BMP" else {"exif": exif}))
        return out.getvalue()

    return make


def _with_checksums(data: bytes) -> bytes:
    """A damaged PNG with the checksums it would have if the damage were meant."""
    out, at = bytearray(data), 8
    while at + 12 <= len(out):
        size = int.from_bytes(out[at : at + 4], "big")
        end = min(at + 8 + size, len(out) - 4)
        out[end : end + 4] = zlib.crc32(out[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    return bytes(out)


def _read_picture(path: Path) -> object:
    look(path, OPTIONS.max_pixels)
    return read_image(path, SHAPE, OPTIONS.max_pixels)


def _cache() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        from_arrays({"x_train": X, "y_train": Y}, options=OPTIONS).save(path)
        return path.read_bytes()


READERS = [
    Reader("prepared data set", _cache, DataSet.open),
    Reader("idx images", lambda: _idx(X[:, 0]), _read_idx),
    Reader("idx labels, gzipped", lambda: _gzip(_idx(Y)), _read_labels),
    Reader("idx images, changed inside gzip", lambda: _idx(X[:, 0]), _read_idx, _gzip),
    Reader("CIFAR binary batch", lambda: _binary(0), _read_binary),
    Reader("CIFAR python batch", _pickle, _read_pickle),
    Reader("CIFAR archive", lambda: _gzip(_tar()), _read_tar),
    Reader("CIFAR archive, changed inside gzip", _tar, _read_tar, _gzip),
    Reader("mat", lambda: _mat(packed=True), _read_mat),
    Reader("mat, plain", _mat, _read_mat),
    Reader("mat, changed inside its compression", _mat, _read_mat, _pack_elements),
    Reader("npz", _npz, lambda path: from_npz(path, options=OPTIONS)),
    Reader("npz, changed inside", lambda: _npy(X), lambda path: from_npz(path, options=OPTIONS), _around_npy),
    Reader("csv", _csv, lambda path: from_csv(path, options=OPTIONS)),
    Reader("parquet", _parquet, lambda path: from_parquet(path, options=OPTIONS)),
    Reader("parquet of a champion", _parquet, _champions_columns),
    Reader("PNG", _picture("PNG"), _read_picture),
    Reader("PNG, meant", _picture("PNG"), _read_picture, _with_checksums),
    Reader("PNG with a palette, meant", _picture("PNG", "P"), _read_picture, _with_checksums),
    Reader("JPEG", _picture("JPEG"), _read_picture),
    Reader("WebP", _picture("WEBP"), _read_picture),
    Reader("BMP", _picture("BMP"), _read_picture),
]

Edit = tuple[str, int, int]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(("flip", "set", "number", "cut", "drop", "repeat", "insert")),
        st.integers(0, 2**16),
        st.one_of(st.integers(0, 255), st.sampled_from((2**31 - 1, 2**31, 2**32 - 1, 2**16, 2**24, 1, 0))),
    ),
    min_size=1,
    max_size=6,
)


def changed(data: bytes, edits: list[Edit]) -> bytes:
    """The file with some of the things done to it that go wrong, or that people do on purpose."""
    out = bytearray(data)
    for kind, where, value in edits:
        at = where % max(1, len(out))
        span = 1 + value % 16
        if kind == "flip" and out:
            out[at] ^= 1 << value % 8
        elif kind == "set" and out:
            out[at] = value % 256
        elif kind == "number":
            out[at : at + 4] = (value % 2**32).to_bytes(4, "big" if where % 2 else "little")
        elif kind == "cut":
            del out[at:]
        elif kind == "drop":
            del out[at : at + span]
        elif kind == "repeat":
            out[at:at] = out[at : at + 8 * span]
        elif kind == "insert":
            out[at:at] = bytes([value % 256]) * span
    return bytes(out)


@cache
def sound(reader: Reader) -> bytes:
    return reader.sample()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Each file under test is written here."""
    return tmp_path / "file.x"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_the_sound_file_is_read(reader: Reader, place: Path) -> None:
    place.write_bytes(reader.wrap(sound(reader)))
    assert reader.read(place) is not None


@pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:PIL")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_refused_in_one_line(reader: Reader, place: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="EPICORTEX_FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @example(edits=[("cut", 0, 0)])
    @example(edits=[("drop", 63540, 16777216)])  # a Parquet dictionary with labels beyond its end
    @given(edits=EDITS)
    def fuzz(edits: list[Edit]) -> None:
        place.write_bytes(reader.wrap(changed(sound(reader), edits)))
        try:
            reader.read(place)
        except DataError as error:
            said = str(error)
            assert said.isprintable()
            assert len(said) < 1000

    fuzz()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b"\xff" * 5000,
        b"[" * 100_000,
        b"\x80\x04cposix\nsystem\n(S'touch executed'\ntR.",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
        (100_000).to_bytes(8, "little") + b'{"a":' * 20_000,
        b"\x1f\x8b\x08\x00" + b"\x00" * 20,
        b"PK\x05\x06" + b"\xff" * 18,
    ],
    ids=["empty", "zeros", "ones", "brackets", "pickle", "header length", "deep JSON", "gzip", "zip"],
)
def test_a_file_of_another_kind_is_refused(
    reader: Reader, content: bytes, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    place.write_bytes(content)
    with pytest.raises(DataError) as caught:
        reader.read(place)
    assert str(caught.value).isprintable()
    assert not Path("executed").exists()


@pytest.mark.parametrize("text", [b"S'\\ '", b"V\\ud800", b"V\\ ", b"S'\\400'"])
def test_strange_escapes_in_a_pickle_are_no_warning(text: bytes, place: Path) -> None:
    place.write_bytes(b"\x80\x02" + text + b"\n.")
    with pytest.raises(DataError):
        _read_pickle(place)


def test_a_prepared_file_that_lies_about_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.safetensors"
    raw = _cache()
    length = int.from_bytes(raw[:8], "little")
    header, body = raw[8 : 8 + length].rstrip(), raw[8 + length :]

    def says(change: Callable[[bytes], bytes], rest: bytes = body) -> str:
        text = change(header)
        path.write_bytes(len(text).to_bytes(8, "little") + text + rest)
        with pytest.raises(DataError) as caught:
            load(path)
        return str(caught.value)

    assert "does not match its length" in says(lambda h: h.replace(b"[12,3,4,4]", b"[12,3,4,4000000000]"))
    assert "unknown type, shape or place" in says(
        lambda h: h.replace(b"[0,3,4,4]", b"[0,2147483648,2147483648,4]")
    )
    assert "bytes long, its header promises" in says(bytes, body[:-1])
    assert "unknown type" in says(lambda h: h.replace(b'"U8"', b'"F64"'))
    assert "unknown type" in says(lambda h: h.replace(b"[12,3,4,4]", b"[-12,-3,4,4]"))
    assert "not JSON" in says(lambda h: b"[" * 100_000)
    assert "labels from" in says(bytes, b"\xff" * len(body))
    assert "format" in says(lambda h: h.replace(b'\\"format\\": 1', b'\\"format\\": 2'))
    assert "not a data set" in says(lambda h: h.replace(b"epicortex.data", b"something.else"))
    assert "scaling" in says(lambda h: h.replace(b'\\"divisor\\": 255.0', b'\\"divisor\\": 0'))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    for read in (DataSet.open, load):
        with pytest.raises(DataError):
            read(tmp_path / "pipe.safetensors")


def test_a_link_or_a_folder_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")
    (tmp_path / "folder.safetensors").mkdir()
    for name in ("loop.npz", "folder.safetensors"):
        with pytest.raises(DataError):
            load(tmp_path / name, data_dir=tmp_path)
