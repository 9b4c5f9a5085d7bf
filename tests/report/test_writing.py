"""The report as a file: complete in itself, small, escaped, and written whatever a run's folder holds."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicortex import report
from epicortex.cli.evolve import add_arguments
from epicortex.cli.parsing import Parser, settings_given
from epicortex.config import Config, changed
from epicortex.config import resolving as settings
from epicortex.data import DataSet
from epicortex.errors import StorageError
from epicortex.pages import commands
from epicortex.run.record import read_run
from epicortex.storage import RunFolder, RunInfo
from tests.report.browser import chromium
from tests.report.world import few_digits, pretended_run

EVIL = "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>\"'{{7*7}}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretended_run(tmp_path_factory.mktemp("runs") / "run")


def copied(run: Path, to: Path) -> Path:
    shutil.copytree(run, to)
    return to


def tampered(run: Path, to: Path, file: str, change: Callable[[str], str]) -> Path:
    """A copy of a run with a log changed, and without the checkpoints that would tell."""
    folder = copied(run, to)
    shutil.rmtree(folder / "checkpoints")
    (folder / "report.html").unlink(missing_ok=True)
    before = (folder / file).read_text()
    after = change(before)
    assert after != before
    (folder / file).write_text(after)
    return folder


def written(run: Path, **options: Any) -> str:
    return report.write(run, **options).read_text("utf-8")


def section(html: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)
    assert found
    return found[0]


# -- the file -------------------------------------------------------------------------------------------


def test_it_is_written_into_the_runs_folder_or_where_one_says(run: Path, tmp_path: Path) -> None:
    assert report.write(run) == run / "report.html"
    elsewhere = report.write(run, tmp_path / "page.html")
    assert elsewhere.read_bytes() == (run / "report.html").read_bytes()


def test_the_command_line_writes_it_and_says_where(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    command = [sys.executable, "-m", "epicortex", "report", str(run), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(out)
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_it_names_nothing_that_could_be_loaded(run: Path) -> None:
    html = written(run)
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", html)
    assert not re.findall(r"url\(|@import", html)


def test_a_full_run_of_the_paper_stays_small(tmp_path: Path) -> None:
    full = pretended_run(
        tmp_path / "run",
        evolution__generations=100,
        evolution__initial_networks=64,
        evolution__max_networks=111,
        evolution__initial_species=8,
        evolution__max_species=16,
    )
    assert len(list(read_run(full).networks())) > 10_500
    assert report.write(full).stat().st_size < 4_000_000


# -- what it says ---------------------------------------------------------------------------------------


def test_the_champion_is_shown_on_its_test_set(run: Path) -> None:
    html = section(written(run), "mistakes")
    data = few_digits()
    assert "Of 596 test samples" in html
    assert all(f'<th scope="row" title="{name}"><span>{name}</span></th>' in html for name in data.classes)
    cells = [int(text) for text in re.findall(r'<td class="[^"]*" style="--s: [\d.]+">(\d+)</td>', html)]
    assert sum(cells) == 596
    assert html.count("data:image/png") == 24


def test_the_most_wrong_are_those_with_the_surest_mistakes(run: Path) -> None:
    import torch

    from epicortex.data import load
    from epicortex.report.mistakes import examine

    champion, data = read_run(run).champion(), load("digits")
    tested = examine(champion, data)
    with torch.no_grad():
        logits = champion.network()(torch.from_numpy(champion.scaling.apply(data.x_test))).double().numpy()
    logits /= champion.facts.temperature or 1.0
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds /= odds.sum(1, keepdims=True)
    wrong = [(float(row.max()), at) for at, row in enumerate(odds) if row.argmax() != data.y_test[at]]
    assert tested.accuracy == pytest.approx(1 - len(wrong) / len(odds))
    surest = sorted((confidence for confidence, _ in wrong), reverse=True)[:24]
    assert [one.confidence for one in tested.wrong] == pytest.approx(surest)
    assert tested.confusion.sum() == len(data.y_test)
    assert np.trace(tested.confusion) == len(data.y_test) - len(wrong)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (few_digits, "it was handed over by a program"),
        (lambda: "mnist", "mnist"),
    ],
)
def test_without_the_data_the_section_says_why(
    run: Path, tmp_path: Path, data: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPICORTEX_DATA", str(tmp_path / "nothing"))
    source = data()
    if isinstance(source, DataSet):
        folder = pretended_run(tmp_path / "run", data=source, evolution__generations=2)
    else:
        folder = copied(run, tmp_path / "run")
        text = (folder / "config.toml").read_text().replace('source = "digits"', f'source = "{source}"')
        seal(folder / "config.toml", text)
    html = section(written(folder), "mistakes")
    assert "could not be used" in html
    assert words in html
    assert "<table" not in html


def test_without_speciation_the_section_says_so(tmp_path: Path) -> None:
    folder = pretended_run(tmp_path / "run", evolution__generations=3, evolution__speciation=False)
    html = written(folder)
    assert "This run had no speciation" in section(html, "species")
    assert 'id="plot-species"' not in html
    assert "species" not in figures(html)


def test_tables_and_one_dimension_are_reported_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    seen: set[str] = set()
    for name, shape in (("table", (6,)), ("signal", (2, 20)), ("volume", (1, 8, 8, 8))):
        x, y = rng.normal(size=(60, *shape)).astype(np.float32), np.arange(60) % 3
        data = DataSet(
            name=name,
            x_train=x[:40],
            y_train=y[:40],
            x_test=x[40:],
            y_test=y[40:],
            classes=("a", "b", "c"),
            scaling=few_digits().scaling if shape[0] == 1 else scaling(shape[0]),
        )
        saved = data.save(tmp_path / f"{name}.safetensors")
        run = pretended_run(tmp_path / name, data=str(saved.path), evolution__generations=3)
        html = written(run)
        assert "Of 20 test samples" in section(html, "mistakes")
        drawn = re.findall(r"Layer \d+: (convolution|fully connected)", section(html, "champion"))
        kinds = {"conv": "convolution", "full": "fully connected"}
        parts = read_run(run).champion().outline.parts[:-1]
        layers = [kinds[part.kind] for part in parts]
        assert drawn[: len(layers)] == layers
        seen.update(layers)
    assert seen == set(kinds.values())


def test_a_run_without_a_complete_generation_has_a_report_too(tmp_path: Path) -> None:
    info = RunInfo.now(data="digits", data_digest="0" * 64)
    RunFolder.create(tmp_path / "run", Config(), info).close()
    html = written(tmp_path / "run")
    assert "The first generation is not complete yet" in html
    assert re.findall(r'<section id="(\w+)"', html) == ["summary", "config"]
    assert figures(html) == {}


def test_a_run_that_goes_on_is_reported_up_to_its_last_generation(run: Path, tmp_path: Path) -> None:
    folder = tampered(run, tmp_path / "run", "history.jsonl", lambda text: text[:-300])
    html = written(folder)
    assert "11 of 12 generations so far" in html
    assert figures(html)["fitness"]["data"][-1]["x"][-1] == 11


# -- doing it again -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("default", {}),
        ("paper", {"evolution.seed": 3, "evolution.speciation": False, "evolution.target": 0.97}),
        (
            "default",
            {
                "training.optimiser": "SGD",
                "training.optimiser_arguments": {"lr": 0.1, "nesterov": True, "momentum": 0.9},
                "data.image_size": [28, 28],
                "evolution.operators": ["layer", "kernel"],
                "evolution.start_genome": '{"format":1,"input_shape":[1,8,8],"layers":[],"classes":10}',
            },
        ),
    ],
)
def test_the_command_gives_the_same_config(preset: str, changes: dict[str, Any]) -> None:
    config = settings.resolve(preset, {**changes, "data.source": "my pictures/of pets"})
    words = shlex.split(commands.evolve_command(config, "again").replace("\\\n", ""))
    assert words[:3] == ["epicortex", "evolve", "my pictures/of pets"]
    parser = Parser(prog="epicortex evolve")
    add_arguments(parser)
    arguments = parser.parse(words[2:])
    again = settings.resolve(arguments.preset, settings_given(arguments)[0])
    assert changed(again, data={"source": arguments.data}) == config


# -- hostile folders ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text that a person or a file can choose tries to become markup."""
    digits = few_digits()
    data = DataSet(
        name=EVIL,
        x_train=digits.x_train,
        y_train=digits.y_train,
        x_test=digits.x_test,
        y_test=digits.y_test,
        classes=tuple(f"{EVIL}{number}" for number in range(10)),
        scaling=digits.scaling,
    )
    folder = tmp_path_factory.mktemp("hostile")
    saved = data.save(folder / "data.safetensors")
    run = pretended_run(folder / "run", data=str(saved.path), failing=0.1, command=f"epicortex {EVIL}")
    networks = (run / "networks.jsonl").read_text()
    networks = networks.replace('"type":"kernel"', '"type":' + json.dumps(EVIL + "\ud800"))
    networks = networks.replace('"failed":"', '"failed":"' + json.dumps(EVIL)[1:-1])
    (run / "networks.jsonl").write_text(networks)
    shutil.rmtree(run / "checkpoints")
    return run


