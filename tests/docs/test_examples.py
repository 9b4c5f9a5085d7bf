"""Every code block of the README and of the documentation runs, and the site is built without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import epicortex
from epicortex import native
from epicortex.config import resolving as settings
from tests.docs.blocks import Page, blocks, small
from tests.e2e.pictures import write_pictures

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if any(blocks(page))]


def _stage(folder: Path) -> None:
    """What the README takes to be there: a folder of pictures, and one more."""
    write_pictures(folder, train=12, held_out=1)
    (folder / "train").rename(folder / "pictures")
    next((folder / "held-out").glob("*/*.jpg")).rename(folder / "holiday.jpg")


@pytest.mark.filterwarnings("ignore:there is no test part:RuntimeWarning")
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_every_code_block_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page.name == "native.md" and not native.available():
        pytest.skip(str(native.why_not()))
    if "onnx" in page.read_text("utf-8"):
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.path_importer_cache, ".", raising=False)  # it stands for the folder before
    # The namespace first: it looks a name up when it is first used, and would keep the small one for good.
    monkeypatch.setattr(epicortex, "configure", small(epicortex.configure))
    monkeypatch.setattr(settings, "resolve", epicortex.configure)
    if page.name == "README.md":
        _stage(tmp_path)
    run = Page(page)
    for block in blocks(page):
        if not block.skipped:
            run.run(block)
    capsys.readouterr()


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    notes = [block.note for page in PAGES for block in blocks(page) if block.skipped]
    assert all(note.removeprefix("no-run:").strip() for note in notes)
    assert len(notes) <= 15


def test_no_example_hides_in_a_block_that_is_not_looked_at() -> None:
    for page in PAGES:
        for word in ("```bash", "```sh", "```shell", "```py\n", "```pycon", "~~~"):
            assert word not in page.read_text("utf-8"), f"{page.name}: write console or python, not {word}"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for library in ("sphinx", "myst_parser", "furo", "nbclient", "ipykernel"):
        pytest.importorskip(library)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "trees"), str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()
    champion, curve = "multiplications for a sample", "best, mean over the generations"
    for name, shown in (("images", curve), ("table", champion), ("signals", "noise 1.0")):
        assert shown in (tmp_path / "html" / "notebooks" / f"{name}.html").read_text("utf-8")
