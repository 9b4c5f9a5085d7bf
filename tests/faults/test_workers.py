"""Workers killed and stopped, and what is left behind when a run ends: nothing, whatever ends it."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from epicortex.families.layered.genome import Genome
from epicortex.run.record import read_run
from tests.contracts.world import abandoned, segments, until
from tests.faults.conftest import Reference
from tests.faults.world import THOROUGH, Command, Nursery, counted, same_bytes

#: A third could be the third for one network, which would rightly fail.
HITS = 2 if THOROUGH else 1
ENGINE = ("--engine", "processes", "--workers", "2")


def started(command: Command, run: Path) -> None:
    """Wait until both workers are there and the run has its files."""
    log = run / "history.jsonl"
    assert until(lambda: len(command.workers()) == 2 and log.exists()), command.err


@pytest.mark.parametrize(("number", "name"), [(signal.SIGKILL, "kill -9"), (signal.SIGSTOP, "SIGSTOP")])
def test_a_worker_killed_or_stopped_changes_no_bit(
    nursery: Nursery, reference: Reference, slow: tuple[str, ...], tmp_path: Path, number: int, name: str
) -> None:
    draw = random.Random(number)
    limit = ("--training.hang-limit", "20" if THOROUGH else "6") if number == signal.SIGSTOP else ()
    with counted(f"{name} of workers at work") as tally:
        for case in range(6 if THOROUGH else 1):
            run, worked = tmp_path / f"run-{case}", tmp_path / f"worked-{case}"
            worked.touch()
            with tally.case(case):
                command = nursery.start(*slow, *ENGINE, *limit, "--out", run, EPICORTEX_COUNT=str(worked))
                started(command, run)
                hit: list[int] = []
                while len(hit) < HITS and nursery.wait(command.pid, draw.uniform(0.2, 1.5)) is None:
                    # not those that still start: three of them in a row would rightly end the run
                    at_work = set(map(int, worked.read_text().split())) & set(command.workers())
                    if victims := sorted(at_work - set(hit)):
                        hit.append(draw.choice(victims))
                        os.kill(hit[-1], number)
                assert hit
                ended = command.wait()
                assert ended.code == 0, ended
                assert same_bytes(run) == reference.bytes
                assert not command.workers()


DEADLY = """
import os, signal
from epicortex.evaluation.optimisers import find_optimiser

def deadly(parameters, **arguments):
    size = sum(parameter.numel() for parameter in parameters)
    if size > 100 and os.environ.get("EPICORTEX_DIE") == str(size):
        os.kill(os.getpid(), signal.SIGKILL)
    return find_optimiser("Adadelta")(parameters, **arguments)

optimisers = {"counted": deadly}
"""


def dense(genome: Genome) -> int:
    """How many numbers a network's parameters hold, zeros around small kernels too."""
    arrays = (
        layer.array_shapes(below) for layer, below in zip(genome.layers, genome.input_shapes, strict=True)
    )
    return sum(math.prod(shape) for shapes in arrays for shape in shapes.values())


