"""Getting files: resumed, checked, from the first mirror that is right, and never half a file."""

from __future__ import annotations

import fcntl
import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from epicortex.data import catalog, get, load
from epicortex.data.download import download
from epicortex.data.readers.builtin import Remote
from epicortex.errors import DataError

CONTENT = np.random.default_rng(5).bytes(300_000)
FILE = Remote("file.gz", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), ())
CLOSED = "http://127.0.0.1:9/file.gz"


@dataclass
class Site:
    """A real web server that honours Range, and can misbehave in the ways mirrors do.

    What the server holds and how it behaves; requests are (path, Range header).
    """

    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Each answer breaks off after this many bytes."""
    ranges: bool = True
    endless: bool = False
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.requests.append((self.path, asked))
            if self.path in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if self.path not in site.files:
                self.send_error(404)
                return
            content = site.files[self.path]
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and site.ranges else 0  # type: ignore[index]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if not site.endless:
                self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            try:
                if site.endless:
                    while True:
                        self.wfile.write(content)
                self.wfile.write(content[start:][: site.cut_after])
            except ConnectionError:
                return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Site(files={"/file.gz": CONTENT})) as running:
        yield running


def fetch(folder: Path, *addresses: str, remote: Remote = FILE) -> Path:
    return download(remote, folder, mirrors=addresses, timeout=60)


def only_the_file(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == ["file.gz"] and (
        folder / "file.gz"
    ).read_bytes() == CONTENT


def test_a_file_arrives_whole_with_progress(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    got = download(
        FILE,
        tmp_path / "a" / "b",
        mirrors=[f"{site.address}/file.gz"],
        progress=lambda *now: seen.append(now),
    )
    assert got == tmp_path / "a" / "b" / "file.gz"
    assert only_the_file(got.parent)
    assert seen[-1] == ("file.gz", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_file_that_is_right_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(CONTENT)
    fetch(tmp_path, f"{site.address}/file.gz")
    assert site.requests == []


def test_a_damaged_file_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(CONTENT[:-1] + b"?")
    fetch(tmp_path, f"{site.address}/file.gz")
    assert only_the_file(tmp_path)


def test_an_md5_serves_where_nothing_better_is_published(site: Site, tmp_path: Path) -> None:
    md5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    fetch(tmp_path, f"{site.address}/file.gz", remote=Remote("file.gz", len(CONTENT), md5, ()))
    assert only_the_file(tmp_path)


def test_a_half_done_file_is_continued_not_begun_anew(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz.part").write_bytes(CONTENT[:100_000])
    fetch(tmp_path, f"{site.address}/file.gz")
    assert site.requests == [("/file.gz", "bytes=100000-")]
    assert only_the_file(tmp_path)


def test_cut_connections_are_resumed_where_they_broke(site: Site, tmp_path: Path) -> None:
    site.cut_after = 110_000
    fetch(tmp_path, f"{site.address}/file.gz")
    assert [asked for _, asked in site.requests] == [None, "bytes=110000-", "bytes=220000-"]
    assert only_the_file(tmp_path)


def test_what_arrived_before_giving_up_is_kept_for_the_next_call(site: Site, tmp_path: Path) -> None:
    site.cut_after = 10_000
    with pytest.raises(DataError, match=r"file\.gz could not be fetched .*ended after 40000 of 300000"):
        fetch(tmp_path, f"{site.address}/file.gz")
    assert (tmp_path / "file.gz.part").stat().st_size == 40_000
    assert not (tmp_path / "file.gz").exists()
    site.cut_after = None
    fetch(tmp_path, f"{site.address}/file.gz")
    assert site.requests[-1][1] == "bytes=40000-"
    assert only_the_file(tmp_path)


def test_a_server_that_cannot_resume_sends_it_all_again(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    (tmp_path / "file.gz.part").write_bytes(CONTENT[:100_000])
    fetch(tmp_path, f"{site.address}/file.gz")
    assert only_the_file(tmp_path)


def test_a_spoilt_beginning_is_thrown_away(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file.gz.part").write_bytes(b"?" * 100_000)
    fetch(tmp_path, f"{site.address}/file.gz")
    assert [asked for _, asked in site.requests] == ["bytes=100000-", None]
    assert only_the_file(tmp_path)


@pytest.mark.parametrize("length", [len(CONTENT), len(CONTENT) + 1])
def test_a_part_that_is_too_long_or_wrong_is_thrown_away(site: Site, tmp_path: Path, length: int) -> None:
    (tmp_path / "file.gz.part").write_bytes(b"?" * length)
    fetch(tmp_path, f"{site.address}/file.gz")
    assert only_the_file(tmp_path)


def test_broken_mirrors_are_passed_over(site: Site, tmp_path: Path) -> None:
    site.files["/wrong"] = CONTENT[::-1]
    site.files["/long"] = CONTENT + b"?"
    site.files["/short"] = CONTENT[:-1]
    bad = [CLOSED, *(f"{site.address}/{name}" for name in ("nothing", "wrong", "long", "short"))]
    fetch(tmp_path, *bad, f"{site.address}/file.gz")
    assert only_the_file(tmp_path)


def test_if_no_mirror_will_do_one_line_names_each_with_its_reason(site: Site, tmp_path: Path) -> None:
    site.files["/wrong"] = CONTENT[::-1]
    with pytest.raises(DataError) as caught:
        fetch(tmp_path, CLOSED, f"{site.address}/nothing", f"{site.address}/wrong")
    said = str(caught.value)
    assert "\n" not in said
    for part in (CLOSED, "refused", "404", "/wrong", "wrong checksum", "EPICORTEX_MIRROR"):
        assert part in said
    assert not (tmp_path / "file.gz").exists()


def test_an_endless_answer_is_cut_off(site: Site, tmp_path: Path) -> None:
    site.endless = True
    with pytest.raises(DataError, match="more than the 300000 bytes"):
        fetch(tmp_path, f"{site.address}/file.gz")
    assert (tmp_path / "file.gz.part").stat().st_size == 0


@pytest.mark.parametrize("kind", ["file", "ftp", "data"])
def test_local_files_are_never_read_directly_or_by_redirect(site: Site, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    address = {"file": secret.as_uri(), "ftp": f"ftp://localhost{secret}", "data": "data:,hello"}[kind]
    site.redirects["/trap"] = address
    for tried in (address, f"{site.address}/trap"):
        with pytest.raises(DataError, match=r"not allowed|only http|unknown url"):
            fetch(tmp_path / "got", tried)
    assert not (tmp_path / "got" / "file.gz").exists()


def test_redirects_on_the_web_are_followed_but_not_for_ever(site: Site, tmp_path: Path) -> None:
    site.redirects = {"/a": f"{site.address}/file.gz", "/loop": f"{site.address}/loop"}
    fetch(tmp_path, f"{site.address}/loop", f"{site.address}/a")
    assert only_the_file(tmp_path)


def test_two_processes_do_not_write_the_same_file(site: Site, tmp_path: Path) -> None:
    with (tmp_path / "file.gz.part").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another process"):
            fetch(tmp_path, f"{site.address}/file.gz")


def test_a_folder_that_cannot_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        fetch(tmp_path / "in-the-way", f"{site.address}/file.gz")


def test_a_link_in_place_of_the_part_file_is_not_followed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file.gz.part").symlink_to(tmp_path / "precious")
    with pytest.raises(DataError, match="cannot be written"):
        fetch(tmp_path, f"{site.address}/file.gz")
    assert (tmp_path / "precious").read_text() == "mine"


def test_get_fetches_what_is_missing_or_damaged_and_checks_it(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def idx(array: np.ndarray) -> bytes:
        sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
        return bytes((0, 0, 8, array.ndim)) + sizes + array.astype(np.uint8).tobytes()

    images, labels = np.arange(5 * 28 * 28).reshape(5, 28, 28), np.arange(5)
    files = {
        "train-images-idx3-ubyte.gz": idx(images),
        "train-labels-idx1-ubyte.gz": idx(labels),
        "t10k-images-idx3-ubyte.gz": idx(images[1:]),
        "t10k-labels-idx1-ubyte.gz": idx(labels[1:]),
    }
    remotes = tuple(Remote(n, len(c), hashlib.sha256(c).hexdigest(), ()) for n, c in files.items())
    spec = replace(catalog.MNIST, train=5, test=4, remotes=remotes)
    monkeypatch.setitem(catalog.BUILT_INS, "mnist", spec)
    site.files = {f"/data/mnist/{name}": content for name, content in files.items()}

    monkeypatch.setenv("EPICORTEX_MIRROR", f"{CLOSED} {site.address}/data/")
    got = get("mnist", data_dir=tmp_path)
    assert (got.state, got.where, got.files) == ("present", tmp_path / "mnist", tuple(files))
    assert len(site.requests) == 4
    get("mnist", data_dir=tmp_path)
    assert len(site.requests) == 4
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    get("mnist", data_dir=tmp_path)
    assert [path for path, _ in site.requests[4:]] == ["/data/mnist/t10k-labels-idx1-ubyte.gz"]
    assert load("mnist", data_dir=tmp_path).y_test.tolist() == [1, 2, 3, 4]
