"""The built-in data sets: every form of their files, and one clear line for every way to be wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from epicortex.data import DataSet, catalog, check, checksums, get, load, status
from epicortex.data.loading import load_built_in
from epicortex.data.readers.builtin import BuiltIn, Remote, locate, prepare
from epicortex.data.readers.cifar import BATCHES
from epicortex.errors import DataError

RNG = np.random.default_rng(3)
MNIST = replace(catalog.MNIST, train=20, test=10)
CIFAR = replace(catalog.CIFAR10, train=50, test=10)
SVHN = replace(catalog.SVHN, train=30, test=20)

X = RNG.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8)
Y = np.arange(60, dtype=np.uint8) % 10


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist_files() -> dict[str, bytes]:
    return {
        "train-images-idx3-ubyte": idx(X[:20, 0, :28, :28]),
        "train-labels-idx1-ubyte": idx(Y[:20]),
        "t10k-images-idx3-ubyte": idx(X[20:30, 0, :28, :28]),
        "t10k-labels-idx1-ubyte": idx(Y[20:30]),
    }


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def read(spec: BuiltIn, data: Path) -> DataSet:
    located = locate(spec, data)
    assert located is not None
    return prepare(spec, located)


def batches(encode: Callable[[np.ndarray, np.ndarray], bytes], ending: str = "") -> dict[str, bytes]:
    return {
        batch + ending: encode(X[10 * row : 10 * row + 10], Y[10 * row : 10 * row + 10])
        for row, batch in enumerate(BATCHES)
    }


def binary(x: np.ndarray, y: np.ndarray) -> bytes:
    return np.concatenate([y[:, None], x.reshape(len(x), -1)], axis=1).tobytes()


def pickled(protocol: int) -> Callable[[np.ndarray, np.ndarray], bytes]:
    def encode(x: np.ndarray, y: np.ndarray) -> bytes:
        batch = {
            b"labels": y.tolist(),
            b"data": x.reshape(len(x), -1),
            b"batch_label": b"testing batch 1 of 1",
        }
        return pickle.dumps(batch, protocol=protocol)

    return encode


def pickled_by_python_2(x: np.ndarray, y: np.ndarray) -> bytes:
    """As the official batches were written: text and array contents as Python 2 strings."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(value)) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x03(cnumpy\nndarray\nq\x04K\x00\x85q\x05U\x01btq\x06Rq\x07"
        b"(K\x01K" + bytes([len(x)]) + b"M" + struct.pack("<H", x[0].size) + b"\x86q\x08"
        b"cnumpy\ndtype\nq\x09(U\x02u1q\x0aK\x00K\x01tq\x0bRq\x0c(K\x03U\x01|q\x0dNNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tq\x0eb\x89" + text(x.tobytes()) + b"q\x0ftq\x10b"
    )
    labels = b"]q\x11(" + b"".join(b"K" + bytes([n]) for n in y) + b"e"
    return b"\x80\x02}q\x01(U\x04dataq\x02" + array + b"U\x06labelsq\x12" + labels + b"u."


