"""kill -9 of the main process, at any moment and at every change it makes to the disk."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.contracts.world import until
from tests.faults.conftest import Held, Reference, make_reference
from tests.faults.nursery import CALLS
from tests.faults.world import THOROUGH, Command, Nursery, Tally, counted, same_bytes


def go_on(nursery: Nursery, reference: Reference, run: Path, count: Path, *more: str) -> None:
    """Resume a run that was killed; before it had a config, begin it again in the same folder."""
    if (run / "config.toml").exists():
        words = ("resume", str(run), "--plugin", str(reference.plugin), *more)
    else:
        words = (*reference.words, "--out", str(run), *more)
    ended = nursery.run(*words, EPICORTEX_COUNT=str(count))
    assert ended.code == 0, ended


def check(tally: Tally, reference: Reference, run: Path, count: Path, workers: int = 1) -> None:
    """The end is the same, and nothing was trained again but what was under way."""
    assert same_bytes(run) == reference.bytes
    repeated = count.stat().st_size - reference.trainings
    tally.repeated.append(repeated)
    assert 0 <= repeated <= workers, f"{repeated} trainings repeated"
    leftovers = [path.name for path in run.rglob("*") if path.name.startswith(".")]
    assert not leftovers, leftovers


def moments(reference: Reference, kind: str) -> list[tuple[str, int, str]]:
    """Every change of one kind that the run makes to its folder; in CI a few."""
    ways = ("before", "torn", "after") if kind == "write" else ("before", "after")
    every = [(kind, number, how) for number in range(1, reference.calls[kind] + 1) for how in ways]
    return every if THOROUGH else random.Random(4).sample(every, 2)


@pytest.mark.parametrize("kind", CALLS)
def test_killed_at_any_change_to_the_disk_a_run_resumes_to_the_same_bytes(
    nursery: Nursery, reference: Reference, tmp_path: Path, kind: str
) -> None:
    assert reference.calls[kind] > 10
    with counted(f"kill -9 of the main process at every {kind}") as tally:
        for number, moment in enumerate(moments(reference, kind)):
            run, count = tmp_path / f"run-{number}", tmp_path / f"count-{number}"
            count.touch()
            with tally.case(moment):
                words = (*reference.words, "--out", str(run))
                ended = nursery.run(*words, die_at=moment, EPICORTEX_COUNT=str(count))
                assert ended.code in (-signal.SIGKILL, 0), ended
                go_on(nursery, reference, run, count)
                check(tally, reference, run, count)


def killed_after(command: Command, count: Path, begun: int, seconds: float) -> bool:
    """Kill a run some time after so many trainings began; False if it came to its end before that.

    Not some time after its start: a busy machine takes any time for a run.
    """
    assert until(lambda: count.stat().st_size >= begun), command.err
    time.sleep(seconds)
    command.kill()
    code = command.wait().code
    assert code in (-signal.SIGKILL, 0)
    return code != 0


@pytest.mark.parametrize("workers", [0, 2])
def test_killed_at_random_moments_a_run_resumes_to_the_same_bytes(
    nursery: Nursery, tmp_path: Path, workers: int
) -> None:
    """Six generations, killed and resumed. `workers` 0 is the engine serial."""
    if workers and not THOROUGH:
        pytest.skip("part of the long version")
    engine = ("--engine", "processes", "--workers", str(workers)) if workers else ()
    reference = make_reference(nursery, tmp_path, 6)
    draw = random.Random(workers)
    name = f"processes, {workers} workers" if workers else "serial"
    wanted = (10 if workers else 40) if THOROUGH else 2
    with counted(f"kill -9 of the main process at random moments of 6 generations ({name})") as tally:
        for number in itertools.count():
            if tally.survived + len(tally.lost) == wanted:
                break
            run, count = tmp_path / f"run-{number}", tmp_path / f"count-{number}"
            count.touch()
            words = (*reference.words, *engine, "--out", str(run))
            command = nursery.start(*words, EPICORTEX_COUNT=str(count))
            begun, seconds = draw.randrange(reference.trainings), draw.uniform(0, 0.1)
            if not killed_after(command, count, begun, seconds):
                continue
            with tally.case(f"{seconds:.3f} s after training {begun}"):
                go_on(nursery, reference, run, count, *engine)
                check(tally, reference, run, count, workers or 1)
                assert not command.workers()


LOGS = ("history.jsonl", "networks.jsonl")


def test_logs_removed_or_replaced_during_a_run_come_back(
    reference: Reference, held: Held, tmp_path: Path
) -> None:
    with counted("logs removed or replaced during a run") as tally:
        for name in LOGS:
            for what in ("removed", "replaced"):
                with tally.case(f"{name} {what}"):
                    run = tmp_path / f"{name}-{what}"
                    command = held.start(run)
                    (run / name).unlink()
                    if what == "replaced":
                        (run / name).write_text("{}\n")
                    held.go(run)
                    ended = command.wait()
                    assert ended.code == 0, ended
                    assert "was removed or replaced; it is back, whole" in ended.err
                    assert same_bytes(run) == reference.bytes


def test_a_log_that_is_cut_off_during_a_run_stops_it(held: Held, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with counted("logs cut off during a run") as tally, tally.case("networks.jsonl"):
        command = held.start(run)
        (run / "networks.jsonl").write_text("")
        held.go(run)
        ended = command.wait()
        assert ended.code == 3
        assert "networks.jsonl was cut off" in ended.refusal


@pytest.mark.parametrize("names", [LOGS, LOGS[:1], LOGS[1:]])
def test_a_run_without_its_logs_is_shown_and_goes_on(
    nursery: Nursery, reference: Reference, tmp_path: Path, names: tuple[str, ...]
) -> None:
    run = Path(shutil.copytree(reference.path, tmp_path / "run"))
    for name in names:
        (run / name).unlink()
    with counted("logs removed after a run") as tally, tally.case(names):
        more = ("resume", run, "--generations", "5", "--plugin", reference.plugin)
        for words in (("show", run), more, ("show", run), ("show", run, "--json")):
            ended = nursery.run(*words)
            assert ended.code == 0, ended
            gone = "is gone, and what it told of earlier generations with it" in ended.err
            assert gone is (not (run / "checkpoints" / "00000005").exists() or words is more)
            if words == ("show", run):
                assert "champion  network" in ended.out
        assert (run / "networks.jsonl").exists()
        last = json.loads((run / "history.jsonl").read_text().splitlines()[-1])
        assert last["generation"] == 5
