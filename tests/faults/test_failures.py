"""Networks that fail in every way: recorded, shown, culled, without children; the run goes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import Dataset

from epicortex.errors import DataError
from epicortex.run.lifecycle import evolve
from epicortex.run.record import read_run
from tests.faults.conftest import Reference
from tests.faults.world import SMALL, Nursery, counted, same_bytes

#: What befalls a network follows from its weights alone, so that every attempt and engine sees the same.
SPOILING = """
import hashlib, time
import torch
from epicortex.evaluation.optimisers import find_optimiser

def spoiling(parameters, **arguments):
    parameters = list(parameters)
    optimiser = find_optimiser("Adadelta")(parameters, **arguments)
    if sum(parameter.numel() for parameter in parameters) <= 100:
        return optimiser
    weights = parameters[0].detach()
    fate = hashlib.sha256(weights.numpy().tobytes()).digest()[0] % 24
    if fate == 0:
        weights.fill_(float("nan"))
    elif fate == 1:
        weights.fill_(float("inf"))
    elif fate == 2:
        raise ValueError("spoilt\\nin \\x1b[31mtwo lines")
    elif fate == 3:
        torch.empty(2**46)
    elif fate == 4:
        time.sleep(1.2)
    return optimiser

optimisers = {"counted": spoiling}
"""
LARGER = ("--evolution.initial-networks", "32", "--evolution.max-networks", "32")
REASONS = {
    "NaN": r"the loss became nan in training step 1",
    "an exception": r"ValueError: spoilt in .*two lines",
    "memory": r"ran out of memory",
    "the time limit": r"took longer than the limit of 1 s",
}


def no_child_of_a_failed_network(run: Path) -> int:
    """How many failed; none of them has a child afterwards, and none is there in the next generation."""
    lines = list(read_run(run).networks())
    failed = {(line.id, line.generation) for line in lines if line.failed}
    for id, generation in failed:
        assert not [line for line in lines if id in line.parents and line.birth >= generation]
        assert not [line for line in lines if line.id == id and line.generation > generation]
    assert all(line.fitness is None for line in lines if line.failed)
    return len(failed)


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_networks_that_fail_are_recorded_and_shown_and_leave_no_children(
    nursery: Nursery, reference: Reference, tmp_path: Path, engine: str
) -> None:
    plugin, run = tmp_path / "spoiling.py", tmp_path / "run"
    plugin.write_text(SPOILING)
    words = [str(plugin) if word == str(reference.plugin) else word for word in reference.words]
    more = ("--training.time-limit", "1", "--generations", "5", "--engine", engine, "--workers", "2")
    ended = nursery.run(*words, *more, *LARGER, "--out", run)
    assert ended.code == 0, ended
    with counted(f"networks that yield NaN, raise, run out of memory or time ({engine})") as tally:
        with tally.case("children"):
            assert no_child_of_a_failed_network(run) > 5
        reasons = {line.failed for line in read_run(run).networks() if line.failed}
        shown = " ".join(nursery.run("show", run).out.split())
        for name, pattern in REASONS.items():
            with tally.case(name):
                assert any(re.fullmatch(pattern, reason) for reason in reasons), reasons
                assert re.search(pattern, shown), shown
                assert re.search(rf"\d+ failed \(.*{pattern}", ended.out), ended.out
        with tally.case("control characters"):
            assert "\x1b" not in shown + ended.out
        history = read_run(run).history
        assert sum(line.failed for line in history) == no_child_of_a_failed_network(run)


MONSTERS = """
from dataclasses import dataclass
from epicortex import ConvLayer, Genome, Mutated, draw_phenotype

@dataclass(frozen=True)
class Monster:
    '''A network of few weights whose feature maps take gigabytes.'''
    name: str = "monster"
    def possible(self, genome, direction):
        return direction == "grow"
    def weight(self, genome, rules):
        return 1.0
    def apply(self, phenotype, direction, *, rules, rng):
        layers = (ConvLayer(((1, 1),) * 200_000, (1, 1)), ConvLayer(((1, 1),), (4, 4)))
        genome = Genome(phenotype.genome.input_shape, layers, phenotype.genome.classes)
        return Mutated(draw_phenotype(genome, rng=rng), 1)

