"""Runs kept in one file: the same results without their folders, from one place or several; nothing lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from epicortex.cli import main
from epicortex.errors import StorageError
from epicortex.paper import results_file
from epicortex.paper.estimates import survey
from epicortex.paper.execution import carry_out
from epicortex.paper.output import PLOTS
from epicortex.paper.plan import Plan, found
from epicortex.paper.results import read_results
from epicortex.run.record import read_run
from epicortex.storage.lock import Lock
from tests.paper.test_execution import Observer, small
from tests.paper.world import SMALL

COMMAND = ("reproduce", "digits", "--runs", "2", "--controls", "all", *SMALL)
#: The plan of the experiment in `conftest`.
PLAN = small(runs=2, modes=(True, False), controls=("founders", "champion", "mutation", "random"))


def tables(out: Path, *also: Path) -> None:
    words = [*COMMAND, "--tables", "--out", str(out)]
    assert main([*words, "--also", *map(str, also)] if also else words) == 0


def results(out: Path) -> dict[str, str]:
    """Everything that is written but the page, which holds the same, as if no run had been kept."""
    files = [*out.glob("table.*"), *out.glob("runs.jsonl"), *out.glob(f"{PLOTS}/*.svg")]
    return {file.name: file.read_text("utf-8").replace("counts, as kept", "counts") for file in files}


def kept_alone(experiment: Path, tmp_path: Path) -> Path:
    """The file, without any run folder."""
    tmp_path.mkdir(exist_ok=True)
    return Path(shutil.copy(experiment / "runs.jsonl", tmp_path / "runs.jsonl"))


def test_every_run_that_counts_is_kept_with_what_its_folder_says(experiment: Path) -> None:
    lines = [json.loads(line) for line in (experiment / "runs.jsonl").read_text().splitlines()]
    assert [line["run"] for line in lines] == [str(run.folder) for run in found(experiment)]
    for line in lines:
        folder = experiment / line["run"]
        history = [json.loads(text) for text in (folder / "history.jsonl").read_text().splitlines()]
        networks = [json.loads(text) for text in (folder / "networks.jsonl").read_text().splitlines()]
        plain = [{**own, "average_untrained": None} for own in line["figures"]["history"]]
        assert plain == [{**own, "average_untrained": None} for own in history]
        tried = [
            event["outcome"]
            for network in networks
            for event in network["events"]
            if event["type"] in ("layer", "node")
        ]
        assert (line["figures"]["tried"], line["figures"]["refused"]) == (len(tried), tried.count("refused"))
        assert line["figures"]["champion"] == max(network["fitness"] for network in networks)
        assert line["settings"]["evolution"]["max_networks"] == 7
        assert line["command"].endswith(f"--out {line['run']}")


def test_results_are_the_same_when_the_folders_are_gone(experiment: Path, tmp_path: Path) -> None:
    kept_alone(experiment, tmp_path)
    tables(tmp_path)
    assert results(tmp_path) == results(experiment)
    assert (tmp_path / "table.md").read_text().count("| counts, as kept") == 20
    assert "Complete: 20 runs, all finished." in (tmp_path / "table.md").read_text()


def test_results_of_several_places_come_together(experiment: Path, tmp_path: Path) -> None:
    for mode in ("on", "off"):
        place = Path("digits", f"speciation-{mode}")
        shutil.copytree(experiment / place, tmp_path / mode / place)
        tables(tmp_path / mode)
    tables(tmp_path / "all", *(tmp_path / mode / "runs.jsonl" for mode in ("off", "on")))
    assert results(tmp_path / "all") == results(experiment)
    # A folder that is there goes before what was kept of it, and counts once.
    tables(tmp_path / "on", tmp_path / "off" / "runs.jsonl", experiment / "runs.jsonl")
    assert results(tmp_path / "on") == results(experiment)
    assert (tmp_path / "on" / "table.md").read_text().count("| counts, as kept |") == 10


def test_two_that_write_the_same_results_wait_for_each_other(experiment: Path, tmp_path: Path) -> None:
    lines = (experiment / "runs.jsonl").read_text().splitlines(keepends=True)
    out, other = tmp_path / "out", tmp_path / "other.jsonl"
    (out / PLOTS).mkdir(parents=True)
    other.write_text("".join(line for line in lines if '"run":"digits/speciation-off' in line))
    writer = Thread(target=tables, args=(out, other))
    with Lock(out / PLOTS):  # as if another process had read what is kept, and not yet written
        writer.start()
        writer.join(timeout=1.0)
        (out / "runs.jsonl").write_text("".join(line for line in lines if "speciation-on" in line))
    writer.join()
    assert results(out) == results(experiment)


def test_a_damaged_folder_is_stood_in_for_by_what_was_kept(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(experiment, out)
    (out / "digits" / "speciation-on" / "seed-2" / "history.jsonl").write_text("{}\n")
    tables(out)
    assert (out / "table.csv").read_bytes() == (experiment / "table.csv").read_bytes()
    assert "Complete: 20 runs" in (out / "table.md").read_text()


def test_runs_with_other_settings_do_not_count_and_stay_on_file(experiment: Path, tmp_path: Path) -> None:
    kept_alone(experiment, tmp_path)
    other = (*COMMAND, "--evolution.max-networks", "8", "--tables", "--out", str(tmp_path))
    assert main([*other]) == 0
    text = (tmp_path / "table.md").read_text()
    assert text.count("other settings: evolution.max_networks is 7, not 8") == 20
    assert (tmp_path / "runs.jsonl").read_bytes() == (experiment / "runs.jsonl").read_bytes()


def carried(plan: Plan, out: Path, *files: Path) -> tuple[list[str], list[str]]:
    """How it stands with every run, and those that are then run."""
    kept = results_file.counting(plan, [one for file in files for one in results_file.read(file)])
    due, observer = survey(plan, out, kept), Observer()
    spared = {one.run for one in due if one.state == "kept"}
    carry_out(plan, out, observer, observer.stop, spared=spared)
    assert not observer.failures
    return [one.state for one in due], observer.begun


def test_what_is_kept_is_not_run_again(experiment: Path, tmp_path: Path) -> None:
    file = kept_alone(experiment, tmp_path)
    assert carried(PLAN, tmp_path, file) == (["kept"] * 20, [])
    assert results_file.counting(small(max_networks=8), results_file.read(file)) == set()
    states, begun = carried(small(runs=3), tmp_path / "elsewhere", file)
    assert (states, begun) == (["kept", "kept", "new"], ["digits/speciation-on/seed-3"])


@pytest.mark.parametrize("damage", ["config.toml", "history.jsonl", None])
def test_nor_is_it_where_its_folder_is_damaged_or_only_begun(
    damage: str | None, experiment: Path, tmp_path: Path
) -> None:
    file = kept_alone(experiment, tmp_path)
    place = tmp_path / "digits" / "speciation-on" / "seed-1"
    if damage:
        shutil.copytree(experiment / place.relative_to(tmp_path), place)
        (place / damage).write_text("[evolution")
    else:
        observer = Observer(stop_after=1)
        carry_out(small(), tmp_path, observer, observer.stop)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert carried(small(), tmp_path, file) == (["kept"], [])
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_a_finished_folder_goes_before_what_was_kept_and_that_before_another_file(
    experiment: Path, tmp_path: Path
) -> None:
    place = "digits/speciation-on/seed-1"
    lines = {}
    for name, fitness in (("own", 0.25), ("other", 0.5)):
        kept = kept_alone(experiment, tmp_path / name)
        line = json.loads(kept.read_text().splitlines()[0])
        line["figures"]["history"][-1]["highest_fitness"] = fitness
        kept.write_text(json.dumps(line) + "\n")
        lines[name] = kept

    def highest(*also: Path) -> float | None:
        kept = [
            *results_file.read_own(tmp_path / "own"),
            *(one for path in also for one in results_file.read(path)),
        ]
        (one,) = read_results(small(), tmp_path / "own", kept).runs
        assert one.figures is not None
        return one.figures.last("highest_fitness")

    assert highest(lines["other"]) == 0.25
    lines["own"].unlink()
    assert highest(lines["other"]) == 0.5
    shutil.copytree(experiment / place, tmp_path / "own" / place)
    history = (experiment / place / "history.jsonl").read_text().splitlines()
    assert highest(lines["other"]) == json.loads(history[-1])["highest_fitness"]
    assert carried(small(), tmp_path / "own", lines["other"]) == (["finished"], [])


def test_a_run_that_is_kept_is_run_again_for_a_control_that_is_not(experiment: Path, tmp_path: Path) -> None:
    file = kept_alone(experiment, tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "speciation-on/founders/seed-1" not in line))
    again = ["digits/speciation-on/seed-1", "digits/speciation-on/founders/seed-1"]
    plan = small(controls=("founders", "mutation"))
    assert carried(plan, tmp_path, file) == (["new", "new", "kept"], again)
    for folder in again:
        one, other = (out / folder / "networks.jsonl" for out in (tmp_path, experiment))
        assert one.read_bytes() == other.read_bytes()


def test_a_control_that_is_kept_needs_no_folder_of_its_original(experiment: Path, tmp_path: Path) -> None:
    file = kept_alone(experiment, tmp_path)
    place = "digits/speciation-on/mutation/seed-1"
    shutil.copytree(experiment / place, tmp_path / place)
    plan = small(controls=("mutation",))
    assert carried(plan, tmp_path, file) == (["kept", "kept"], [])
    runs = {str(one.run.folder): one for one in read_results(plan, tmp_path, results_file.read(file)).runs}
    assert (runs[place].counts, runs[place].kept) == (True, True)


def test_a_control_counts_only_beside_a_run_that_cost_as_much(experiment: Path, tmp_path: Path) -> None:
    original, control = "digits/speciation-on/seed-1", "digits/speciation-on/mutation/seed-1"
    lines = [json.loads(line) for line in kept_alone(experiment, tmp_path).read_text().splitlines()]
    pair = {line["run"]: line for line in lines if line["run"] in (original, control)}
    plan = small(controls=("mutation",))

    def standing(*kept: dict[str, Any]) -> tuple[list[str], list[str]]:
        file = tmp_path / "some.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in kept))
        read = results_file.read(file)
        counted = [one.why_not for one in read_results(plan, tmp_path / "nowhere", read).runs]
        return counted, sorted(str(run.folder) for run in results_file.counting(plan, read))

    assert standing(*pair.values()) == (["", ""], [control, original])
    assert standing(pair[control]) == ([f"the run it belongs to, {original}, is not finished"], [])
    spent = pair[original]["figures"]["spent"]
    cost = spent[-1]
    spent[-1] += 5
    assert standing(*pair.values()) == (
        ["", f"it has {cost} trainings, and {original} beside it took {cost + 5}"],
        [original],
    )


def test_files_are_named_together_one_by_one_or_by_their_folder_and_need_no_data(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of MNIST, which is not there: as if these runs had been on it."""
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "nothing"))
    lines = (experiment / "runs.jsonl").read_text().replace("digits", "mnist").splitlines(keepends=True)
    for mode in ("on", "off"):
        (tmp_path / mode).mkdir()
        own = [line for line in lines if f"speciation-{mode}/seed" in line]
        (tmp_path / mode / "runs.jsonl").write_text("".join(own))
    words = ["reproduce", "mnist", "--runs", "2", *SMALL, "--out", str(tmp_path / "out")]
    also = ["--also", str(tmp_path / "on"), "--also", str(tmp_path / "off" / "runs.jsonl")]
    assert main([*words, *also]) == 0
    assert "Complete: 4 runs, all finished." in capsys.readouterr().out
    # From then on they are kept there.
    assert main([*words, "--dry-run"]) == 0
    assert capsys.readouterr().out.count("  kept\n") == 4
    assert main([*words[:2], "--runs", "3", *words[4:], *also]) == 2
    assert "mnist is not in" in capsys.readouterr().err


