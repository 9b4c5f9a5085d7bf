"""`show` tells a run from its files alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from epicortex.cli import main
from epicortex.cli.show import changes, kernels
from epicortex.config import resolving as settings
from epicortex.ecosystem.plan import Plan
from epicortex.run.record import load_champion
from tests.cli.conftest import words

Finished = tuple[Path, "subprocess.CompletedProcess[str]"]


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["show", *args]) == 0
    return capsys.readouterr().out


def test_the_champion_is_a_table_of_layers(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = finished
    text = shown(capsys, str(run))
    champion = load_champion(run)
    outline, facts = champion.outline, champion.facts
    assert f"network {facts.network} as it was in generation {facts.generation}" in text
    assert f"{100 * facts.fitness:.2f} % on the validation set" in text
    assert facts.test_accuracy is not None
    assert f"{100 * facts.test_accuracy:.2f} % on the test set" in text
    size = f"{outline.parameters:,} parameters, {outline.cost:,} multiplications for a sample; species"
    assert size in " ".join(text.split())
    for number, part in enumerate(outline.parts, 1):
        (row,) = [line for line in text.splitlines() if line.startswith(f"{number} {part.kind} ")]
        assert "×".join(map(str, part.output)) in row
        assert f"{part.parameters:,}" in row
    assert "all 5 generations are done" in text
    assert "┤" in text
    assert "Lineage" in text


def test_kernels_are_grouped_by_shape_the_most_frequent_first() -> None:
    assert kernels([(1, 5), *[(3, 3)] * 12, *[(1, 5)] * 3]) == "12 × 3×3, 4 × 1×5"


def test_it_fits_80_columns_without_colour(finished: Finished) -> None:
    run, _ = finished
    done = subprocess.run(words("show", str(run)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    body = [line for line in done.stdout.splitlines() if str(run) not in line]
    assert max(map(len, body)) <= 80


def test_torch_is_not_needed(finished: Finished) -> None:
    run, _ = finished
    code = (
        f"import sys; from epicortex.cli import main; code = main(['show', {str(run)!r}]); "
        "sys.exit('torch was imported' if 'torch' in sys.modules else code)"
    )
    done = subprocess.run([words()[0], "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_json_has_everything_for_programs(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = finished
    story = json.loads(shown(capsys, str(run), "--json"))
    champion = load_champion(run)
    assert story["champion"]["genome"] == champion.phenotype.genome.to_dict()
    assert story["champion"]["fitness"] == champion.facts.fitness
    assert story["champion"]["test_accuracy"] == champion.facts.test_accuracy
    assert [line["generation"] for line in story["history"]] == [1, 2, 3, 4, 5]
    assert story["lineage"][0]["id"] == champion.facts.network
    assert story["failures"] == {}
    assert story["status"] == "all 5 generations are done"
    assert story["config"]["evolution"]["max_networks"] == 8
    assert story["run"]["data"] == "digits"
    assert story["evaluations"] == sum(line["networks"] for line in story["history"])


def test_a_run_without_a_complete_generation_says_so(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = finished
    shutil.copy(run / "config.toml", tmp_path)
    text = shown(capsys, str(tmp_path))
    assert "there is no champion yet" in text
    assert "resume" in text
    assert json.loads(shown(capsys, str(tmp_path), "--json"))["champion"] is None


def test_what_a_file_says_cannot_steer_the_terminal(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = finished
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    shutil.rmtree(copy / "checkpoints")  # as someone who sends a run would, to have no checksums beside it
    lines = (copy / "networks.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["failed"] = "\x1b[2Jgone"
    (copy / "networks.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    text = shown(capsys, str(copy))
    assert "\x1b" not in text
    assert "1 training of" in text
    assert "1 × ?[2Jgone" in text


@pytest.mark.parametrize(
    "name", ["config.toml", "history.jsonl", "networks.jsonl", "champion/model.safetensors"]
)
def test_a_damaged_file_is_one_clear_line(
    name: str, finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = finished
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 3] ^= 0xFF
    (copy / name).write_bytes(data)
    assert main(["show", str(copy)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert name.rsplit("/", maxsplit=1)[-1] in captured.err


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({}, "samples moved at random"),
        ({"flip": True}, "samples moved at random, mirrored"),
        ({"flip": True, "spared": (1,)}, "samples moved at random, mirrored but for dogs"),
        ({"flip": True, "spared": tuple(range(7))}, "samples moved at random, mirrored but for 7 classes"),
        ({"augment": ("colour", "cutout")}, "samples moved at random, changed by colour and cutout"),
    ],
)
def test_what_was_found_out_about_changes_of_samples_is_told(plan: dict[str, Any], said: str) -> None:
    last = Plan(9, "polish", 10, 80, (0.1, 0.0), 10.0, **plan)
    assert changes(settings.resolve("default"), last, ("cats", "dogs", "birds")) == said