def archive(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def mat(path: Path, x: np.ndarray, y: np.ndarray, *, packed: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = np.where(y == 0, 10, y)[:, None]
    scipy.io.savemat(path, {"X": x.transpose(2, 3, 1, 0), "y": labels}, do_compression=packed)


def svhn_files(folder: Path, *, packed: bool = True) -> None:
    mat(folder / "train_32x32.mat", X[:30], Y[:30], packed=packed)
    mat(folder / "test_32x32.mat", X[30:50], Y[30:50], packed=packed)


@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read_gzipped_or_not(tmp_path: Path, folder: str, packed: bool) -> None:
    files = {f"{n}.gz": gzip.compress(c) for n, c in mnist_files().items()} if packed else mnist_files()
    write(tmp_path / folder, files)
    data = read(MNIST, tmp_path)
    np.testing.assert_array_equal(data.x_train[:, 0], X[:20, 0, :28, :28])
    np.testing.assert_array_equal(data.y_test, Y[20:30])
    assert data.y_train.dtype == np.int64
    assert len(data.notes) == 4
    assert all("unknown checksum" in note for note in data.notes)


def spoil_idx(name: str, change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], None]:
    def spoil(files: dict[str, bytes]) -> None:
        files[name] = change(files[name])

    return spoil


def swap(one: str, other: str) -> Callable[[dict[str, bytes]], None]:
    def spoil(files: dict[str, bytes]) -> None:
        files[one], files[other] = files[other], files[one]

    return spoil


TRAIN_X, TRAIN_Y, TEST_X, TEST_Y = mnist_files()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (swap(TRAIN_X, TEST_X), "train-images.*10 × 28 × 28 values instead of 20"),
        (swap(TRAIN_Y, TEST_Y), "train-labels.*10 values instead of 20"),
        (swap(TRAIN_X, TRAIN_Y), "train-images.*holds labels instead of images"),
        (spoil_idx(TRAIN_X, lambda c: c[:-1]), "cut short: 15679 of 15680"),
        (spoil_idx(TRAIN_X, lambda c: c[:10]), "cut short"),
        (spoil_idx(TRAIN_X, lambda c: b""), "cut short"),
        (spoil_idx(TRAIN_X, lambda c: c + b"?"), "longer than its header"),
        (spoil_idx(TRAIN_X, lambda c: b"\x00\x00\x0d" + c[3:]), "not an idx file"),
        (spoil_idx(TRAIN_X, lambda c: c[:4] + b"\xff" * 12 + c[16:]), "4294967295"),
        (spoil_idx(TRAIN_Y, lambda c: c[:-1] + b"\x0a"), "the label 10; mnist has 0 to 9"),
        (spoil_idx(TRAIN_X, lambda c: gzip.compress(c)[:-9]), "cut short"),
        (spoil_idx(TRAIN_X, lambda c: gzip.compress(c)[:-8] + b"?" * 8), "damaged"),
        (spoil_idx(TRAIN_X, lambda c: gzip.compress(c + bytes(2**26))), "longer than its header"),
    ],
)
def test_a_wrong_idx_file_is_one_line_that_names_it(
    tmp_path: Path, spoil: Callable[[dict[str, bytes]], None], says: str
) -> None:
    files = mnist_files()
    spoil(files)
    write(tmp_path / "mnist", files)
    with pytest.raises(DataError, match=says) as caught:
        read(MNIST, tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "mnist") in str(caught.value)


def test_known_files_are_silent_and_those_of_another_set_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: hashlib.sha256(content).hexdigest() for name, content in mnist_files().items()}
    write(tmp_path / "mnist", mnist_files())
    monkeypatch.setitem(checksums.KNOWN, "mnist", known)
    assert read(MNIST, tmp_path).notes == ()
    monkeypatch.setitem(checksums.KNOWN, "mnist", {})
    monkeypatch.setitem(checksums.KNOWN, "fashion-mnist", known)
    with pytest.raises(DataError, match=r"is not train-images-idx3-ubyte of mnist but .* of fashion-mnist"):
        read(MNIST, tmp_path)


def layouts(tmp_path: Path) -> dict[str, Callable[[], None]]:
    folder = tmp_path / "cifar10"

    def packed(name: str, files: dict[str, bytes]) -> None:
        inner = {f"cifar-10-batches/{key}": content for key, content in files.items()}
        archive(folder / name, {"cifar-10-batches/readme.html": b"hello", **inner})

    return {
        "binary": lambda: write(folder / "cifar-10-batches-bin", batches(binary, ".bin")),
        "python 2": lambda: write(folder / "cifar-10-batches-py", batches(pickled_by_python_2)),
        "protocol 2": lambda: write(folder / "cifar-10-batches-py", batches(pickled(2))),
        "protocol 3": lambda: write(folder / "cifar-10-batches-py", batches(pickled(3))),
        "protocol 4": lambda: write(folder / "cifar-10-batches-py", batches(pickled(4))),
        "binary archive": lambda: packed("cifar-10-binary.tar.gz", batches(binary, ".bin")),
        "python archive": lambda: packed("cifar-10-python.tar.gz", batches(pickled_by_python_2)),
    }


@pytest.mark.parametrize(
    "layout",
    ["binary", "python 2", "protocol 2", "protocol 3", "protocol 4", "binary archive", "python archive"],
)
def test_cifar_is_the_same_from_every_form(tmp_path: Path, layout: str) -> None:
    layouts(tmp_path)[layout]()
    data = read(CIFAR, tmp_path)
    np.testing.assert_array_equal(data.x_train, X[:50])
    np.testing.assert_array_equal(data.x_test, X[50:])
    np.testing.assert_array_equal(data.y_train, Y[:50])
    np.testing.assert_array_equal(data.y_test, Y[50:])
    assert data.classes[0] == "airplane"


