"""Runs and models that somebody sends to do harm: refused in bounded memory and time, and nothing runs."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import pickle
import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from epicortex.champion import file as champions
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.storage import strict, tensors
from tests.champions import make_champion
from tests.faults.make_fixture import FIXTURES
from tests.faults.test_damage import FILES
from tests.faults.world import THOROUGH, Ended, Nursery, counted

OLD = FIXTURES / "run-format-1"
#: What the nursery itself holds, and half a gigabyte.
MOST_KILOBYTES = 800_000
#: Of the processor, since the machine may have other things to do.
MOST_SECONDS = 20


class Bomb:
    """What a hostile file would like to have run."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.sentinel}",)


def torch_file(sentinel: Path) -> bytes:
    """The kind of file that torch.load would execute."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb(sentinel), protocol=2))
        archive.writestr("archive/version", "3")
    return stream.getvalue()


CONTENTS: dict[str, Callable[[Path], bytes]] = {
    "pickle": lambda sentinel: pickle.dumps(Bomb(sentinel)),
    "torch.save": torch_file,
    "deep JSON": lambda _: b"[" * 3_000_000,
    "deep objects": lambda _: b'{"a":' * 1_000_000,
    "many values": lambda _: b"[" + b"[]," * 15_000_000 + b"[]]",
    "huge number": lambda _: b'{"format":' + b"9" * 3_000_000 + b"}",
    "zeros": lambda _: b"\0" * 1_000_000,
    "compressed": lambda _: zlib.compress(b"\0" * 10_000_000),
    "claimed header": lambda _: (2**62).to_bytes(8, "little") + b'{"a":1}',
    "claimed gigabytes": lambda _: sized({"a": array([2**28], [0, 2**30])}),
    "claimed shape": lambda _: sized({"a": array([2**31, 2**31], [0, 8])}),
    "traversal": lambda _: sized({"../../../../tmp/evil": array([2], [0, 8])}) + b"\0" * 8,
    "TOML": lambda _: b"a = " + b"[" * 100_000,
}


def array(shape: list[int], place: list[int]) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, "data_offsets": place}


def sized(header: object) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def survived(nursery: Nursery, sentinel: Path, *words: object, **options: Any) -> Ended:
    """Run a command on something hostile: it works or refuses, in bounds, and nothing else happens."""
    ended = nursery.run(*words, **options)
    assert ended.code in (0, 2, 3, 4), ended
    assert "Traceback" not in ended.err, ended
    assert ended.code == 0 or ended.refusal
    assert ended.memory < MOST_KILOBYTES, f"{ended.memory} kB"
    assert ended.seconds < MOST_SECONDS
    assert not sentinel.exists()
    assert not Path("/tmp/evil").exists()
    return ended


def test_hostile_bytes_in_the_place_of_any_file_are_refused(nursery: Nursery, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    names = (
        FILES
        if THOROUGH
        else ("config.toml", "checkpoints/00000002/state.json", "champion/model.safetensors")
    )
    with counted("hostile bytes in the place of any file of a run") as tally:
        pairs = itertools.product(enumerate(names), enumerate(CONTENTS.items()))
        for (row, name), (column, (what, content)) in pairs:
            if THOROUGH or (row + column) % 3:  # in `make test` each content comes to two of three files
                run = Path(shutil.copytree(OLD, tmp_path / "run"))
                (run / name).write_bytes(content(sentinel))
                with tally.case(f"{what} as {name}"):
                    survived(nursery, sentinel, "show", run)
                    if name.endswith("model.safetensors"):
                        new = ("evolve", "digits", "--from", run, "--out", tmp_path / "new")
                        assert survived(nursery, sentinel, *new).code == 2
                    survived(nursery, sentinel, "resume", run)
                shutil.rmtree(run)


def reseal_config(run: Path, old: str, new: str) -> None:
    path = run / "config.toml"
    text = path.read_text().rpartition("# sha256")[0]
    assert old in text
    text = text.replace(old, new, 1)
    path.write_text(f"{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


CONFIGS = {
    "an operator": ('operators = ["layer"', 'operators = ["os.system", "layer"', "no operator is called"),
    "a fitness": ('fitness = "accuracy"', 'fitness = "os.system"', "no fitness is called"),
    "an optimiser": ('optimiser = "Adadelta"', 'optimiser = "lr_scheduler"', "no optimiser"),
    "an engine": ('engine = "serial"', 'engine = "os"', "give --engine os again"),
    "a plug-in": ("[training]", '[training]\nplugin = "evil.py"', "plugin"),
    "a section": ("[training]", '[plugins]\nfile = "evil.py"\n[training]', "no section"),
    "a cluster": ('engine = "serial"', 'engine = "ray"', "give --engine ray again"),
    "an MPI job": ('engine = "serial"', 'engine = "mpi"', "give --engine mpi again"),
    "a device file": ('source = "digits"', 'source = "/dev/zero"', "/dev/zero"),
    "a pipe": ('source = "digits"', 'source = "PIPE"', "PIPE"),
    "a start genome": ('start_genome = "none"', 'start_genome = "' + "[" * 100_000 + '"', "genome"),
    "a huge genome": (
        'start_genome = "none"',
        'start_genome = "{\\"format\\":1,\\"input_shape\\":[1,8,8],\\"layers\\":[{\\"type\\":\\"full\\",'
        '\\"nodes\\":1000000000}],\\"classes\\":10}"',
        "nodes",
    ),
    "another run's data": ('data_digest = "', 'data_digest = "0', "not the data"),
}


def test_a_config_can_name_things_but_make_nothing_run(nursery: Nursery, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    pipe = tmp_path / "PIPE"
    os.mkfifo(pipe)
    with counted("configs with valid seals that name what must not run") as tally:
        for what, (old, new, says) in CONFIGS.items():
            run = Path(shutil.copytree(OLD, tmp_path / "run"))
            (run / "evil.py").write_text(f"open({str(sentinel)!r}, 'w')\n")
            reseal_config(run, old, new.replace("PIPE", str(pipe)))
            with tally.case(what):
                survived(nursery, sentinel, "show", run)
                ended = survived(nursery, sentinel, "resume", run, "--trust")
                assert ended.code != 0, ended
                assert says.replace("PIPE", str(pipe)) in ended.err
            shutil.rmtree(run)


def test_a_checkpoint_with_the_right_checksums_and_absurd_content_is_refused(
    nursery: Nursery, tmp_path: Path
) -> None:
    sentinel = tmp_path / "executed"
    state = json.loads((OLD / "checkpoints" / "00000002" / "state.json").read_text())
    network = state["state"]["networks"][0]
    absurd: dict[str, object] = {
        "a huge layer": {"type": "full", "nodes": 10**9},
        "huge kernels": {"type": "conv", "kernels": [[2**30 + 1, 2**30 + 1]], "stride": [1, 1]},
        "countless kernels": {"type": "conv", "kernels": [[1, 1]] * 400_000, "stride": [1, 1]},
        "a class": {"type": "os.system", "nodes": 1},
    }
    with counted("checkpoints with valid checksums and absurd content") as tally:
        for what, layer in absurd.items():
            run = Path(shutil.copytree(OLD, tmp_path / "run"))
            shutil.rmtree(run / "checkpoints" / "00000001")
            network["phenotype"]["layers"] = [layer]
            write_state(run, strict.dump(state) + b"\n")
            with tally.case(what):
                assert survived(nursery, sentinel, "resume", run).code == 2
            shutil.rmtree(run)


def test_a_run_that_was_sent_reads_and_writes_nothing_of_its_own_choice(
    nursery: Nursery, tmp_path: Path
) -> None:
    sentinel = tmp_path / "executed"
    table, elsewhere = tmp_path / "table.csv", tmp_path / "elsewhere"
    table.write_text("v,label\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))
    asks = {
        "data.source": ('source = "digits"', f'source = "{table}"'),
        "data.directory": ('directory = "none"', f'directory = "{elsewhere}"'),
        "data.max_bytes": ("max_bytes = 4294967296", "max_bytes = 42949672960"),
        "data.max_pixels": ("max_pixels = 50000000", "max_pixels = 500000000"),
    }
    with counted("runs that were sent and name files or lift limits") as tally:
        for name, change in asks.items():
            run = Path(shutil.copytree(OLD, tmp_path / "run"))
            reseal_config(run, *change)
            with tally.case(name):
                assert survived(nursery, sentinel, "show", run).code == 0
                assert survived(nursery, sentinel, "report", run).code == 0
                assert "was sealed by somebody else" in (run / "report.html").read_text()
                refused = survived(nursery, sentinel, "resume", run)
                assert refused.code == 2
                assert f"{name} = " in refused.refusal
                assert "give --trust to allow it" in refused.refusal
                assert not elsewhere.exists()
                if name != "data.source":  # whose data is not that of the run
                    assert survived(nursery, sentinel, "resume", run, "--trust").code == 0
                    # from now on it is this user's own
                    again = survived(nursery, sentinel, "resume", run, "--generations", "4")
                    assert again.code == 0, again
            shutil.rmtree(run)
            shutil.rmtree(elsewhere, ignore_errors=True)


SIZES = {
    "a genome of 9 billion parameters": (
        'start_genome = "none"',
        'start_genome = "{\\"format\\":1,\\"input_shape\\":[1,8,8],\\"layers\\":[{\\"type\\":\\"full\\",'
        '\\"nodes\\":90000},{\\"type\\":\\"full\\",\\"nodes\\":100000}],\\"classes\\":10}"',
    ),
    "a million networks": ("initial_networks = 4", "initial_networks = 1000000"),
}


def test_founders_that_do_not_fit_into_memory_are_refused_before_they_are_made(
    nursery: Nursery, tmp_path: Path
) -> None:
    sentinel = tmp_path / "executed"
    with counted("configs, rightly sealed, that ask for more memory than there is") as tally:
        for what, change in SIZES.items():
            run = Path(shutil.copytree(OLD, tmp_path / "run"))
            shutil.rmtree(run / "checkpoints")
            reseal_config(run, *change)
            with tally.case(what):
                ended = survived(nursery, sentinel, "resume", run, memory_limit=4_000_000_000)
                assert ended.code == 2, ended
                assert "GB of memory are needed, and there are" in ended.refusal
            shutil.rmtree(run)


def test_a_small_model_with_a_huge_input_is_refused(nursery: Nursery, tmp_path: Path) -> None:
    """A stride of 20,000 makes four values of more than a thousand million; it takes three weights."""
    sentinel, model = tmp_path / "executed", tmp_path / "model.safetensors"
    small = Genome((1, 20, 20), (ConvLayer(((1, 1),), (10, 10)),), 3)
    champion = replace(make_champion(), phenotype=draw_phenotype(small, rng=np.random.default_rng(1)))
    arrays, texts = tensors.parse(b"".join(champions.model_file(champion)), "here")
    ((name, text),) = texts.items()
    values = strict.unseal(text.encode(), "here")
    values["genome"]["input_shape"] = [1, 40_000, 40_000]
    values["genome"]["layers"][0]["stride"] = [20_000, 20_000]
    model.write_bytes(b"".join(tensors.serialise(arrays, {name: strict.sealed(values).decode()})))
    assert model.stat().st_size < 2000
    picture = tmp_path / "picture.png"
    Image.new("L", (9, 9)).save(picture)
    with counted("small models that ask for more memory than there is") as tally:
        for words in (("predict", model, picture), ("export", model, "--to", tmp_path / "model.pt2")):
            with tally.case(words[0]):
                assert "values at one of its layers" in survived(nursery, sentinel, *words).refusal


def write_state(run: Path, text: bytes) -> None:
    """Put a state into the newest checkpoint, and the checksum that goes with it."""
    place = run / "checkpoints" / "00000002"
    (place / "state.json").write_bytes(text)
    values = strict.unseal((place / "manifest.json").read_bytes(), "here")
    values["state_sha256"] = hashlib.sha256(text).hexdigest()
    (place / "manifest.json").write_bytes(strict.sealed(values))


def test_files_of_holes_and_things_that_are_no_files_are_refused(nursery: Nursery, tmp_path: Path) -> None:
    """A hole of a terabyte takes no space to send; a pipe would be waited for, a link leads anywhere."""
    sentinel, outside = tmp_path / "executed", tmp_path / "outside"
    names = (
        "config.toml",
        "history.jsonl",
        "networks.jsonl",
        "checkpoints/00000002/weights.safetensors",
        "checkpoints/00000002/state.json",
        "checkpoints/00000003.journal",
        "champion/model.safetensors",
    )
    with counted("sparse files, pipes, links and devices in a run") as tally:
        for name in names if THOROUGH else names[::2]:
            for what in ("holes", "pipe", "link", "device", "folder"):
                run = Path(shutil.copytree(OLD, tmp_path / "run"))
                outside.write_bytes((run / name).read_bytes())
                before = outside.read_bytes()
                (run / name).unlink()
                if what == "holes":
                    with (run / name).open("wb") as stream:
                        stream.write(before)
                        stream.truncate(2**36)
                elif what == "pipe":
                    os.mkfifo(run / name)
                elif what == "folder":
                    (run / name).mkdir()
                else:
                    (run / name).symlink_to(outside if what == "link" else "/dev/zero")
                with tally.case(f"{what} as {name}"):
                    survived(nursery, sentinel, "show", run)
                    survived(nursery, sentinel, "resume", run)
                    assert outside.read_bytes() == before
                shutil.rmtree(run)


@pytest.mark.parametrize("name", ["", "checkpoints", "champion", "tensorboard"])
def test_a_link_in_the_place_of_a_folder_is_not_written_through(
    nursery: Nursery, tmp_path: Path, name: str
) -> None:
    run = Path(shutil.copytree(OLD, tmp_path / "run"))
    (run / "tensorboard").mkdir()
    outside = (run / name).rename(tmp_path / "outside")
    (run / name).symlink_to(outside) if name else (tmp_path / "run").symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    with counted("links in the place of the run's folders") as tally, tally.case(name or "run"):
        ended = nursery.run("resume", run)
        assert ended.code == 2, ended
        assert "symbolic link" in ended.refusal
        assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
