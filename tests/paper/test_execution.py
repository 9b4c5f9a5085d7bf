"""An experiment as a whole: what is finished is kept, what was broken off goes on, to the same bytes."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epicortex.champion import file as champion
from epicortex.cli import main
from epicortex.config import Config, changed
from epicortex.config import resolving as settings
from epicortex.errors import ConfigError, EpiCortexError, StorageError
from epicortex.paper.estimates import Pace, learned, measure, survey, trainings
from epicortex.paper.execution import carry_out, differences, portable, state_of
from epicortex.paper.plan import Experiment, Plan, PlannedRun
from epicortex.run.lifecycle import Result
from epicortex.run.loop import Watcher
from epicortex.run.record import read_run
from epicortex.storage.lock import Lock
from tests.paper.world import SMALL

SIZES: dict[str, Any] = {
    "training.engine": "serial",
    "evolution.initial_networks": 5,
    "evolution.max_networks": 7,
    "evolution.initial_species": 2,
    "evolution.max_species": 3,
    "evolution.generations": 4,
}
FILES = ("networks.jsonl", "champion/model.safetensors", "champion/genome.json")


def small(
    runs: int = 1, modes: tuple[bool, ...] = (True,), controls: tuple[str, ...] = (), **changes: Any
) -> Plan:
    dotted = {f"evolution.{name}": value for name, value in changes.items()}
    return Plan(settings.resolve("paper", {**SIZES, **dotted}), ("digits",), modes, runs, controls)


class Observer(Watcher):
    """Notes what happens, and stops everything after so many generations."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop = threading.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.failures: list[str] = []
        self.generations: list[int] = []
        self.notes: list[str] = []
        self._stop_after = stop_after

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, run: Any, folder: Any, config: Any = None) -> Any:
        """Of the experiment: a run. As a watcher of a run: its start."""
        if isinstance(run, PlannedRun):
            self.begun.append(str(run.folder))
            return self
        return None

    def generation(self, tally: Any, seconds: float) -> None:
        self.generations.append(tally.generation)
        if len(self.generations) == self._stop_after:
            self.stop.set()

    def end(self, run: PlannedRun, result: Result) -> None:
        self.ended.append("interrupted" if result.interrupted else str(run.folder))

    def failed(self, run: PlannedRun, error: EpiCortexError) -> None:
        self.failures.append(f"{run.folder}: {error}")


def carry(plan: Plan, out: Path, stop_after: int | None = None) -> Observer:
    observer = Observer(stop_after)
    carried = carry_out(plan, out, observer, observer.stop)
    assert carried.interrupted == observer.stop.is_set()
    return observer


def same_bytes(one: Path, other: Path) -> None:
    runs = sorted(path.parent.relative_to(one) for path in one.rglob("config.toml"))
    assert runs == sorted(path.parent.relative_to(other) for path in other.rglob("config.toml"))
    assert runs
    for run in runs:
        for name in FILES:
            assert (one / run / name).read_bytes() == (other / run / name).read_bytes(), run / name


@pytest.mark.parametrize("stop_after", [2, 6, 11])
def test_an_interrupted_experiment_goes_on_to_the_same_bytes(
    stop_after: int, experiment: Path, tmp_path: Path
) -> None:
    plan = small(controls=("founders", "champion", "mutation", "random"))
    first = carry(plan, tmp_path, stop_after)
    assert first.ended[-1] == "interrupted"
    second = carry(plan, tmp_path)
    # What was finished is not touched again, what was broken off goes on first.
    assert second.begun[0] == first.begun[-1]
    assert not set(first.begun[:-1]) & set(second.begun)
    assert len(first.generations) + len(second.generations) == sum(
        len(read_run(path.parent).history) for path in tmp_path.rglob("config.toml")
    )
    assert carry(plan, tmp_path).begun == []
    for folder in tmp_path.rglob("seed-1"):
        other = experiment / folder.relative_to(tmp_path)
        for name in FILES:
            assert (folder / name).read_bytes() == (other / name).read_bytes()


def test_a_run_made_by_evolve_at_its_place_is_taken_as_finished(tmp_path: Path) -> None:
    run = tmp_path / "digits" / "speciation-on" / "seed-1"
    options = [*SMALL, "--preset", "paper", "--out", str(run), "--quiet", "--workers", "1"]
    assert main(["evolve", "digits", *options]) == 0
    assert carry(small(), tmp_path).begun == []
    assert carry(small(runs=2), tmp_path).begun == ["digits/speciation-on/seed-2"]


def test_a_shorter_run_is_extended_to_what_a_longer_one_would_have_been(
    experiment: Path, tmp_path: Path
) -> None:
    carry(small(generations=2), tmp_path)
    observer = carry(small(), tmp_path)
    assert observer.generations == [3, 4]
    one, other = (out / "digits" / "speciation-on" / "seed-1" for out in (tmp_path, experiment))
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes()
    with pytest.raises(ConfigError, match=r"evolution\.generations is 4, not 3; choose another --out"):
        carry(small(generations=3), tmp_path)


