"""Every reader of a run's files against random changes, also with the checksums made right again.

EPICORTEX_FUZZ_EXAMPLES sets how many inputs each reader gets.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicortex.errors import EpiCortexError
from epicortex.genome import Genome
from epicortex.storage import champion, checkpoint, codec, lines, strict, tensors
from epicortex.storage.folder import read_config
from epicortex.storage.journal import Heading, Journal
from tests.faults.make_fixture import FIXTURES
from tests.faults.world import counted

EXAMPLES = int(os.environ.get("EPICORTEX_FUZZ_EXAMPLES", "60"))
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
PIECES = (b"\0", b'"', b"{", b"[[", b"-", b"1e999", b"\xff" * 8, b"\n", b"\\ud800")


def sealed_config(data: bytes) -> bytes:
    text = data.rpartition(b"# sha256")[0]
    return text + f"# sha256 {hashlib.sha256(text).hexdigest()}\n".encode()


def changed_bytes(data: bytes, draw: random.Random) -> bytes:
    """Bytes flipped, cut out, doubled or put in, at a few places."""
    whole = bytearray(data)
    for _ in range(draw.randint(1, 4)):
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
                whole[place:place] = draw.choice(
                    (b"\0", b'"', b"{", b"[[", b"-", b"1e999", b"\xff" * 8, b"\n")
                )
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


@dataclass(frozen=True)
class Reader:
    """A reader, and how random changes become something for it to read."""

    name: str
    read: Callable[[Path, random.Random], object]
    """Given an empty place for a file, and what decides about the changes."""


def genome_json(place: Path, draw: random.Random) -> object:
    genome = json.loads((NEWEST / "state.json").read_bytes())["state"]["networks"][-1]["phenotype"]
    changed = changed_json(genome, draw)
    text = json.dumps(changed).encode()
    return Genome.from_json(changed_bytes(text, draw) if draw.random() < 0.3 else text)


def safetensors(place: Path, draw: random.Random) -> object:
    data = (OLD / "champion" / "model.safetensors").read_bytes()
    if draw.random() < 0.5:
        return tensors.parse(changed_bytes(data, draw), "here")
    length = int.from_bytes(data[:8], "little")
    text = json.dumps(changed_json(json.loads(data[8 : 8 + length]), draw)).encode()
    return tensors.parse(len(text).to_bytes(8, "little") + text + data[8 + length :], "here")


def champion_file(place: Path, draw: random.Random) -> object:
    """The description is changed and sealed again, the weights stay."""
    data = (OLD / "champion" / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about = strict.unseal(header["__metadata__"]["epicortex.champion"].encode(), "here")
    header["__metadata__"]["epicortex.champion"] = strict.sealed(changed_json(about, draw)).decode()
    text = json.dumps(header).encode()
    place.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    return champion.read(place)


def state_json(place: Path, draw: random.Random) -> object:
    state = json.loads((NEWEST / "state.json").read_bytes())["state"]
    return codec.decode(changed_json(state, draw), ARRAYS, "here")


def manifest(place: Path, draw: random.Random) -> object:
    run = place.parent / "run"
    if not run.exists():
        shutil.copytree(OLD / "checkpoints", run)
    values = strict.unseal((NEWEST / "manifest.json").read_bytes(), "here")
    data = strict.sealed(changed_json(values, draw))
    (run / "00000002" / "manifest.json").write_bytes(
        changed_bytes(data, draw) if draw.random() < 0.2 else data
    )
    return checkpoint.read(run, 2, run=HEADING.run)


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
    journal = Journal(place, HEADING)
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


def config_file(place: Path, draw: random.Random) -> object:
    data = (OLD / "config.toml").read_bytes()
    place.mkdir(exist_ok=True)
    if draw.random() < 0.5:
        every = data.splitlines(keepends=True)
        number = draw.randrange(len(every))
        name = every[number].partition(b" = ")[0]
        strange = draw.choice(STRANGE)
        every[number] = (
            name + b" = " + json.dumps(strange if strange is not None else "none").encode() + b"\n"
        )
        data = b"".join(every)
    else:
        data = changed_bytes(data, draw)
    (place / "config.toml").write_bytes(sealed_config(data))
    return read_config(place)


READERS = [
    Reader("genome", genome_json),
    Reader("safetensors", safetensors),
    Reader("champion", champion_file),
    Reader("state", state_json),
    Reader("manifest", manifest),
    Reader("journal", journal_file),
    Reader("history", history_file),
    Reader("networks", networks_file),
    Reader("config", config_file),
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_whatever_is_changed_a_reader_reads_or_refuses_in_one_line(reader: Reader, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with counted(f"fuzzed input for the reader of {reader.name}") as tally:

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(seed=st.integers(0, 2**62))
        def fuzz(seed: int) -> None:
            try:
                reader.read(tmp_path / "file", random.Random(seed))
            except EpiCortexError as error:
                said = str(error)
            else:
                said = "read"
            assert said
            assert "\n" not in said
            assert len(said) < 2000, said
            said.encode()
            tally.survived += 1

        fuzz()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