def test_nothing_that_a_file_says_becomes_markup(hostile: Path) -> None:
    html = written(hostile)
    assert "pwned" in html
    assert "<script>window.pwned" not in html
    assert "<img src=x" not in html
    assert "{{7*7}}" in section(html, "config")
    plotted = json.dumps(figures(html))
    assert "<img" not in plotted
    assert "<script" not in plotted


def test_a_hostile_report_runs_nothing_and_loads_nothing(
    hostile: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = report.write(hostile)
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.open(path)
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.run("return window.pwned") is None
        assert page.run("return document.querySelectorAll('main script, main img[onerror]').length") == 0
        assert page.complaints() == []
        assert page.requests() == {path.as_uri()}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("history.jsonl", '"seconds":', '"seconds":1e308,"x":'),
        ("networks.jsonl", '"generation":1,', '"generation":9000000000000000000,'),
        ("networks.jsonl", '"species":1,', '"species":"one",'),
        ("networks.jsonl", '"layers":[', '"layers":[[],'),
        ("networks.jsonl", "\n", ""),
    ],
)
def test_damaged_files_give_one_clear_line(run: Path, tmp_path: Path, file: str, old: str, new: str) -> None:
    folder = tampered(run, tmp_path / "run", file, lambda text: text.replace(old, new))
    with pytest.raises(StorageError) as raised:
        report.write(folder)
    assert "\n" not in str(raised.value)
    assert not (folder / "report.html").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("file", "pattern", "new"),
    [
        ("history.jsonl", r'"seconds":[^,}]+', '"seconds":1.7e308'),
        ("history.jsonl", r'"highest_fitness":[^,]+', '"highest_fitness":-1.7e308'),
        ("networks.jsonl", r'"fitness":[^,]+', '"fitness":1.7e308'),
        ("networks.jsonl", r'"parameters":\d+', '"parameters":0'),
        ("networks.jsonl", r'"birth":\d+,"species":\d+', '"birth":-9000000000000000000,"species":-1'),
    ],
)
def test_impossible_figures_break_nothing(
    run: Path, tmp_path: Path, file: str, pattern: str, new: str
) -> None:
    folder = tampered(run, tmp_path / "run", file, lambda text: re.sub(pattern, new, text))
    assert written(folder).endswith("</html>")


def figures(html: str) -> dict[str, Any]:
    """The plots as they are packed into the page."""
    found = re.search(r'id="figures">([^<]*)<', html)
    assert found
    unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return unpacked


def scaling(channels: int) -> Any:
    from epicortex.data import Scaling

    return Scaling(1.0, (0.0,) * channels, (1.0,) * channels)


def seal(path: Path, text: str) -> None:
    """Write a config.toml with the checksum it should have, as someone could who means harm."""
    import hashlib

    body = re.sub(r"# sha256 [0-9a-f]{64}\n$", "", text).encode()
    path.write_bytes(body + f"# sha256 {hashlib.sha256(body).hexdigest()}\n".encode())
