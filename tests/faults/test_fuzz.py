"""Every reader of files against random changes, also with the checksums made right again.

EPICORTEX_FUZZ_EXAMPLES sets how many inputs each reader gets. Inputs follow from their numbers alone, so that
every case that is lost can be made again; a plain loop makes far more of them a second than hypothesis would.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickletools
import random
import resource
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from epicortex.champion import file as champion
from epicortex.config import changed
from epicortex.config import resolving as settings
from epicortex.data import DataSet, load
from epicortex.data.options import Unreadable
from epicortex.data.readers.folder import from_folder
from epicortex.data.scanning import scan
from epicortex.errors import EpiCortexError
from epicortex.families.layered.genome import Genome
from epicortex.paper import output, results_file
from epicortex.paper.plan import Plan
from epicortex.paper.results import BegunRun, Results, figures
from epicortex.run.record import read_run
from epicortex.storage import checkpoint, codec, lines, strict, tensors
from epicortex.storage.folder import RunFolder, RunInfo, read_config
from epicortex.storage.journal import Heading, Journal
from tests.data import test_hostile as data_files
from tests.faults.make_fixture import FAMILY, FIXTURES
from tests.faults.world import THOROUGH, counted

MOST_KILOBYTES = 300_000
MOST_SECONDS = 20
EXAMPLES = int(os.environ.get("EPICORTEX_FUZZ_EXAMPLES", "60"))
MANY = 1000
OLD = FIXTURES / "run-format-1"
NEWEST = OLD / "checkpoints" / "00000002"
JOURNAL = (OLD / "checkpoints" / "00000003.journal").read_bytes()
HEADING = Heading(**json.loads(JOURNAL[40 : 40 + int.from_bytes(JOURNAL[:8], "little")]))
ARRAYS, _ = tensors.parse((NEWEST / "weights.safetensors").read_bytes(), "here")
#: What is put in the place of a value: the wrong kind, the wrong size, and names that should mean nothing.
STRANGE: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, -0.0, 1e-320),
    *("", "\n", "\ud800", "os.system", "../../x", "\x1b[2J", "9" * 50, [], {}, [[]], {"": None}),
    *([1] * 50, {"format": 1}, [[1, 1], [3, 3]], "x" * 2000),
]
PIECES = (b"\0", b'"', b"{", b"[[", b"-", b"1e999", b"\xff" * 8, b"\n", b"\\ud800", b",", b"9" * 30)
#: Numbers that headers claim sizes with, and edges of what they can say.
NUMBERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


def written_config() -> bytes:
    """The config.toml of a new run."""
    with TemporaryDirectory() as name:
        notes = RunInfo.now(data="digits", data_digest="0" * 64)
        RunFolder.create(Path(name) / "run", settings.resolve("paper"), notes).close()
        return (Path(name) / "run" / "config.toml").read_bytes()


def sealed_config(data: bytes) -> bytes:
    text = data.rpartition(b"# sha256")[0]
    return text + f"# sha256 {hashlib.sha256(text).hexdigest()}\n".encode()


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled or put in, at a few places."""
    whole = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(len(whole) + 1)
        length = min(draw.choice((1, 1, 2, 8, 100)), len(whole) - place)
        match draw.randrange(5):
            case 0 if place < len(whole):
                whole[place] ^= draw.randrange(1, 256)
            case 1:
                del whole[place : place + length]
            case 2:
                whole[place:place] = whole[place : place + length]
            case 3:
                whole[place:place] = draw.choice(PIECES)
            case _:
                del whole[place:]
    return bytes(whole)


def changed_json(value: Any, draw: random.Random) -> Any:
    """One value somewhere in JSON exchanged, removed or added."""
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        for key in list(inner) if isinstance(inner, dict) else range(len(inner)):
            places.append((inner, key))
            if isinstance(inner[key], dict | list):
                walk(inner[key])

    value = json.loads(json.dumps(value))
    walk(value)
    for _ in range(draw.randint(1, 2)):
        inner, key = draw.choice(places)
        strange = draw.choice(STRANGE)
        match draw.randrange(4):
            case 0 if isinstance(inner, dict):
                inner.pop(key, None)
            case 1 if isinstance(inner, dict):
                inner[draw.choice(("format", "__class__", "id", "genome", "x"))] = strange
            case 2 if isinstance(inner, list):
                inner.insert(key, strange)
            case _ if isinstance(inner, dict) or key < len(inner):
                inner[key] = strange
    return value


