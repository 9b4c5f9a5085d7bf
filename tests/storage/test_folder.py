"""A run folder: made once, locked by one process, sealed against change."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.config import FORMAT_VERSION, Config, changed
from epicortex.errors import StorageError
from epicortex.storage.folder import RunFolder, RunInfo, read_config
from epicortex.storage.lock import Lock
from tests.storage.states import SMALL_FAMILY, refusal, small_phenotype


def info(**changes: str) -> RunInfo:
    return RunInfo.now(data="digits", data_digest="0" * 64, **changes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    RunFolder.create(tmp_path / "run", Config(), info()).close()
    return tmp_path / "run"


def reseal(path: Path, change: tuple[str, str]) -> None:
    """Change a config.toml the way a hostile sender would: with the right checksum."""
    text = path.read_text().rpartition("# sha256")[0].replace(*change)
    path.write_text(f"{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


def test_config_and_notes_come_back(tmp_path: Path) -> None:
    config = changed(
        Config(),
        evolution={"seed": 7, "start_genome": '{"a":"\\u00e9\n\x7f"}'},
        training={"optimiser_arguments": {"lr": 0.1, "betas": (0.9, 0.99)}},
    )
    notes = info(command="epicortex evolve 'näh\udce4' \"x\"\n\t\x00")
    RunFolder.create(tmp_path / "run", config, notes).close()
    back, found = read_config(tmp_path / "run")
    assert back == config
    assert found.command == notes.command.replace("\udce4", "?")
    assert found.id == notes.id


@given(text=st.text(min_size=1), command=st.text(st.characters()))
def test_any_text_in_a_path_or_a_command_comes_back(text: str, command: str) -> None:
    """Paths hold emoji, and whatever else a person can type."""
    config = changed(Config(), data={"source": f"/data/{text}"})
    with TemporaryDirectory() as folder:
        RunFolder.create(Path(folder), config, info(command=command)).close()
        back, found = read_config(Path(folder))
    assert back == config
    assert found.command == command.encode("utf-8", "replace").decode()


def test_every_truncation_and_many_flips_of_the_config_are_noticed(run: Path) -> None:
    path = run / "config.toml"
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        error = refusal(lambda: read_config(run))
        assert error is not None
        assert "\n" not in error
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        path.write_bytes(data)
        error = refusal(lambda: read_config(run))
        assert error is not None
        assert "\n" not in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((f"format = {FORMAT_VERSION}", f"format = {FORMAT_VERSION + 1}"), "a newer EpiCortex wrote it"),
        (("generations = 100", "generations = -1"), "generations"),
        (("[training]", "[training]\nplugin = 'os'"), "plugin"),
        (("[run]", "[run]\nplugin = 'os'"), "plugin"),
        (("seed = 1", "seed = " + "[" * 5000), "not TOML"),
        (('operators = ["layer"', 'operators = ["os.system"'), ""),
    ],
)
def test_a_resealed_config_is_still_checked(run: Path, change: tuple[str, str], message: str) -> None:
    reseal(run / "config.toml", change)
    error = refusal(lambda: read_config(run))
    if message:
        assert error is not None
        assert message in error
        assert "\n" not in error
    else:
        assert read_config(run)[0].evolution.operators[0] == "os.system"  # a name, which nobody imports


def test_a_newer_format_is_named_even_if_it_is_sealed_otherwise(run: Path) -> None:
    path = run / "config.toml"
    path.write_text(path.read_text().replace(f"format = {FORMAT_VERSION}", "format = 9"))
    with pytest.raises(StorageError, match="a newer EpiCortex wrote it"):
        read_config(run)


def test_what_is_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(StorageError, match=r"it has no config.toml"):
        RunFolder.open(tmp_path)


def test_a_link_in_the_place_of_the_folder_is_refused(run: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(run)
    for action in (RunFolder.open, read_config):
        with pytest.raises(StorageError, match="symbolic link"):
            action(link)
    with pytest.raises(StorageError, match="symbolic link"):
        RunFolder.create(link, Config(), info())


@pytest.mark.parametrize("name", ["checkpoints", "champion", "tensorboard", "lock", "config.toml"])
def test_a_link_inside_the_folder_is_not_written_through(run: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    place = run / name
    place.rename(outside)
    before = sorted(outside.iterdir()) if outside.is_dir() else outside.read_bytes()
    place.symlink_to(outside)
    with pytest.raises(StorageError, match="symbolic link"):
        RunFolder.open(run)
    assert before == (sorted(outside.iterdir()) if outside.is_dir() else outside.read_bytes())


def test_an_ancestor_is_kept(tmp_path: Path) -> None:
    network = small_phenotype()
    folder = RunFolder.create(tmp_path / "run", Config(), info(), ancestor=SMALL_FAMILY.encode(network))
    folder.close()
    folder = RunFolder.open(tmp_path / "run")
    ancestor = folder.ancestor(SMALL_FAMILY)
    folder.close()
    assert ancestor is not None
    assert ancestor.same_bits(network)


def test_a_folder_left_by_a_crash_before_its_config_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1\n")
    (tmp_path / ".config.toml.tmp").write_text("half")
    RunFolder.create(tmp_path, Config(), info()).close()
    assert not (tmp_path / ".config.toml.tmp").exists()


HOLD = """
import sys
from pathlib import Path
from epicortex.storage.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_gone_however_it_went(run: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StorageError, match=rf"in use by another process \(process {holder.pid}\)"):
        RunFolder.open(run)
    holder.kill()
    holder.communicate()
    RunFolder.open(run).close()


@pytest.mark.parametrize("remove", ["lock", "config.toml"])
def test_a_second_process_is_refused_whatever_a_person_removes(run: Path, remove: str) -> None:
    with Lock(run):
        before = (run / "config.toml").read_bytes()
        (run / remove).unlink()
        (run / "config.toml").write_bytes(before)
        second = subprocess.run(
            [sys.executable, "-c", HOLD, str(run)], capture_output=True, text=True, check=False
        )
        assert "in use by another process" in second.stderr
        assert second.stdout == ""
    Lock(run).close()


FILES_ONLY = """
import fcntl, os, stat, sys
from pathlib import Path
from epicortex.errors import UnwritableError
from epicortex.storage.lock import Lock

flock = fcntl.flock
def as_on_nfs(descriptor, how):
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        raise OSError(9, "Bad file descriptor")
    flock(descriptor, how)
fcntl.flock = as_on_nfs

place = Path(sys.argv[1])
lock = Lock(place)
lock.check()
(place / "lock").unlink()
second = Lock(place)
try:
    lock.check()
except UnwritableError as error:
    print(error)
second.check()
"""


def test_where_folders_cannot_be_locked_a_removed_lock_is_noticed(run: Path) -> None:
    """A network file system is not to be had here, so that only its answer is made up."""
    done = subprocess.run(
        [sys.executable, "-c", FILES_ONLY, str(run)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{run / 'lock'} was removed")


def test_the_lock_is_not_inherited(run: Path) -> None:
    with Lock(run):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        )
    Lock(run).close()
    child.communicate()


FULL = """
import resource, sys
from pathlib import Path
from epicortex.errors import UnwritableError
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.storage.journal import Heading, Journal
from epicortex.storage.lock import Lock
place, family = Path(sys.argv[1]), LayeredFamily(Problem((4,), 2))
for limit in (0, 2):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        Journal(place / "journal", Heading("r", 1, "s"), family=family) if limit else Lock(place)
    except UnwritableError:
        print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
Lock(place).close()
"""


def test_a_lock_or_a_journal_that_could_not_be_written_is_given_back(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\nrefused\n"