class _Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch executed",)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (pickle.dumps(_Bomb(), protocol=2), "the name 'posix system'"),
        (pickle.dumps(_Bomb(), protocol=4), "the name 'posix system'"),
        (pickle.dumps({b"data": _Bomb()}, protocol=2), "the name"),
        (b"cos\nsystem\n(S'touch executed'\ntR.", "the name 'os system'"),
        (b"(S'touch executed'\nios\nsystem\n.", "the instruction INST"),
        (pickle.dumps(np.array([None])), "anything but bytes"),
        (pickle.dumps({"data": 1, "labels": 2}), "does not hold 10 images"),
        (pickle.dumps([1, 2]), "does not hold 10 images"),
        (pickled(2)(X[:10], Y[:10])[:-50], "not a whole pickle"),
        (pickled(2)(X[:9], Y[:9]), "does not hold 10 images"),
        (pickled(2)(X[:10], Y[:9]), "does not hold 10 numbers"),
        (pickled(2)(X[:10], Y[:10] + 100), "the label 109"),
        (b"", "not a whole pickle"),
        (b"\x80\x04]" + b"\x94]h\x00h\x00\x86" * 90 + b"]\x93.", "the name"),
        (b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b"]\x93.", "the name"),
        (b"\x80\x02" + b"}" * 2_000_000, "more than 1000000 instructions"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**60), "not a whole pickle"),
    ],
)
def test_a_hostile_python_batch_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: bytes, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "cifar10" / "cifar-10-batches-py", {**batches(pickled(2)), "data_batch_1": batch})
    with pytest.raises(DataError, match=says) as caught:
        read(CIFAR, tmp_path)
    assert "data_batch_1" in str(caught.value)
    assert not (tmp_path / "executed").exists()


def test_a_binary_batch_of_the_wrong_length_or_with_wrong_labels_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cifar10" / "cifar-10-batches-bin"
    files = batches(binary, ".bin")
    write(folder, {**files, "data_batch_3.bin": files["data_batch_3.bin"][:-1]})
    with pytest.raises(DataError, match=r"data_batch_3.bin is 30729 bytes long instead of 30730"):
        read(CIFAR, tmp_path)
    write(folder, {**files, "data_batch_3.bin": b"\x0b" + files["data_batch_3.bin"][1:]})
    with pytest.raises(DataError, match=r"data_batch_3.bin holds the label 11"):
        read(CIFAR, tmp_path)


def test_the_same_batch_twice_is_noticed(tmp_path: Path) -> None:
    files = batches(binary, ".bin")
    files["data_batch_2.bin"] = files["test_batch.bin"]
    write(tmp_path / "cifar10", files)
    with pytest.raises(DataError, match=r"test_batch.bin and .*data_batch_2.bin are the same file"):
        read(CIFAR, tmp_path)


def test_an_archive_with_paths_that_climb_writes_nothing_anywhere(tmp_path: Path) -> None:
    data = tmp_path / "a" / "data"
    evil = {"../../../escaped": b"x", "/tmp/epicortex-escaped": b"x"}
    files = {f"../../{name}": content for name, content in batches(binary, ".bin").items()}
    archive(data / "cifar10" / "cifar-10-binary.tar.gz", {**evil, **files})
    before = sorted(tmp_path.rglob("*"))
    read(CIFAR, data)
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/epicortex-escaped").exists()


