"""Runs kept in one file: the same results without their folders, from one place or several; nothing lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epicortex.cli import main
from epicortex.errors import StorageError
from epicortex.reproduction import keeping
from epicortex.reproduction.estimates import survey
from epicortex.reproduction.execution import carry_out
from epicortex.reproduction.gathering import gather
from epicortex.reproduction.plan import Plan, PlannedRun, found
from tests.reproduction.test_execution import Observer, small
from tests.reproduction.world import SMALL

COMMAND = ("reproduce", "digits", "--runs", "2", "--controls", "all", *SMALL)
#: The plan of the experiment in `conftest`.
PLAN = small(runs=2, modes=(True, False), controls=("founders", "champion", "mutation", "random"))


def tables(out: Path, *also: Path) -> None:
    words = [*COMMAND, "--tables", "--out", str(out)]
    assert main([*words, "--also", *map(str, also)] if also else words) == 0


def results(out: Path) -> dict[str, str]:
    """Everything that is written but the page, which holds the same, as if no run had been kept."""
    files = [*out.glob("table.*"), *out.glob("runs.jsonl"), *out.glob("figures/*")]
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
    assert (tmp_path / "table.md").read_text().count("| counts, as kept |") == 20
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


def carried(plan: Plan, out: Path, kept: set[PlannedRun]) -> list[str]:
    observer = Observer()
    carry_out(plan, out, observer, observer.stop, kept=kept)
    assert not observer.failures
    return observer.begun


def test_what_is_kept_is_not_run_again(experiment: Path, tmp_path: Path) -> None:
    kept_alone(experiment, tmp_path)
    kept = keeping.counting(PLAN, tmp_path)
    assert {one.state for one in survey(PLAN, tmp_path, kept)} == {"kept"}
    assert carried(PLAN, tmp_path, kept) == []
    assert keeping.counting(small(max_networks=8), tmp_path) == set()
    longer = small(runs=3)
    kept = keeping.counting(longer, tmp_path / "elsewhere", [tmp_path / "runs.jsonl"])
    assert carried(longer, tmp_path, kept) == ["digits/speciation-on/seed-3"]


def test_a_run_that_is_kept_is_run_again_for_a_control_that_is_not(experiment: Path, tmp_path: Path) -> None:
    file = kept_alone(experiment, tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "speciation-on/founders/seed-1" not in line))
    plan = small(controls=("founders", "mutation"))
    kept = keeping.counting(plan, tmp_path)
    assert [one.state for one in survey(plan, tmp_path, kept)] == ["new", "new", "kept"]
    again = ["digits/speciation-on/seed-1", "digits/speciation-on/founders/seed-1"]
    assert carried(plan, tmp_path, kept) == again
    for folder in again:
        one, other = (out / folder / "networks.jsonl" for out in (tmp_path, experiment))
        assert one.read_bytes() == other.read_bytes()


def test_a_control_whose_original_is_gone_is_left_alone(experiment: Path, tmp_path: Path) -> None:
    kept_alone(experiment, tmp_path)
    place = "digits/speciation-on/mutation/seed-1"
    shutil.copytree(experiment / place, tmp_path / place)
    plan = small(controls=("mutation",))
    assert carried(plan, tmp_path, keeping.counting(plan, tmp_path)) == []
    # Its folder alone cannot count, for it has to cost what its original cost; what was kept can.
    (one,) = [
        one for one in gather(plan, tmp_path, keeping.read_own(tmp_path)).runs if place in str(one.run.folder)
    ]
    assert (one.counts, one.kept) == (True, True)


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
        (change(command=None), "command cannot be null"),
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
    file.write_bytes(whole[:-1])
    with pytest.raises(
        StorageError, match=r"last line is not complete; move it away, and it is written anew"
    ):
        keeping.read_own(tmp_path)
    assert len(keeping.read(experiment / "runs.jsonl")) == 20
    assert keeping.read_own(tmp_path / "nowhere") == []