def test_a_place_that_holds_another_run_is_refused_and_left_alone(experiment: Path, tmp_path: Path) -> None:
    shutil.copytree(
        experiment / "digits" / "speciation-on" / "seed-1", tmp_path / "digits/speciation-on/seed-1"
    )
    with pytest.raises(ConfigError, match=r"seed-1 holds a run whose evolution\.max_networks is 7, not 8"):
        carry(small(max_networks=8), tmp_path)
    same_bytes(tmp_path / "digits" / "speciation-on" / "seed-1", experiment / "digits/speciation-on/seed-1")


def test_a_run_whose_last_checkpoint_is_damaged_is_mended_by_resuming(
    experiment: Path, tmp_path: Path
) -> None:
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    checkpoints = tmp_path / place / "checkpoints"
    (checkpoints / "00000004" / "state.json").write_bytes(b"{}")
    log = tmp_path / place / "networks.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    (tmp_path / place / "history.jsonl").write_bytes(
        b"".join((experiment / place / "history.jsonl").read_bytes().splitlines(keepends=True)[:3])
    )
    observer = carry(small(), tmp_path)
    assert observer.generations == [4]
    assert "going back to generation 3" in " ".join(observer.notes)
    same_bytes(tmp_path / place, experiment / place)


@pytest.mark.parametrize("file", ["networks.jsonl", "champion/model.safetensors"])
def test_a_finished_run_with_a_damaged_file_is_mended_too(
    file: str, experiment: Path, tmp_path: Path
) -> None:
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    damaged = tmp_path / place / file
    damaged.write_bytes(damaged.read_bytes()[:-30])
    assert survey(small(), tmp_path)[0].state == "begun"
    assert carry(small(), tmp_path).begun == [str(place)]
    same_bytes(tmp_path / place, experiment / place)
    assert carry(small(), tmp_path).begun == []


def test_a_run_that_lost_the_end_of_a_log_with_its_last_checkpoint_is_not_finished(
    experiment: Path, tmp_path: Path
) -> None:
    """As after a power cut: the history is whole, the networks of its last generation are not."""
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    shutil.rmtree(tmp_path / place / "checkpoints" / "00000004")
    log = tmp_path / place / "networks.jsonl"
    kept = [line for line in log.read_text().splitlines(keepends=True) if '"generation":4,' not in line]
    log.write_text("".join(kept))
    assert carry(small(), tmp_path).generations == [4]
    same_bytes(tmp_path / place, experiment / place)


def test_a_run_with_a_damaged_manifest_goes_on_from_the_checkpoint_before(
    experiment: Path, tmp_path: Path
) -> None:
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    (tmp_path / place / "checkpoints" / "00000004" / "manifest.json").write_text("{}")
    assert carry(small(), tmp_path).generations == [4]
    same_bytes(tmp_path / place, experiment / place)


def test_a_run_whose_checkpoints_were_removed_stays_finished(experiment: Path, tmp_path: Path) -> None:
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    shutil.rmtree(tmp_path / place / "checkpoints")
    assert carry(small(), tmp_path).begun == []


def test_a_control_waits_for_its_original_without_a_fault_of_its_own(
    experiment: Path, tmp_path: Path
) -> None:
    for place in ("seed-1", "founders/seed-1"):
        folder = Path("digits/speciation-on", place)
        shutil.copytree(experiment / folder, tmp_path / folder)
    history = tmp_path / "digits/speciation-on/seed-1/history.jsonl"
    history.write_bytes(history.read_bytes()[:-30])
    states = [due.state for due in survey(small(controls=("founders",)), tmp_path)]
    assert states == ["begun", "finished"]
    assert carry(small(controls=("founders",)), tmp_path).begun == ["digits/speciation-on/seed-1"]


def test_a_place_that_cannot_be_written_ends_everything_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    with pytest.raises(StorageError, match=r"file/out cannot be made"):
        carry(small(runs=3), tmp_path / "file" / "out")


def test_another_process_keeps_its_run_and_the_others_go_on(tmp_path: Path) -> None:
    carry(small(generations=1), tmp_path)
    place = tmp_path / "digits" / "speciation-on" / "seed-1"
    lock = Lock(place)
    observer = Observer()
    carried = carry_out(small(runs=2, generations=2), tmp_path, observer, observer.stop)
    lock.close()
    assert carried.failed == 1
    assert observer.ended == ["digits/speciation-on/seed-2"]


def test_a_folder_beyond_mending_does_not_stop_the_others(experiment: Path, tmp_path: Path) -> None:
    place = Path("digits/speciation-on/seed-1")
    shutil.copytree(experiment / place, tmp_path / place)
    (tmp_path / place / "config.toml").write_text("[evolution")
    plan = small(runs=2, controls=("founders",), generations=1)
    states = [due.state for due in survey(plan, tmp_path)]
    assert states == ["damaged", "damaged", "new", "new"]
    observer = Observer()
    carried = carry_out(plan, tmp_path, observer, observer.stop)
    assert (carried.failed, carried.interrupted) == (2, False)
    assert all("config.toml" in reason for reason in observer.failures)
    assert observer.begun == ["digits/speciation-on/seed-2", "digits/speciation-on/founders/seed-2"]