def test_a_network_that_kills_its_worker_again_and_again_fails_and_the_run_goes_on(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    plugin = tmp_path / "deadly.py"
    plugin.write_text(DEADLY)
    words = [str(plugin) if word == str(reference.plugin) else word for word in reference.words]
    lines = [line for line in read_run(reference.path).networks() if line.generation <= 2]
    sizes = [dense(Genome.from_dict(line.genome)) for line in lines if isinstance(line.genome, dict)]
    first = sizes[: sum(line.generation == 1 for line in lines)]
    deadly = min(first, key=sizes.count)  # of which there are few: each costs three workers
    with counted("a network that kills its worker three times") as tally, tally.case("once"):
        more = ("--workers", "1", "--generations", "2", "--out", tmp_path / "run")
        ended = nursery.run(*words, *ENGINE, *more, EPICORTEX_DIE=str(deadly))
        assert ended.code == 0, ended
        failed = [line for line in read_run(tmp_path / "run").networks() if line.failed]
        assert failed
        assert {line.failed for line in failed} == {"killed its worker 3 times (signal 9)"}
        assert "killed its worker 3 times" in nursery.run("show", tmp_path / "run").out


End = Callable[[Command, Path], int]


def end_normally(command: Command, run: Path) -> int:
    return 0


def end_by(*numbers: int) -> End:
    """Send these signals, one after another; gives the exit code that has to follow."""

    def end(command: Command, run: Path) -> int:
        started(command, run)
        time.sleep(1)
        for number in numbers:
            command.kill(number)
            if number != signal.SIGKILL:  # two at once would count as one
                assert until(lambda: "stopping after a checkpoint" in command.err), command.err
        if signal.SIGKILL in numbers:
            return -signal.SIGKILL
        return 130 if len(numbers) > 1 else 128 + numbers[0]

    return end


def gone(command: Command) -> bool:
    return until(lambda: not command.workers())


ENDINGS: dict[str, End] = {
    "a normal end": end_normally,
    "Ctrl-C": end_by(signal.SIGINT),
    "Ctrl-C twice": end_by(signal.SIGINT, signal.SIGINT),
    "SIGTERM": end_by(signal.SIGTERM),
    "SIGHUP": end_by(signal.SIGHUP),
    "kill -9": end_by(signal.SIGKILL),
}


def test_whatever_ends_a_run_no_process_and_no_file_is_left_behind_and_it_resumes(
    nursery: Nursery, reference: Reference, slow: tuple[str, ...], tmp_path: Path
) -> None:
    names = ENDINGS if THOROUGH else ("Ctrl-C twice", "kill -9")
    endings = {name: ENDINGS[name] for name in names}
    with counted("processes, shared memory and temporary files after any end of a run") as tally:
        for number, (name, end) in enumerate(endings.items()):
            run, temporary = tmp_path / f"run-{number}", tmp_path / f"tmp-{number}"
            temporary.mkdir()
            shared = segments()
            with tally.case(name):
                command = nursery.start(*slow, *ENGINE, "--out", run, TMPDIR=str(temporary))
                expected = end(command, run)
                ended = command.wait()
                assert ended.code == expected, ended
                assert "Traceback" not in ended.err
                assert gone(command)
                assert not list(temporary.iterdir())
                assert not abandoned(shared)
                if expected:
                    plugin = slow[slow.index("--plugin") + 1]
                    assert nursery.run("resume", run, "--plugin", plugin, "--engine", "serial").code == 0
                assert same_bytes(run) == reference.bytes


ENDLESS = """
import os, time
from epicortex.evaluation.optimisers import find_optimiser

def endless(parameters, **arguments):
    big = sum(parameter.numel() for parameter in parameters) > 100
    if big and os.environ.get("EPICORTEX_ENDLESS") and os.path.getsize(os.environ["EPICORTEX_COUNT"]) >= 9:
        time.sleep(3600)
    if big:
        with open(os.environ["EPICORTEX_COUNT"], "ab", 0) as stream:
            stream.write(b"x")
    return find_optimiser("Adadelta")(parameters, **arguments)

optimisers = {"counted": endless}
"""


def test_sigterm_ends_a_long_training_within_seconds_and_what_was_finished_is_kept(
    nursery: Nursery, reference: Reference, tmp_path: Path
) -> None:
    """As on a cluster that preempts jobs: requeued with `resume`, the run ends with the same bytes."""
    plugin, count = tmp_path / "endless.py", tmp_path / "count"
    plugin.write_text(ENDLESS)
    count.touch()
    words = [str(plugin) if word == str(reference.plugin) else word for word in reference.words]
    with counted("SIGTERM in the middle of an hour of training") as tally, tally.case("once"):
        command = nursery.start(
            *words, *ENGINE, "--out", tmp_path / "run", EPICORTEX_COUNT=str(count), EPICORTEX_ENDLESS="1"
        )
        assert until(lambda: count.stat().st_size >= 9), command.err
        time.sleep(2)
        command.kill(signal.SIGTERM)
        ended = command.wait()
        assert ended.code == 143, ended
        assert "epicortex resume" in ended.out
        again = ("resume", tmp_path / "run", "--plugin", plugin, "--engine", "serial")
        ended = nursery.run(*again, EPICORTEX_COUNT=str(count))
        assert ended.code == 0, ended
        assert same_bytes(tmp_path / "run") == reference.bytes
        # Two were asleep and had not counted: not one finished training was repeated.
        assert count.stat().st_size == reference.trainings


def test_a_second_process_on_one_folder_is_refused_and_a_crash_leaves_no_lock(
    nursery: Nursery, reference: Reference, slow: tuple[str, ...], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with counted("two processes on one run folder") as tally:
        command = nursery.start(*slow, "--out", run)
        assert until((run / "history.jsonl").exists)
        command.kill(signal.SIGSTOP)  # or it could end before the others have tried
        for words in (("resume", run, "--plugin", reference.plugin), (*slow, "--out", run)):
            with tally.case(words[0]):
                ended = nursery.run(*words)
                assert ended.code == 2
                assert f"in use by another process (process {command.pid})" in ended.refusal
        with tally.case("the lock removed"):
            (run / "lock").unlink()
            ended = nursery.run("resume", run, "--plugin", reference.plugin)
            assert ended.code == 2
            assert "in use by another process" in ended.refusal
        (run / "config.toml").unlink()  # and even this comes back with the next generation
        command.kill(signal.SIGCONT)
        assert until((run / "config.toml").exists)
        with tally.case("after kill -9"):
            command.kill()
            command.wait()
            assert nursery.run("resume", run, "--plugin", reference.plugin).code == 0
            assert same_bytes(run) == reference.bytes
