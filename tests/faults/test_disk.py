"""Disks that are full, folders that become read-only or vanish: one line, and nothing saved is lost."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from epicortex.storage import checkpoint
from epicortex.storage.folder import read_config
from tests.faults.conftest import Held, Reference
from tests.faults.make_fixture import FAMILY
from tests.faults.world import THOROUGH, Nursery, counted, same_bytes

KILO = 1024


def mounted(*words: str) -> bool:
    """Whether a mount could be made; containers often may not."""
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system in memory of this size, in the place of a folder."""
    folder.mkdir()
    if not (os.geteuid() == 0 and mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))):
        pytest.skip("file systems cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def last_checkpoint_is_sound(run: Path) -> None:
    if (run / "config.toml").exists():
        _, info = read_config(run)
        if (run / "checkpoints").exists():
            _, problems = checkpoint.read_latest(run, run=info.id, family=FAMILY)
            assert not problems


def resume_to_the_same(nursery: Nursery, reference: Reference, run: Path) -> None:
    begun = (run / "config.toml").exists()
    words = ("resume", run, "--plugin", reference.plugin) if begun else (*reference.words, "--out", run)
    ended = nursery.run(*words)
    assert ended.code == 0, ended
    assert same_bytes(run) == reference.bytes


def test_on_a_full_disk_a_run_ends_in_one_line_and_resumes_when_there_is_space(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    sizes = range(8 * KILO, 640 * KILO, 8 * KILO)
    chosen = sizes if THOROUGH else random.Random(2).sample(sizes, 4)
    with counted("disk full (a small file system)") as tally:
        for size in chosen:
            disk = tmp_path / f"disk-{size}"
            with small_disk(disk, size), tally.case(f"{size} bytes"):
                run = disk / "run"
                ended = nursery.run(*reference.words, "--out", run)
                if ended.code != 0:
                    assert ended.code == 3, ended
                    assert "disk is full" in ended.refusal
                last_checkpoint_is_sound(run)
                again = nursery.run("show", run) if (run / "config.toml").exists() else None
                assert again is None or again.code == 0, again
                assert mounted("-o", "remount,size=16m", str(disk))
                resume_to_the_same(nursery, reference, run)


def test_past_a_limit_on_the_size_of_files_the_same_holds(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    """Where nothing can be mounted, this is the full disk."""
    # the line that says so goes into a file too, and has to fit
    sizes = [*range(500, 8000, 400), *range(8000, 200_000, 8000)]
    with counted("disk full (a limit on the size of files)") as tally:
        for size in sizes if THOROUGH else (1000, 5000, 100_000):
            run = tmp_path / f"run-{size}"
            with tally.case(f"{size} bytes"):
                ended = nursery.run(*reference.words, "--out", run, file_limit=size)
                if ended.code != 0:
                    assert ended.code == 3, ended
                    assert "size limit" in ended.refusal
                last_checkpoint_is_sound(run)
                resume_to_the_same(nursery, reference, run)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder and all in it read-only, for root too."""
    if os.geteuid() != 0:
        places = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
        modes = {path: path.stat().st_mode for path in places}
        for path in places:
            path.chmod(0o500)
        try:
            yield
        finally:
            for path, mode in modes.items():
                path.chmod(mode)
        return
    if not mounted("--bind", str(folder), str(folder)):
        pytest.skip("file systems cannot be mounted here")
    try:
        deadline = time.monotonic() + 10
        while not mounted("-o", "remount,bind,ro", str(folder)):  # busy while something is being written
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_folder_that_becomes_read_only_ends_the_run_in_one_line(
    nursery: Nursery, reference: Reference, held: Held, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with counted("run folder made read-only during the run") as tally, tally.case("once"):
        command = held.start(run)
        with read_only(run):
            held.go(run)
            ended = command.wait()
            assert ended.code == 3, ended
            assert "cannot be" in ended.refusal
            refused = nursery.run("resume", run, "--plugin", reference.plugin)
            assert refused.code == 3, refused
            assert "cannot be written" in refused.refusal
            assert nursery.run("show", run).code == 0
        last_checkpoint_is_sound(run)
        resume_to_the_same(nursery, reference, run)


def test_a_run_cannot_begin_where_nothing_can_be_written(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with counted("run begun in a read-only folder") as tally, tally.case("once"), read_only(place):
        ended = nursery.run(*reference.words, "--out", place / "run")
        assert ended.code in (2, 3), ended
        assert "cannot be made" in ended.refusal


def test_a_folder_that_is_removed_or_moved_ends_the_run_in_one_line(
    nursery: Nursery, reference: Reference, held: Held, tmp_path: Path
) -> None:
    with counted("run folder removed or moved during the run") as tally:
        for what in ("removed", "moved"):
            run, elsewhere = tmp_path / what, tmp_path / f"{what}-elsewhere"
            with tally.case(what):
                command = held.start(run)
                run.rename(elsewhere)
                if what == "removed":
                    shutil.rmtree(elsewhere)
                held.go(run)
                ended = command.wait()
                assert ended.code == 3, ended
                assert "its folder is gone" in ended.refusal
                if what == "moved":
                    last_checkpoint_is_sound(elsewhere)
                    resume_to_the_same(nursery, reference, elsewhere)