def test_a_longer_experiment_is_refused_before_anything_runs_where_controls_have_the_shorter_ones_budget(
    tmp_path: Path,
) -> None:
    carry(small(generations=2, controls=("founders",)), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=r"founders/seed-1 has the \d+ trainings of .*seed-1 when"):
        survey(small(controls=("founders",)), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    # Without the controls, or with theirs moved away, it goes on.
    assert [due.state for due in survey(small(), tmp_path)] == ["begun"]
    (tmp_path / "digits/speciation-on/founders").rename(tmp_path / "old")
    assert [due.state for due in survey(small(controls=("founders",)), tmp_path)] == ["begun", "new"]


def test_a_run_that_cannot_go_on_does_not_stop_the_others(tmp_path: Path) -> None:
    plan = small(runs=2, controls=("founders",))
    hopeless = replace(plan, config=changed(plan.config, training={"time_limit": 1e-9}))
    observer = Observer()
    carried = carry_out(hopeless, tmp_path, observer, observer.stop)
    assert observer.begun == ["digits/speciation-on/seed-1", "digits/speciation-on/seed-2"]
    # Their controls cannot be run either, and count as failed.
    reasons = [reason.partition(": ")[2] for reason in observer.failures]
    assert all("all 5 networks of generation 1 failed" in reason for reason in reasons[::2])
    assert reasons[1] == "the run it belongs to, digits/speciation-on/seed-1, is not finished"
    assert (carried.failed, carried.interrupted) == (4, False)


def test_a_run_is_finished_only_when_its_champion_was_tested(tmp_path: Path) -> None:
    plan = small(generations=1)
    plan = replace(plan, config=changed(plan.config, training={"fitness_on": "validation"}))
    carry(plan, tmp_path)
    folder = tmp_path / "digits" / "speciation-on" / "seed-1"
    record = read_run(folder)
    tested = record.champion()
    assert state_of(folder, record.config) == "finished"
    champion.write(folder / "champion", replace(tested, facts=replace(tested.facts, test_accuracy=None)))
    assert state_of(folder, record.config) == "begun"
    assert carry(plan, tmp_path).generations == []
    assert read_run(folder).champion().facts == tested.facts


def test_the_survey_says_how_it_stands_with_every_run(tmp_path: Path) -> None:
    plan = small(runs=2, controls=("founders",))
    carry(plan, tmp_path, stop_after=6)
    states = {str(due.run.folder): (due.state, due.trainings) for due in survey(plan, tmp_path)}
    done = len((tmp_path / "digits/speciation-on/seed-1/networks.jsonl").read_text().splitlines())
    spent = len((tmp_path / "digits/speciation-on/founders/seed-1/networks.jsonl").read_text().splitlines())
    guess = trainings(plan.config)
    assert states == {
        "digits/speciation-on/seed-1": ("finished", 0),
        "digits/speciation-on/founders/seed-1": ("begun", done - spent),
        "digits/speciation-on/seed-2": ("new", guess),
        "digits/speciation-on/founders/seed-2": ("new", guess),
    }
    pace = learned(tmp_path)
    assert pace.trainings == {("digits", True): done + spent}
    assert pace.of(("digits", True)) == pytest.approx(pace.seconds["digits", True] / (done + spent))


def test_the_estimate_of_trainings_is_near_what_runs_take(experiment: Path) -> None:
    lines = (experiment / "digits/speciation-on/seed-1/networks.jsonl").read_text().splitlines()
    assert trainings(small().config) == pytest.approx(len(lines), rel=0.2)


def test_a_measurement_trains_a_few_founders() -> None:
    config = small().configured(PlannedRun(Experiment("digits", True), 1))
    seconds, number = measure(config)
    assert seconds > 0
    assert 4 <= number <= 5


def test_the_pace_is_that_of_the_mode_then_of_the_data_then_of_all() -> None:
    pace = Pace()
    pace.add(("mnist", True), 10.0, 20)
    pace.add(("mnist", False), 30.0, 20)
    pace.add(("svhn", True), 60.0, 10)
    assert (pace.of(("mnist", True)), pace.of(("mnist", False))) == (0.5, 1.5)
    assert pace.of(("svhn", False)) == 6.0
    assert pace.of(("cifar10", False)) == 2.0


def test_what_is_one_machines_affair_is_not_part_of_a_command() -> None:
    config = changed(
        Config(),
        training={"workers": 3, "engine": "serial"},
        data={"directory": "/somewhere"},
        evolution={"seed": 9},
    )
    assert portable(config) == changed(Config(), evolution={"seed": 9})


def test_a_plan_takes_either_arithmetic_unless_it_names_one() -> None:
    native, torch, either = (
        changed(Config(), training={"backend": name}) for name in ("native", "torch", "auto")
    )
    assert list(differences(native, either)) == list(differences(either, torch)) == []
    assert list(differences(native, torch)) == ["training.backend"]
