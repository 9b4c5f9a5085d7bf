"""Which values of neat-python suit two poles: `python -m benchmarks.neat_tuning`.

Each change is tried by itself on the seeds 101 to 106; those with which the mean of evaluations falls are
taken together, if that is better than the best of them. The result is POLES in `tasks`; the seeds that are
shown beside ours are others.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.tasks import one_run

SEEDS: Final = range(101, 107)
TRIED: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"DefaultGenome.weight_mutate_power": 1.0, "DefaultGenome.bias_mutate_power": 1.0},
    {"DefaultGenome.weight_mutate_power": 2.5, "DefaultGenome.bias_mutate_power": 2.5},
    {"NEAT.pop_size": 75},
    {"DefaultGenome.conn_add_prob": 0.02, "DefaultGenome.conn_delete_prob": 0.02},
    {"DefaultGenome.node_add_prob": 0.01, "DefaultGenome.node_delete_prob": 0.01},
    {"DefaultGenome.weight_replace_rate": 0.02, "DefaultGenome.bias_replace_rate": 0.02},
    {"DefaultReproduction.survival_threshold": 0.1},
    {"DefaultSpeciesSet.compatibility_threshold": 2.0},
    {"DefaultStagnation.max_stagnation": 10},
)


def mean(name: str, changes: Mapping[str, Any]) -> float:
    """The mean evaluations of all seeds; an unsolved run counts with its limit."""
    found = statistics.mean(
        one_run("neat-python", name, seed, dict(changes))["evaluations"] for seed in SEEDS
    )
    print(f"{found:,.0f} evaluations with {json.dumps(changes)}", flush=True)
    return found


def main() -> None:
    """Tune, and print every step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="double-pole")
    parser.add_argument("--only", type=int, nargs="+", help="only try these changes, by their place")
    asked = parser.parse_args()
    found = [mean(asked.task, TRIED[place]) for place in asked.only or range(len(TRIED))]
    if not asked.only:
        helpful = [change for value, change in zip(found, TRIED, strict=True) if value < found[0]]
        mean(asked.task, {key: value for change in helpful for key, value in change.items()})


if __name__ == "__main__":
    main()
