"""The long version of the fault tests, and a table of what was tried, survived and lost.

`python -m tests.faults` runs it; words after that go to pytest, such as `-k disk`. It takes an hour or two.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest


def table(path: Path) -> str:
    """The rows in Markdown, in the order in which faults first came; equal names are one row."""
    survived: dict[str, int] = {}
    lost: dict[str, int] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        survived[row["fault"]] = survived.get(row["fault"], 0) + row["survived"]
        lost[row["fault"]] = lost.get(row["fault"], 0) + len(row["lost"])
    rows = ["| fault | cases tried | survived | lost |", "|---|--:|--:|--:|"]
    for fault, number in survived.items():
        rows.append(f"| {fault} | {number + lost[fault]:,} | {number:,} | {lost[fault]:,} |")
    total = (sum(survived.values()), sum(lost.values()))
    rows.append(f"| **all** | {sum(total):,} | {total[0]:,} | {total[1]:,} |")
    return "\n".join(rows)


def main() -> int:
    """Run everything, print the table, give pytest's exit code."""
    os.environ["EPICORTEX_THOROUGH"] = "1"
    os.environ.setdefault("EPICORTEX_FUZZ_EXAMPLES", "20000")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.jsonl"
        path.touch()
        os.environ["EPICORTEX_FAULTS_TABLE"] = str(path)
        code = pytest.main([str(Path(__file__).parent), "-q", "--no-header", *sys.argv[1:]])
        print(table(path))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