operators = [Monster()]
"""
#: Limits workers, and only them, before they begin.
LIMITED = """
import resource, sys
if any("epicortex.engines.worker" in word for word in sys.orig_argv):
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
"""


def test_a_network_too_large_for_memory_fails_and_the_run_goes_on(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "monsters.py").write_text(MONSTERS)
    (tmp_path / "sitecustomize.py").write_text(LIMITED)
    run = tmp_path / "run"
    words = (
        *("evolve", "digits", *SMALL, "--generations", "2", "--engine", "processes", "--workers", "1"),
        *("--plugin", str(tmp_path / "monsters.py"), "--out", str(run)),
    )
    with counted("out of memory in a worker (a limit with setrlimit)") as tally, tally.case("once"):
        ended = nursery.run(*words, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
        assert ended.code == 0, ended
        assert no_child_of_a_failed_network(run) >= 1
        assert {line.failed for line in read_run(run).networks()} == {None, "ran out of memory"}
        assert "ran out of memory" in nursery.run("show", run).out


BROKEN_OPERATOR = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Broken:
    name: str = "broken"
    def possible(self, genome, direction):
        return True
    def weight(self, genome, rules):
        return 100.0
    def apply(self, phenotype, direction, *, rules, rng):
        raise KeyError("an operator\\nof one's own")

operators = [Broken()]
"""


def test_an_operator_that_raises_costs_its_mutation_only(nursery: Nursery, tmp_path: Path) -> None:
    plugin, run = tmp_path / "broken.py", tmp_path / "run"
    plugin.write_text(BROKEN_OPERATOR)
    words = ("evolve", "digits", *SMALL, "--generations", "3", "--engine", "serial", "--no-speciation")
    with counted("an exception in a user's operator, data set or fitness") as tally, tally.case("operator"):
        ended = nursery.run(*words, "--plugin", plugin, "--out", run)
        assert ended.code == 0, ended
        assert sum(line.mutations_failed for line in read_run(run).history) > 0
        events = [event for line in read_run(run).networks() for event in line.events]
        assert {event.outcome for event in events if event.type == "broken"} == {"failed"}
        assert 'operator broken failed: KeyError: "an operator' in ended.err


BROKEN_FITNESS = """
def broken(logits, labels):
    if int(logits.argmax(1)[0]) % 2:
        raise RuntimeError("a fitness\\nof one's own")
    return 0.5

fitness = {"broken": broken}
"""


def test_a_fitness_function_that_raises_fails_its_network(nursery: Nursery, tmp_path: Path) -> None:
    plugin, run = tmp_path / "broken.py", tmp_path / "run"
    plugin.write_text(BROKEN_FITNESS)
    words = ("evolve", "digits", *SMALL, "--generations", "3", "--engine", "serial")
    with counted("an exception in a user's operator, data set or fitness") as tally, tally.case("fitness"):
        ended = nursery.run(*words, "--training.fitness", "broken", "--plugin", plugin, "--out", run)
        assert ended.code == 0, ended
        assert no_child_of_a_failed_network(run) >= 1
        assert "RuntimeError: a fitness of one's own" in " ".join(nursery.run("show", run).out.split())


class BrokenData(Dataset[Any]):
    """A data set of a person's own."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> tuple[list[float], int]:
        if index == 42:
            raise OSError("the drive\nis gone")
        return [1.0, 2.0], index % 2


def test_a_data_set_that_raises_is_one_line_before_anything_is_written(tmp_path: Path) -> None:
    with counted("an exception in a user's operator, data set or fitness") as tally, tally.case("data set"):
        with pytest.raises(DataError, match=r"42 raised OSError: the drive.is gone") as caught:
            evolve(BrokenData(), out=tmp_path / "run")
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "run").exists()


def test_a_generation_in_which_all_fail_stops_the_run_which_stays_resumable(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    plugin, run = tmp_path / "hopeless.py", tmp_path / "run"
    plugin.write_text(SPOILING.replace("% 24", "* 0 + 2"))
    words = [str(plugin) if word == str(reference.plugin) else word for word in reference.words]
    with counted("a whole generation that fails") as tally, tally.case("once"):
        ended = nursery.run(*words, "--out", run)
        assert ended.code == 4, ended
        assert "failed: ValueError: spoilt in" in ended.refusal
        assert "resuming tries this generation again" in ended.refusal
        assert nursery.run("resume", run, "--plugin", reference.plugin).code == 0
        assert same_bytes(run) == reference.bytes


def test_the_live_display_shows_why_networks_fail(reference: Reference, tmp_path: Path) -> None:
    """In a real terminal, made by `script`'s means: a pseudo-terminal on standard output."""
    import pty

    plugin = tmp_path / "spoiling.py"
    plugin.write_text(SPOILING)
    words = [str(plugin) if word == str(reference.plugin) else word for word in reference.words]
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "epicortex", *words, *LARGER, "--out", str(tmp_path / "run")],
        stdout=slave,
        stderr=subprocess.PIPE,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(master)
    _, err = program.communicate()
    assert program.returncode == 0, err
    assert "ValueError: spoilt in" in re.sub(r"\s+", " ", seen.decode(errors="replace"))