def parts(data: bytes) -> tuple[Any, bytes]:
    """The header of a safetensors file, and what follows."""
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def joined(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def changed_header(data: bytes, draw: random.Random) -> bytes:
    header, body = parts(data)
    return joined(changed_json(header, draw), body)


@dataclass(frozen=True)
class Reader:
    """A reader, and how random changes become something for it to read."""

    name: str
    read: Callable[[Path, random.Random], object]
    """Given a place for a file, and what decides about the changes."""
    cost: int = 1
    """How many times as long as others it takes; where there are many inputs, it gets as many fewer."""

    @property
    def examples(self) -> int:
        """How many inputs it gets."""
        return EXAMPLES if EXAMPLES <= MANY else max(MANY, EXAMPLES // self.cost)


STATE = json.loads((NEWEST / "state.json").read_bytes())["state"]
#: In the first format and in the one that is written now.
MODELS = (
    (OLD / "champion" / "model.safetensors").read_bytes(),
    b"".join(champion.model_file(champion.read(OLD))),
)
CONFIGS = ((OLD / "config.toml").read_bytes(), written_config())


def genome_json(place: Path, draw: random.Random) -> object:
    changed = changed_json(STATE["networks"][-1]["phenotype"], draw)
    text = json.dumps(changed).encode()
    return Genome.from_json(changed_bytes(text, draw) if draw.random() < 0.3 else text)


def safetensors(place: Path, draw: random.Random) -> object:
    change = changed_bytes if draw.random() < 0.5 else changed_header
    return tensors.parse(change(draw.choice(MODELS), draw), "here")


def champion_file(place: Path, draw: random.Random) -> object:
    """The description is changed and sealed again, the weights stay."""
    header, body = parts(draw.choice(MODELS))
    about = strict.unseal(header["__metadata__"]["epicortex.champion"].encode(), "here")
    header["__metadata__"]["epicortex.champion"] = strict.sealed(changed_json(about, draw)).decode()
    place.write_bytes(joined(header, body))
    return champion.read(place)


def state_json(place: Path, draw: random.Random) -> object:
    return codec.decode(changed_json(STATE, draw), ARRAYS, "here", FAMILY)


def manifest(place: Path, draw: random.Random) -> object:
    run = place.parent / "run"
    if not run.exists():
        shutil.copytree(OLD / "checkpoints", run)
    values = strict.unseal((NEWEST / "manifest.json").read_bytes(), "here")
    data = strict.sealed(changed_json(values, draw))
    (run / "00000002" / "manifest.json").write_bytes(
        changed_bytes(data, draw) if draw.random() < 0.2 else data
    )
    return checkpoint.read(run, 2, run=HEADING.run, family=FAMILY)


def journal_file(place: Path, draw: random.Random) -> object:
    """Its records are changed inside, and their checksums made right; sometimes bytes anywhere."""
    if draw.random() < 0.3:
        place.write_bytes(changed_bytes(JOURNAL, draw))
    else:
        out, start = b"", 0
        while start < len(JOURNAL):
            length = int.from_bytes(JOURNAL[start : start + 8], "little")
            payload = JOURNAL[start + 40 : start + 40 + length]
            if draw.random() < 0.4:
                payload = changed_bytes(payload[:2000], draw) + payload[2000:]
            out += len(payload).to_bytes(8, "little") + hashlib.sha256(payload).digest() + payload
            start += 40 + length
        place.write_bytes(out)
    journal = Journal(place, HEADING, family=FAMILY)
    journal.close()
    place.unlink()
    assert all("\n" not in problem for problem in journal.problems)
    return journal.outcomes


def history_file(place: Path, draw: random.Random) -> object:
    return lines.read_history(_lines(place, "history.jsonl", draw))


def networks_file(place: Path, draw: random.Random) -> object:
    return list(lines.read_networks(_lines(place, "networks.jsonl", draw)))


def _lines(place: Path, name: str, draw: random.Random) -> Path:
    every = (OLD / name).read_bytes().splitlines(keepends=True)
    number = draw.randrange(len(every))
    changed = json.dumps(changed_json(json.loads(every[number]), draw)).encode() + b"\n"
    every[number] = changed_bytes(changed, draw) if draw.random() < 0.3 else changed
    place.write_bytes(b"".join(every))
    return place


@cache
def kept_plan() -> Plan:
    record = read_run(OLD)
    config = changed(record.config, evolution={"generations": len(record.history)})
    return Plan(config, ("mnist",), (True, False), 1)


@cache
def kept_runs() -> list[bytes]:
    """One run of each mode, kept."""
    record = read_run(OLD)
    plan = kept_plan()
    runs = [BegunRun(run, 2, "epicortex evolve", figures(record)) for run in plan.planned()]
    with TemporaryDirectory() as name:
        results_file.write(Path(name), Results(plan, tuple(runs), ()), [])
        return (Path(name) / results_file.NAME).read_bytes().splitlines(keepends=True)


def runs_file(place: Path, draw: random.Random) -> object:
    """Also what is read has to be fit for every table and plot."""
    every = kept_runs().copy()
    changed = json.dumps(changed_json(json.loads(every[0]), draw)).encode() + b"\n"
    every[0] = changed_bytes(changed, draw) if draw.random() < 0.3 else changed
    place.write_bytes(b"".join(every))
    # What was kept there before would go first.
    shutil.rmtree(place.parent / "results", ignore_errors=True)
    return output.write(kept_plan(), place.parent / "results", results_file.read(place))


def config_file(place: Path, draw: random.Random) -> object:
    place.mkdir(exist_ok=True)
    (place / "config.toml").write_bytes(sealed_config(changed_toml(draw.choice(CONFIGS), draw)))
    return read_config(place)


def preset_file(place: Path, draw: random.Random) -> object:
    path = place.with_suffix(".toml")
    path.write_bytes(changed_toml(PRESET, draw))
    return settings.resolve(path)


PRESET = b'preset = "paper"\n' + settings.dumps(settings.resolve("paper")).encode()


def changed_toml(data: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return changed_bytes(data, draw)
    every = data.splitlines(keepends=True)
    number = draw.randrange(len(every))
    name = every[number].partition(b" = ")[0]
    strange = draw.choice(STRANGE)
    every[number] = name + b" = " + json.dumps("none" if strange is None else strange).encode() + b"\n"
    return b"".join(every)


def data_file(reader: data_files.Reader) -> Callable[[Path, random.Random], object]:
    """Bytes changed anywhere, and numbers most where headers and directories are: at either end."""

    def read(place: Path, draw: random.Random) -> object:
        data = data_files.sound(reader)
        if draw.random() < 0.4:
            data = changed_bytes(data, draw)
        else:
            edits = [edit(len(data), draw) for _ in range(draw.choice((1, 1, 2, 5)))]
            data = data_files.changed(data, edits)
        place.write_bytes(reader.wrap(data))
        return reader.read(place)

    return read


def edit(size: int, draw: random.Random) -> data_files.Edit:
    near = draw.randrange(min(size, draw.choice((16, 64, 300))))
    where = draw.choice((near, near, size - 1 - near, draw.randrange(size)))
    kind = draw.choice(("flip", "set", "number", "number", "cut", "drop", "repeat", "insert"))
    return kind, where, draw.choice(NUMBERS) if draw.random() < 0.5 else draw.randrange(256)


@cache
def prepared() -> bytes:
    return data_files.sound(data_files.READERS[0])


def prepared_header(place: Path, draw: random.Random) -> object:
    """What a prepared data set says about itself is changed, and its JSON stays sound."""
    header, body = parts(prepared())
    if draw.random() < 0.5:
        header = changed_json(header, draw)
    else:
        about = changed_json(json.loads(header["__metadata__"]["epicortex.data"]), draw)
        header["__metadata__"]["epicortex.data"] = json.dumps(about)
    path = place.with_suffix(".safetensors")
    path.write_bytes(joined(header, body))
    return load(path) if draw.random() < 0.5 else DataSet.open(path)


#: Opcodes that call, import, refer, and claim to be followed by gigabytes.
OPCODES = (
    *(b"cposix\nsystem\n", b"\x93", b"R", b"b", b"i__main__\nx\n", b"o", b"\x81", b"\x92", b"Pid\n", b"Q"),
    *(
        b"(",
        b"t",
        b"\x85",
        b"\x86",
        b"\x87",
        b"}",
        b"]",
        b")",
        b"a",
        b"e",
        b"s",
        b"u",
        b"0",
        b"1",
        b"2",
        b".",
    ),
    *(b"h\0", b"j\xff\xff\xff\xff", b"q\0", b"r\xff\xff\xff\x7f", b"p-1\n", b"\x94", b"g99999999\n"),
    *(b"T\xff\xff\xff\x7f", b"B\xff\xff\xff\xff", b"\x8e" + b"\xff" * 8, b"\x8b\xff\xff\xff\x7f"),
    *(b"K\0", b"J\xff\xff\xff\xff", b"I" + b"9" * 5000 + b"\n", b"L1L\n", b"F1e999\n", b"Gabcdefgh", b"N"),
    *(b"S'x'\n", b"Vx\\ud800\n", b"X\1\0\0\0x", b"cnumpy\ndtype\n", b"c_codecs\nencode\n", b"\x82\1"),
)


@cache
def batch() -> tuple[bytes, ...]:
    """A batch of CIFAR, cut into its opcodes."""
    data = data_files._pickle()
    starts = [start for _, _, start in pickletools.genops(io.BytesIO(data)) if start is not None]
    return tuple(data[low:high] for low, high in zip(starts, [*starts[1:], len(data)], strict=True))


def other_opcodes(place: Path, draw: random.Random) -> object:
    """Opcodes of the pickle exchanged, left out, repeated, and others put between them."""
    every = list(batch())
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(every))
        match draw.randrange(4):
            case 0:
                every[at] = draw.choice(OPCODES)
            case 1:
                every[at:at] = [draw.choice(OPCODES)] * draw.choice((1, 1, 2, 50))
            case 2:
                every[at], every[-1 - at] = every[-1 - at], every[at]
            case _ if len(every) > 1:
                del every[at]
    place.write_bytes(b"".join(every))
    return data_files._read_pickle(place)


def picture_folder(place: Path, draw: random.Random) -> object:
    """A folder of pictures of two classes, some of which are damaged, and are refused or left out."""
    damaged = draw.sample(range(4), draw.choice((1, 1, 2, 4)))
    for number, reader in enumerate(draw.sample(PICTURES, 4)):
        path = place / ("ant", "bee")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = data_files.sound(reader)
        if number in damaged:
            edits = [edit(len(data), draw) for _ in range(draw.choice((1, 1, 3)))]
            data = reader.wrap(data_files.changed(data, edits))
        path.write_bytes(data)
    unreadable: Unreadable = draw.choice(("refuse", "skip", "skip"))
    options = replace(data_files.OPTIONS, unreadable=unreadable, decode_workers=1)
    return from_folder(scan(place), options=options, spool=place.parent)


PICTURES = [reader for reader in data_files.READERS if reader.read is data_files._read_picture]
READERS = [
    Reader("genome", genome_json),
    Reader("safetensors", safetensors),
    Reader("champion", champion_file),
    Reader("state", state_json),
    Reader("manifest", manifest),
    Reader("journal", journal_file),
    Reader("history", history_file),
    Reader("networks", networks_file),
    Reader("runs of an experiment", runs_file, cost=33),
    Reader("config", config_file, cost=4),
    Reader("preset", preset_file, cost=4),
    Reader("prepared data set, its header", prepared_header),
    Reader("CIFAR python batch, other opcodes", other_opcodes),
    Reader("folder of pictures", picture_folder, cost=10),
]
#: How the names of the readers in tests/data begin; what differs in where a file is changed is one reader.
FORMATS = (
    *("prepared", "idx", "CIFAR binary", "CIFAR python", "CIFAR archive", "mat", "npz", "csv", "parquet"),
    *("PNG", "JPEG", "WebP", "BMP"),
)


def several(reads: list[Callable[[Path, random.Random], object]]) -> Callable[[Path, random.Random], object]:
    return lambda place, draw: draw.choice(reads)(place, draw)


def of_format(name: str) -> list[data_files.Reader]:
    return [reader for reader in data_files.READERS if reader.name.startswith(name)]


assert sorted(one.name for name in FORMATS for one in of_format(name)) == sorted(
    one.name for one in data_files.READERS
)
if THOROUGH:  # else tests/data does this
    READERS += [Reader(name, several([data_file(one) for one in of_format(name)])) for name in FORMATS]


def held() -> int:
    """The most memory this process has held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_whatever_is_changed_a_reader_reads_or_refuses_in_one_line(reader: Reader, memory: Path) -> None:
    if reader.name == "parquet":  # threads would take five times as long as the reading
        pyarrow = pytest.importorskip("pyarrow")
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
    before = held()
    with counted(f"fuzzed input for the reader of {reader.name}") as tally, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        for seed in range(reader.examples):
            began = time.process_time()
            with tally.case(f"seed {seed}"):
                try:
                    reader.read(memory / "file", random.Random(seed))
                except EpiCortexError as error:
                    said = str(error)
                    assert said
                    assert "\n" not in said
                    assert len(said) < 2000, said
                    said.encode()
                assert time.process_time() - began < MOST_SECONDS
        with tally.case("memory"):
            assert held() - before < MOST_KILOBYTES
