"""Which values of neat-python suit two poles: `python -m benchmarks.neat_tuning`.

One value after another is changed, and kept where the mean of evaluations over the seeds 101 to 106 falls.
The result is POLES in `tasks`; the seeds that are shown beside ours are others.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.tasks import one_run

SEEDS: Final = range(101, 107)
#: What is tried, in this order.
TRIED: Final[tuple[Mapping[str, Any], ...]] = (
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
    return statistics.mean(one_run("neat-python", name, seed, dict(changes))["evaluations"] for seed in SEEDS)


def main() -> None:
    """Tune, and print every step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="double-pole")
    name = parser.parse_args().task
    kept: dict[str, Any] = {}
    best = mean(name, kept)
    print(f"{best:,.0f} evaluations to begin with", flush=True)
    for change in TRIED:
        found = mean(name, {**kept, **change})
        better = found < best
        print(f"{found:,.0f} with {json.dumps(change)}: {'kept' if better else 'not kept'}", flush=True)
        if better:
            best, kept = found, {**kept, **change}
    print(f"{best:,.0f} with {json.dumps(kept)}")


if __name__ == "__main__":
    main()