def test_damaged_archives_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    archive(path, batches(binary, ".bin"))
    whole = path.read_bytes()
    cases = {whole[: len(whole) // 2]: "not a whole", b"hello": "not a whole", b"": "not a whole"}
    for content, says in cases.items():
        path.write_bytes(content)
        with pytest.raises(DataError, match=says):
            read(CIFAR, tmp_path)
    archive(path, {"data_batch_1.bin": b""})
    with pytest.raises(DataError, match=r"does not hold .*data_batch_2"):
        read(CIFAR, tmp_path)


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    path.parent.mkdir()
    header = tarfile.TarInfo("data_batch_1.bin")
    header.size = 2**40
    # One megabyte of zeros, gzipped, a thousand times over: members of one gzip stream follow each other.
    path.write_bytes(gzip.compress(header.tobuf()) + gzip.compress(bytes(2**20)) * 1000)
    with pytest.raises(DataError, match="unpacks to more than 256 MB"):
        read(CIFAR, tmp_path)


def test_an_archive_of_countless_files_is_refused(tmp_path: Path) -> None:
    archive(tmp_path / "cifar10" / "cifar-10-binary.tar.gz", {str(number): b"" for number in range(200)})
    with pytest.raises(DataError, match="more than 100 files"):
        read(CIFAR, tmp_path)


@pytest.mark.parametrize("packed", [True, False])
def test_svhn_is_read_and_ten_is_zero(tmp_path: Path, packed: bool) -> None:
    svhn_files(tmp_path / "svhn", packed=packed)
    data = read(SVHN, tmp_path)
    np.testing.assert_array_equal(data.x_train, X[:30])
    np.testing.assert_array_equal(data.x_test, X[30:50])
    np.testing.assert_array_equal(data.y_train, Y[:30])
    assert all("unknown checksum" in note for note in data.notes)


def test_svhn_labels_may_be_of_any_number_type(tmp_path: Path) -> None:
    svhn_files(tmp_path / "svhn")
    for kind in ("f8", "i4", "u2"):
        labels = np.where(Y[:30] == 0, 10, Y[:30])[:, None].astype(kind)
        scipy.io.savemat(
            tmp_path / "svhn" / "train_32x32.mat", {"X": X[:30].transpose(2, 3, 1, 0), "y": labels}
        )
        np.testing.assert_array_equal(read(SVHN, tmp_path).y_train, Y[:30])


def test_wrong_mat_files_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "svhn" / "train_32x32.mat"
    svhn_files(path.parent)
    whole = path.read_bytes()
    test = (path.parent / "test_32x32.mat").read_bytes()
    packed = whole.index(struct.pack("<I", 15))
    cases = {
        test: r"32 × 32 × 3 × 20 values instead of 32 × 32 × 3 × 30: .*swapped",
        whole[: len(whole) // 2]: "cut short",
        whole[:100]: "not a MATLAB 5 file",
        b"\x89HDF\r\n\x1a\n" + bytes(200): "MATLAB 7.3",
        whole[: packed + 50] + bytes(100) + whole[packed + 150 :]: "damaged|cut short|describes",
    }
    for content, says in cases.items():
        path.write_bytes(content)
        with pytest.raises(DataError, match=says):
            read(SVHN, tmp_path)
    scipy.io.savemat(path, {"X": X[:30].transpose(2, 3, 1, 0), "y": np.full((30, 1), 11)})
    with pytest.raises(DataError, match="labels other than 1 to 10"):
        read(SVHN, tmp_path)
    scipy.io.savemat(path, {"X": X[:30].transpose(2, 3, 1, 0).astype(float), "y": np.ones((30, 1))})
    with pytest.raises(DataError, match="bytes are needed"):
        read(SVHN, tmp_path)
    scipy.io.savemat(path, {"X": X[:30].transpose(2, 3, 1, 0)})
    with pytest.raises(DataError, match="does not hold the array y"):
        read(SVHN, tmp_path)


def test_a_missing_set_names_its_files_the_folders_and_the_command(tmp_path: Path) -> None:
    write(tmp_path / "mnist", {TRAIN_X: b"", TRAIN_Y: b"", TEST_X: b""})
    with pytest.raises(DataError) as caught:
        load("mnist", data_dir=tmp_path)
    said = str(caught.value)
    assert "t10k-labels-idx1-ubyte.gz was not found" in said
    assert "train" not in said
    for part in (
        str(tmp_path / "mnist"),
        str(tmp_path / "MNIST" / "raw"),
        "`epicortex data get mnist`",
        "EPICORTEX_DATA",
    ):
        assert part in said
    assert "\n" not in said


def test_the_cache_is_used_until_the_files_change_and_made_again_if_damaged(tmp_path: Path) -> None:
    write(tmp_path / "mnist", mnist_files())
    first = load_built_in(MNIST, tmp_path)
    assert first.path is not None
    assert first.path.parent == tmp_path / "cache"
    made = first.path.stat().st_mtime_ns
    assert load_built_in(MNIST, tmp_path).path == first.path
    assert first.path.stat().st_mtime_ns == made

    raw = bytearray(first.path.read_bytes())
    raw[-1] ^= 1
    first.path.write_bytes(raw)
    assert load_built_in(MNIST, tmp_path).compute_digest() == first.digest

    files = mnist_files()
    files[TRAIN_Y] = idx(Y[:20][::-1].copy())
    write(tmp_path / "mnist", files)
    changed = load_built_in(MNIST, tmp_path)
    np.testing.assert_array_equal(changed.y_train, Y[:20][::-1])
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_without_a_writable_data_folder_the_cache_goes_to_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    data = tmp_path / "data"
    write(data / "mnist", mnist_files())
    # A file in the way stops even root, unlike access rights.
    (data / "cache").write_text("")
    loaded = load_built_in(MNIST, data)
    assert loaded.path is not None
    assert loaded.path.is_relative_to(tmp_path / "home")


def test_with_no_writable_folder_at_all_the_data_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "data" / "mnist", mnist_files())
    (tmp_path / "data" / "cache").write_text("")
    loaded = load_built_in(MNIST, tmp_path / "data")
    assert loaded.path is None
    assert "kept in memory" in loaded.notes[-1]
    assert loaded.digest == read(MNIST, tmp_path / "data").digest


def small_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    remotes = tuple(
        Remote(name, len(content), hashlib.sha256(content).hexdigest(), ())
        for name, content in mnist_files().items()
    )
    monkeypatch.setitem(catalog.BUILT_INS, "mnist", replace(MNIST, remotes=remotes))


def test_status_and_check_tell_present_missing_and_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_catalog(monkeypatch)

    def states() -> dict[str, str]:
        return {one.name: one.state for one in status(tmp_path)}

    assert list(states()) == ["digits", "mnist", "fashion-mnist", "svhn", "cifar10"]
    assert states()["digits"] == "present"
    assert states()["mnist"] == "missing"
    write(tmp_path / "mnist", mnist_files())
    assert states()["mnist"] == "present"
    checked = check("mnist", data_dir=tmp_path)
    assert (checked.state, checked.where, checked.files) == (
        "present",
        tmp_path / "mnist",
        tuple(mnist_files()),
    )
    write(tmp_path / "mnist", {TRAIN_X: b"?"})
    checked = check("mnist", data_dir=tmp_path)
    assert checked.state == "damaged"
    assert "train-images" in checked.notes[0]
    with pytest.raises(DataError, match="digits, mnist"):
        check("minst", data_dir=tmp_path)


def test_get_refuses_to_hide_a_damaged_copy_that_would_be_found_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_catalog(monkeypatch)
    write(tmp_path / "MNIST" / "raw", {**mnist_files(), TRAIN_X: b"?"})
    with pytest.raises(DataError, match=r"move .*raw away"):
        get("mnist", data_dir=tmp_path, mirrors=["http://127.0.0.1:9"])


@pytest.fixture
def real() -> Path:
    folder = Path(os.environ.get("EPICORTEX_DATA", "."))
    if {one.state for one in status(folder)} != {"present"}:
        pytest.skip("EPICORTEX_DATA does not hold the real data sets")
    return folder


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "shape", "train", "test", "first"),
    [
        ("mnist", (1, 28, 28), 60_000, 10_000, [5, 0, 4, 1, 9]),
        ("fashion-mnist", (1, 28, 28), 60_000, 10_000, [9, 0, 0, 3, 0]),
        ("cifar10", (3, 32, 32), 50_000, 10_000, [6, 9, 9, 4, 1]),
        ("svhn", (3, 32, 32), 73_257, 26_032, [1, 9, 2, 3, 2]),
    ],
)
def test_the_real_files_are_read_whole(
    real: Path, name: str, shape: tuple[int, ...], train: int, test: int, first: list[int]
) -> None:
    data = load(name, data_dir=real)
    assert data.input_shape == shape
    assert data.x_train.shape == (train, *shape)
    assert data.x_test.shape == (test, *shape)
    assert data.y_train[:5].tolist() == first
    assert all("unknown checksum" in note for note in data.notes)
    assert (data.notes == ()) == (name != "svhn")


@pytest.mark.realdata
def test_svhn_equals_what_scipy_reads(real: Path) -> None:
    data = load("svhn", data_dir=real)
    theirs = scipy.io.loadmat(real / "svhn" / "test_32x32.mat")
    np.testing.assert_array_equal(data.x_test, theirs["X"].transpose(3, 2, 0, 1))
    np.testing.assert_array_equal(data.y_test, theirs["y"].ravel() % 10)
