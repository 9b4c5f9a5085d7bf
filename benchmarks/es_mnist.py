"""MNIST by an evolution strategy alone: `EPICORTEX_DATA=folder python -m benchmarks.es_mnist`.

One full network, no gradients and no change of structure, to show that the evaluator `es` works: a run of
EpiCortex like any other. Images are averaged down to 14 × 14, since the strategy's work grows with the
square of the number of weights; `--side 28` leaves them. The run ends when 95.3 % of a validation set is
right; the test set is looked at once, at the end.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import epicortex
from epicortex.data import DataSet, load
from epicortex.families.layered.genome import FullLayer, Genome

KEPT: Final = Path(__file__).with_name("es_mnist.jsonl")


def smaller(data: DataSet, side: int) -> DataSet:
    """The data set with its images averaged down to so many pixels a side."""

    def averaged(images: NDArray[Any]) -> NDArray[np.uint8]:
        count, channels, size, _ = images.shape
        part = size // side
        blocks = images[:, :, : side * part, : side * part].reshape(count, channels, side, part, side, part)
        return np.asarray(blocks.mean((3, 5)).round(), np.uint8)

    parts = {"x_train": averaged(data.x_train), "x_test": averaged(data.x_test)}
    return replace(data, **parts, path=None)


def settings(seed: int, hours: float, rate: float, pairs: int, steps: int) -> epicortex.Config:
    """A single network whose weights alone change."""
    return epicortex.configure(
        "paper",
        {
            "evaluator": "es",
            "es.steps": steps,
            "es.pairs": pairs,
            "es.deviation": 0.03,
            "es.rate": rate,
            "evolution.seed": seed,
            "evolution.evolve": False,
            "evolution.weight_deviation": 0.05,
            "evolution.initial_networks": 1,
            "evolution.initial_species": 1,
            "evolution.generations": 1000,
            "evolution.minutes": 60 * hours,
            "evolution.target": 0.953,
            "training.batch_size": 256,
            "training.fitness_on": "validation",
            "training.engine": "serial",
            "training.hang_limit": 3600.0,
            "layered.full_activation": "relu",
        },
    )


def main() -> None:
    """Run, print a line a generation, and keep the last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=14, choices=(7, 14, 28))
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=0.005)
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--keep", action="store_true", help="keep the line in es_mnist.jsonl")
    asked = parser.parse_args()
    data = load("mnist")
    data = smaller(data, asked.side)
    genome = Genome((1, asked.side, asked.side), (FullLayer(asked.nodes),), 10)
    began, clock = time.process_time(), time.monotonic()

    def said(line: epicortex.Generation) -> None:
        used = time.process_time() - began
        print(f"generation {line.generation}: {line.highest_fitness:.4f}, {used:.0f} CPU s", flush=True)

    config = settings(asked.seed, asked.hours, asked.rate, asked.pairs, asked.steps)
    result = epicortex.evolve(data, config, ancestor=genome, on_generation=said, progress=False)
    assert result.champion is not None
    steps = len(result.history) * asked.steps
    line = {
        "side": asked.side,
        "nodes": asked.nodes,
        "seed": asked.seed,
        "parameters": result.champion.outline.parameters,
        "validation": result.champion.facts.fitness,
        "test": result.champion.facts.test_accuracy,
        "steps": steps,
        "candidates": 2 * asked.pairs * steps,
        "cpu_seconds": round(time.process_time() - began, 1),
        "seconds": round(time.monotonic() - clock, 1),
    }
    print(json.dumps(line))
    if asked.keep:
        with KEPT.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