def change(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """A change to a line, by names of fields joined with two underscores."""

    def apply(line: dict[str, Any]) -> None:
        for name, value in changes.items():
            inner: Any = line
            *path, last = name.split("__")
            for key in path:
                inner = inner[int(key) if key.isdecimal() else key]
            inner[last] = value

    return apply


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (change(format=2), "has the format 2, this version reads 1: a newer EpiCortex wrote it"),
        (change(run="../speciation-on/seed-1"), 'line 1: "../speciation-on/seed-1" is no run'),
        (change(command=None), "null is no command of ours"),
        (change(command="epicortex evolve digits; reboot"), "is no command of ours"),
        (change(command="epicortex evolve 'digits\n```'"), "is no command of ours"),
        (change(command="epicortex 'evolve"), "is no command of ours"),
        (change(settings__evolution__generations=5), "the run has not all its 5 generations"),
        (change(settings=[]), "settings must be an object of sections"),
        (change(settings__evolution__seed="x"), "evolution.seed"),
        (change(figures__history=[]), "are not of as many generations"),
        (change(figures__spent=[1]), "are not of as many generations"),
        (change(figures__spent=[4, 3, 2, 1]), "trainings cannot become fewer"),
        (change(figures__lineage=0), "trainings cannot become fewer"),
        (change(figures__tried=-1), "a count cannot be below 0"),
        (change(figures__champion=1e300), "is beyond what a run can come to"),
        (change(figures__history__1__networks="7"), 'generation 2, networks cannot be "7"'),
        (change(figures__history__1__generation=1), "generation 2 is not in its place"),
        (change(figures__history__1__mean_parameters=0), "a count cannot be below 0"),
        (change(figures__history__1__highest_fitness=None), "generation 2 has no highest_fitness"),
        (change(figures__extra=1), 'has an unknown field "extra"'),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_one_line_before_anything_runs(
    changed: Callable[[dict[str, Any]], None],
    said: str,
    experiment: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = kept_alone(experiment, tmp_path / "there")
    line = json.loads(file.read_text().splitlines()[0])
    changed(line)
    file.write_text(json.dumps(line) + "\n")
    assert main([*COMMAND, "--out", str(tmp_path / "here"), "--also", str(file)]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert f"{file}, line 1" in error
    assert said in error
    assert not (tmp_path / "here").exists()


def test_a_file_cut_off_is_refused_and_it_is_said_how_to_go_on(experiment: Path, tmp_path: Path) -> None:
    file = kept_alone(experiment, tmp_path)
    whole = file.read_bytes()
    # What an editor does to the end of a file is no damage.
    for end in (b"", b"\n\n", b"\r\n"):
        file.write_bytes(whole[:-1] + end)
        assert len(results_file.read_own(tmp_path)) == 20
    file.write_bytes(whole[:-2])
    with pytest.raises(StorageError, match=r"line 20 is damaged: .*; fix that, or move the file away"):
        results_file.read_own(tmp_path)
    assert results_file.read_own(tmp_path / "nowhere") == []


def test_the_arithmetic_that_a_run_settled_on_is_kept(experiment: Path) -> None:
    for one in results_file.read(experiment):
        own = read_run(experiment / one.run.folder).config.training.backend
        assert one.config.training.backend == own != "auto"
