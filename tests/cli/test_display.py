"""What is shown while a run goes on."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from epicortex.cli import display
from epicortex.cli.display import Display, PlainDisplay, Point, Watch, reasons
from epicortex.ecosystem.state import Tally

TALLY = Tally(
    generation=1,
    networks=64,
    species=8,
    highest_fitness=0.9783,
    average_fitness=0.951,
    offspring_fitness=None,
    offspring=20,
    mutations=14,
    mutations_refused=2,
    mutations_failed=0,
    species_founded=1,
    species_extinct=0,
    culled=5,
    failed=0,
    champion=7,
    champion_parameters=21034,
    mean_parameters=18000.5,
)


def test_a_plain_line_says_what_a_generation_came_to(capsys: pytest.CaptureFixture[str]) -> None:
    shown = PlainDisplay(Watch("digits", "runs/digits-1", generations=10))
    shown.progress(1, 64)
    shown.generation(TALLY, 2.0)
    shown.progress(1, 64, "NaN in the loss")
    shown.progress(2, 64, "NaN in the loss")
    shown.generation(replace(TALLY, generation=2, offspring_fitness=0.912, failed=2, species=0), 4.0)
    first, second = capsys.readouterr().out.splitlines()
    figures = "best 97.83 %  mean 95.10 %  offspring –  64 networks  8 species"
    assert first == f"generation  1/10  {figures}  2.0 s  18.0 s left"
    assert "offspring 91.20 %" in second
    assert "2 failed (2 × NaN in the loss)" in second
    assert "species" not in second
    assert second.endswith("4.0 s  24.0 s left")


def test_quiet_says_nothing_but_notes(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Display(Watch("digits", "runs/digits-1", generations=10))
    shown.progress(1, 64)
    shown.generation(TALLY, 2.0)
    shown.note("only protected networks are left")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "epicortex: only protected networks are left\n"


def test_failures_are_counted_by_reason_the_most_frequent_first() -> None:
    failures = Counter({"a": 1, "b": 3, "c": 2, "d": 1, "e": 1})
    assert reasons(failures) == "3 × b, 2 × c, 1 × a, 2 other reasons"


def test_the_time_left_follows_the_last_generations_and_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("epicortex.cli.display.time.monotonic", lambda: clock[0])
    watch = Watch("digits", "run", generations=10, begun=0.0)
    assert watch.left() is None
    clock[0], watch.done, watch.total = 5.0, 1, 2
    assert watch.left() == pytest.approx(95.0)
    watch.points, watch.seconds = [Point(0.9, 0.8, None)] * 6, [100, 2, 2, 2, 2, 2]
    watch.done = watch.total = 0
    assert watch.left() == pytest.approx(8.0)
    watch.minutes = 0.1
    assert watch.left() == pytest.approx(1.0)


def test_what_a_resumed_generation_had_already_is_not_taken_for_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("epicortex.cli.display.time.monotonic", lambda: clock[0])
    watch = Watch("digits", "run", generations=11, begun=0.0, total=64)
    shown = Display(watch)
    for clock[0], done in ((1.0, 49), (4.0, 52), (8.0, 56)):
        shown.progress(done, 64)
        assert (watch.left() is None) == (done < 61), done
    for clock[0], done in ((13.0, 61), (16.0, 64)):
        shown.progress(done, 64)
        assert watch.left() == pytest.approx(11 * 64 - done)
    shown.generation(TALLY, 16.0)
    assert watch.left() == pytest.approx(10 * 64.0)


def test_a_generation_that_was_wholly_replayed_says_nothing_about_the_time_left() -> None:
    watch = Watch("digits", "run", generations=10, total=64)
    Display(watch).generation(TALLY, 0.7)
    assert watch.left() is None


def picture(watch: Watch, width: int = 80, height: int = 24) -> str:
    """The live display as it stands on a screen without colour."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(display._View(watch))
    return capture.get()


def test_the_live_picture_has_all_there_is_to_know_in_80_columns() -> None:
    watch = Watch("digits", "runs/digits-1", generations=40)
    assert "reading the data" in picture(watch)
    shown = Display(watch)
    shown.reading("pictures", 1200, 5000)
    assert "pictures, 1,200 of 5,000" in picture(watch)
    watch.total = 64
    assert "starting the workers" in picture(watch)
    shown.progress(1, 64)
    shown.generation(TALLY, 2.0)
    shown.progress(1, 64)
    shown.generation(replace(TALLY, generation=2, offspring_fitness=0.912, highest_fitness=0.9612), 2.0)
    shown.progress(51, 64, "NaN in the loss")
    text = picture(watch)
    for part in (
        "digits · runs/digits-1",
        "generation 3 of 40",
        "51 of 64 networks",
        "97.83 %, 96.12 % in this generation (21,034 parameters)",
        "95.10 %",
        "91.20 % before training",
        "64 in 8 species · 20 born, 5 culled, 14 mutated",
        "about 1 min",
        "1 × NaN in the loss",
        "best 96.12 %",
        "Ctrl-C stops after a checkpoint",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 23
    shown.notice("stopping")
    assert "stopping" in picture(watch)


def test_a_low_terminal_goes_without_the_curves() -> None:
    watch = Watch("digits", "runs/digits-1", generations=40)
    for _ in range(3):
        Display(watch).generation(TALLY, 1.0)
    assert "┤" in picture(watch, height=24)
    assert "┤" not in picture(watch, height=12)


def test_a_reason_from_a_worker_cannot_steer_the_terminal() -> None:
    watch = Watch("digits", "run", generations=2)
    Display(watch).progress(1, 2, "bad \x1b[2J\nthing")
    assert list(watch.failures) == ["bad ?[2J thing"]
