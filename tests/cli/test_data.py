"""`epicortex data` with a real web server and real files."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from epicortex.cli import main
from tests.cli.conftest import Command


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A web server with an empty folder for each data set."""
    folder = tmp_path / "mirror"
    (folder / "mnist").mkdir(parents=True)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_list_says_what_is_there_and_how_to_get_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "--data-dir", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "digits         present" in text
    assert "mnist          missing" in text
    assert f"epicortex data get mnist fetches it to {tmp_path / 'mnist'}" in text


def test_json_is_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "mnist", "--json", "--data-dir", str(tmp_path)]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["name"], one["state"], one["where"]) == ("mnist", "missing", str(tmp_path / "mnist"))


def test_check_fails_for_what_was_named_and_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "check", "--data-dir", str(tmp_path)]) == 0
    assert main(["data", "check", "digits"]) == 0
    assert main(["data", "check", "mnist", "--data-dir", str(tmp_path)]) == 2
    assert "mnist          missing" in capsys.readouterr().out


def test_check_finds_a_damaged_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    for stem in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (folder / f"{stem}-ubyte").write_bytes(b"nothing")
    assert main(["data", "check", "--data-dir", str(tmp_path)]) == 2
    text = capsys.readouterr().out
    assert "mnist          damaged" in text
    assert "note: " in text


def test_get_says_in_one_line_what_could_not_be_fetched(
    epicortex: Command, mirror: str, tmp_path: Path
) -> None:
    done = epicortex("data", "get", "--mirror", mirror, "mnist", "--data-dir", "here", NO_PROXY="127.0.0.1")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{mirror}/mnist/" in done.stderr
    assert not [path for path in (tmp_path / "here").rglob("*ubyte*") if path.suffix != ".part"]


def test_what_is_there_already_is_not_fetched(epicortex: Command) -> None:
    done = epicortex("data", "get", "digits")
    assert done.returncode == 0
    assert "digits         present" in done.stdout
