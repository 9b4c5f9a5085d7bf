"""The long version of the fault tests, and a table of what was tried, survived and lost.

`python -m tests.faults` runs it; words after that go to pytest, such as `-k disk` or `-n 2`. It takes about
half an hour of one quiet core. Rows are written as they come. With EPICORTEX_FAULTS_TABLE=FILE they stay in
that file, whatever happens; a part that is run again replaces its rows, and
`python -m tests.faults --table FILE` prints the table.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest


def table(path: Path) -> str:
    """The rows in Markdown, in the order in which faults first came; equal names are one row."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        newest[row["fault"], row["test"]] = row
    faults: dict[str, list[int]] = {}
    for row in newest.values():
        sums = faults.setdefault(row["fault"], [0, 0])
        sums[0] += row["survived"]
        sums[1] += len(row["lost"])
    rows = ["| fault | cases tried | survived | lost |", "|---|--:|--:|--:|"]
    for fault, (survived, lost) in faults.items():
        rows.append(f"| {fault} | {survived + lost:,} | {survived:,} | {lost:,} |")
    survived, lost = (sum(sums[index] for sums in faults.values()) for index in (0, 1))
    rows.append(f"| **all** | {survived + lost:,} | {survived:,} | {lost:,} |")
    for row in newest.values():
        if counts := row["repeated"]:
            rows.append(f"\n{row['fault']}: {sum(counts)} trainings repeated, at most {max(counts)} a case")
    return "\n".join(rows)


def main(words: list[str]) -> int:
    """Run everything, print the table, give pytest's exit code."""
    if words[:1] == ["--table"]:
        print(table(Path(words[1])))
        return 0
    os.environ["EPICORTEX_THOROUGH"] = "1"
    os.environ.setdefault("EPICORTEX_FUZZ_EXAMPLES", "100000")
    from tests.faults.world import TABLE  # only now, since it looks at the environment

    with tempfile.TemporaryDirectory() as folder:
        path = Path(os.environ.setdefault(TABLE, str(Path(folder) / "table.jsonl")))
        path.touch()
        code = pytest.main([str(Path(__file__).parent), "-q", "--no-header", *words])
        print(table(path))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
