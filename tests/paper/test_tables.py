"""Every figure in the tables, recomputed from the files of the runs; and that nothing is left unsaid."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest

from epicortex.cli import main
from epicortex.config import changed
from epicortex.config.resolving import resolve
from epicortex.paper import output, tables
from epicortex.paper.controls import ALL
from epicortex.paper.notes import standing
from epicortex.paper.plan import Experiment, Plan, found
from epicortex.paper.results import figures as gathered
from epicortex.paper.results import read_results
from epicortex.run.record import read_run
from tests.paper.world import SMALL, figures, history, level, plan, results, slope

NAMES = {
    "highest_fitness": "highest",
    "average_fitness": "average",
    "offspring_fitness": "offspring before BP",
}
FILES = ("table.md", "table.csv", "page.html")


def last(out: Path, folder: str, seed: int) -> dict[str, float | None]:
    """The highest fitness of the last generation, and all else of the last in which all were trained."""
    run = out / folder / f"seed-{seed}"
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    budget = read_run(run).config.evolution.trainings or math.inf
    left, whole = budget, lines[0]
    for line in lines:
        left -= line["networks"]
        whole = line if left >= 0 else whole
    return {**whole, "highest_fitness": lines[-1]["highest_fitness"]}


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_figures_are_those_of_the_last_generations(experiment: Path) -> None:
    found_rows = rows(experiment)
    assert len(found_rows) == 2 * 5 * 3
    seen = 0
    for row in found_rows:
        folder = "/".join(filter(None, ["digits", f"speciation-{row['speciation']}", row["control"]]))
        values = [last(experiment, folder, seed)[row["measure"]] for seed in (1, 2)]
        known = [100 * value for value in values if value is not None]
        assert int(row["runs"]) == len(known)
        if known:
            seen += 1
            assert float(row["best"]) == pytest.approx(max(known))
            assert float(row["mean"]) == pytest.approx(fmean(known))
        if len(known) > 1:
            assert float(row["deviation"]) == pytest.approx(stdev(known), abs=1e-8)
        assert (row["published_mean"], row["band"]) == ("", "")
    # Controls without evolution have no offspring; all else is there.
    assert seen >= 2 * 5 * 2 + 2


def test_the_average_with_newborns_untrained_is_that_of_the_networks_own_lines(experiment: Path) -> None:
    lowered = 0
    for run in found(experiment):
        record = read_run(experiment / run.folder)
        lines = [json.loads(line) for line in (record.path / "networks.jsonl").read_text().splitlines()]
        for line in gathered(record).history:
            own = [one for one in lines if one["generation"] == line.generation]
            scores = [
                one["fitness"] if one["fitness_before_training"] is None else one["fitness_before_training"]
                for one in own
            ]
            assert line.average_untrained == pytest.approx(fmean(scores))
            lowered += line.average_untrained != line.average_fitness
    assert lowered > 10


def test_the_markdown_table_says_the_same(experiment: Path) -> None:
    text = (experiment / "table.md").read_text("utf-8")
    for row in rows(experiment):
        if row["control"] or not row["deviation"]:
            continue
        mode = "speciation" if row["speciation"] == "on" else "no speciation"
        name = NAMES[row["measure"]]
        figures = f"| {float(row['best']):.2f} | {float(row['mean']):.2f} ± {float(row['deviation']):.2f} |"
        assert f"| digits, {mode} | {name} | {row['runs']} {figures}" in text


def test_every_run_is_listed_with_a_command_that_gives_its_settings(experiment: Path) -> None:
    text = (experiment / "table.md").read_text("utf-8")
    commands = re.findall(r"^epicortex evolve .*$", text, re.MULTILINE)
    runs = list(found(experiment))
    assert len(commands) == len(runs) == 20
    for run in runs:
        assert f"| {run.folder} |" in text
        assert any(line.endswith(f"--out {run.folder}") for line in commands)


@pytest.mark.parametrize(
    "name", ["speciation-off/seed-2", "speciation-on/champion/seed-1", "speciation-on/random/seed-2"]
)
def test_the_command_of_a_run_gives_the_same_bytes(
    name: str, experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (experiment / "table.md").read_text("utf-8")
    (line,) = re.findall(rf"^epicortex evolve .* --out digits/{name}$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(line)[1:], "--engine", "serial", "--quiet"]) == 0
    for file in ("networks.jsonl", "champion/model.safetensors", "champion/genome.json"):
        one, other = (out / "digits" / name / file for out in (tmp_path, experiment))
        assert one.read_bytes() == other.read_bytes()


def test_the_command_of_a_row_plans_the_runs_of_that_row(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in rows(experiment):
        words = shlex.split(row["command"])
        assert main([*words[1:], "--engine", "serial", "--out", str(experiment), "--dry-run"]) == 0
        said = capsys.readouterr().out
        folder = "/".join(filter(None, ["digits", f"speciation-{row['speciation']}", row["control"]]))
        for seed in (1, 2):
            assert re.search(rf"^{folder}/seed-{seed} +finished$", said, re.MULTILINE)


def test_writing_again_gives_the_same_bytes(experiment: Path) -> None:
    before = {name: (experiment / name).read_bytes() for name in FILES}
    pictures = {path.name: path.read_bytes() for path in (experiment / "figures").glob("*.svg")}
    assert (
        main(["reproduce", "digits", "--runs", "2", "--controls", "all", *SMALL, "--out", str(experiment)])
        == 0
    )
    assert {name: (experiment / name).read_bytes() for name in FILES} == before
    assert {path.name: path.read_bytes() for path in (experiment / "figures").glob("*.svg")} == pictures


def test_a_run_that_does_not_count_is_listed_with_the_reason(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(experiment, out, ignore=shutil.ignore_patterns("runs.jsonl"))
    whole = out / "digits" / "speciation-on" / "seed-2"
    lines = (whole / "history.jsonl").read_text().splitlines(keepends=True)
    (whole / "history.jsonl").write_text("".join(lines[:1]) + "{}\n")
    config = resolve(
        "paper",
        {
            "evolution.generations": 4,
            "evolution.initial_networks": 5,
            "evolution.max_networks": 7,
            "evolution.initial_species": 2,
            "evolution.max_species": 3,
        },
    )
    planned = Plan(config, ("digits",), (True, False), 3)
    found_here = read_results(planned, out)
    (broken,) = [one for one in found_here.runs if one.why_not.startswith("it cannot be read")]
    assert str(broken.run.folder) == "digits/speciation-on/seed-2"
    assert len(found_here.of(Experiment("digits", True))) == 1
    assert [str(run.folder) for run in found_here.due] == [
        "digits/speciation-on/seed-3",
        "digits/speciation-off/seed-3",
    ]
    assert not found_here.complete
    longer = read_results(replace(planned, config=changed(config, evolution={"generations": 9})), out)
    (begun,) = [one for one in longer.runs if str(one.run.folder) == "digits/speciation-on/seed-1"]
    assert "evolution.generations is 4, not 9" in begun.why_not
    assert begun.figures is not None
    assert begun.figures.last("highest_fitness") == last(out, "digits/speciation-on", 1)["highest_fitness"]
    other = read_results(Plan(changed(config, evolution={"max_networks": 9}), ("digits",), (True,), 1), out)
    reasons = {one.why_not for one in other.runs if one.run.experiment.control is None}
    assert "other settings: evolution.max_networks is 7, not 9" in reasons
    assert not other.of(Experiment("digits", False))
    output.write(planned, out)
    text = (out / "table.md").read_text("utf-8")
    assert "Incomplete: 15 runs finished, 5 begun that do not count, 2 not begun." in text
    assert "it cannot be read" in text
    assert "Not begun: `digits/speciation-on/seed-3`, `digits/speciation-off/seed-3`." in text


def bands(mean: float, **changes: object) -> list[str]:
    run = figures(history(highest=level(mean), generations=100))
    found_here = results({Experiment("mnist", True): [run]}, plan(**changes))
    return [row.band for row in tables.rows(found_here) if row.experiment == Experiment("mnist", True)]


def test_a_mean_is_within_below_or_above_two_of_the_papers_deviations() -> None:
    # 98.13 ± 0.15: from 97.83 to 98.43.
    assert bands(0.9782)[0] == "below"
    assert bands(0.9784)[0] == "within"
    assert bands(0.9842)[0] == "within"
    assert bands(0.9844)[0] == "above"


def test_runs_of_another_size_are_not_held_against_the_papers() -> None:
    small = resolve("paper", {"evolution.max_networks": 24, "evolution.initial_networks": 16})
    assert bands(0.98, config=small) == ["other size"] * 3
    run = figures(history())
    found_here = results({Experiment("mnist", True): [run]}, plan(config=small))
    assert any("16 → 24 networks" in sentence for sentence in standing(found_here))


def test_another_measure_of_fitness_is_not_held_against_the_papers_and_other_readings_are_named() -> None:
    assert bands(0.98, config=resolve("default")) == ["other fitness"] * 3
    reading = resolve("paper", {"budget.newborns": "scored"})
    assert bands(0.98, config=reading)[0] == "within"
    found_here = results({Experiment("mnist", True): [figures()]}, plan(config=reading))
    assert 'These runs have other settings than the preset paper: budget.newborns is "scored".' in standing(
        found_here
    )
    assert not any("other settings" in sentence for sentence in standing(results({})))


def test_a_mean_is_taken_where_all_were_trained_and_the_highest_at_the_end() -> None:
    lines = history(generations=3, average=slope(0.2, 0.1), highest=slope(0.5, 0.1))
    budgeted = figures(lines, spent=[10, 20, 24], whole=2)
    assert budgeted.last("average_fitness") == pytest.approx(0.4)
    assert budgeted.last("highest_fitness") == pytest.approx(0.8)
    assert budgeted.trainings == 24
    early = budgeted.until(1)
    assert early.last("average_fitness") == pytest.approx(0.3)
    assert early.trainings == 10


def test_the_command_of_a_row_leaves_out_what_the_experiment_sets_and_owns_up_to_gaps() -> None:
    own = resolve(
        "paper", {"evolution.seed": 7, "evolution.speciation": False, "culling.spared": "ecosystem"}
    )
    plain = Experiment("mnist", False)
    found_here = results({plain: [figures(), figures(), figures()]}, plan(config=own))
    command = "epicortex reproduce mnist --speciation off --runs 3 --preset paper --culling.spared ecosystem"
    assert tables.repeating(found_here, plain) == command
    broken = replace(found_here.runs[1], why_not="not finished")
    gaps = replace(found_here, runs=(found_here.runs[0], broken, found_here.runs[2]))
    assert tables.repeating(gaps, plain) == f"{command}  # the row is without 1 seed: 2"


def test_a_single_run_has_no_deviation_and_that_is_said() -> None:
    found_here = results({Experiment("mnist", True): [figures()]})
    row = next(row for row in tables.beside(found_here).rows if row[1] == "highest")
    assert row[4] == "90.00 ± –"
    said = list(standing(found_here))
    assert said[0] == "Incomplete: 1 run finished, 7 not begun."
    assert "The paper has 10 runs of each experiment; the runs that count here are 0 to 1 of each." in said[1]


def test_controls_are_compared_with_evolution_and_few_runs_are_owned_up_to() -> None:
    plain = Experiment("mnist", True)
    champion = Experiment("mnist", True, "champion")
    early = history(highest=lambda generation: 0.5 + generation / 100)
    found_here = results({plain: [figures()], champion: [figures(early, lineage=10)]})
    (table,) = tables.controls(found_here)
    assert table.caption.startswith("MNIST, speciation: evolution against its controls")
    cells = {(row[0], row[1]): row[3:6] for row in table.rows}
    assert cells["champion's structure, with the lineage's samples", "highest"] == (
        "90.00",
        "60.00",
        "+30.00",
    )
    assert cells["champion's structure, with the whole budget", "highest"] == (
        "90.00",
        "70.00",
        "+20.00",
    )
    (caution,) = tables.control_cautions(found_here)
    assert caution.startswith("With 1 and 1 run no p below 1 can be reached")
    assert tables.controls(results({plain: [figures()]})) == []
    assert tables.control_cautions(results({plain: [figures()]})) == []


def test_many_comparisons_of_few_runs_are_owned_up_to_in_each_table_by_itself() -> None:
    five = [figures() for _ in range(5)]
    mnist, svhn = (
        {Experiment(data, True, name): five for name in (None, *ALL)} for data in ("mnist", "svhn")
    )
    assert tables.control_cautions(results(dict(list(mnist.items())[:2]))) == []
    for runs in (mnist, mnist | svhn):
        assert [len(table.rows) for table in tables.controls(results(runs))] == [8] * (len(runs) // 5)
        assert tables.control_cautions(results(runs)) == [
            "Of 8 tests the clearest can have a p (Holm) of 0.063 at best."
        ]
