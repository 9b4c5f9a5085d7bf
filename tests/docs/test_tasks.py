"""The table of docs/tasks.md is what the benchmark makes of the seeds that are kept."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tasks import kept, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"


def test_the_table_is_that_of_the_seeds_that_are_kept() -> None:
    assert table(kept()) in PAGE.read_text()


def test_no_seed_is_left_out() -> None:
    groups: dict[tuple[str, str], list[int]] = {}
    for line in kept():
        groups.setdefault((line["task"], line["who"]), []).append(line["seed"])
    assert all(sorted(seeds) == list(range(1, len(seeds) + 1)) for seeds in groups.values())
