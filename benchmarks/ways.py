"""Four ways to train and score the 64 networks of a real MNIST run, in turns in one process, one core.

- native arithmetic, as `benchmarks.native` drives it;
- the torch trainer, `training.backend = "torch"`;
- a careful loop by hand, and the layout that the paper describes: both as in `benchmarks.loops`.

Each network goes all four ways before the next, in another order every time; processor time counts. Run it
with `python -m benchmarks.ways`; `--networks` makes it shorter.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks import real
from benchmarks.loops import Pictures, Stacked, as_described, dense, score_by_hand, stock, train_by_hand
from benchmarks.measure import processor_seconds, row
from benchmarks.native import generation
from benchmarks.workers import MNIST, random_data, setup
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job
from epicortex.engines.serving import keep_freed_memory
from epicortex.families.layered.genome import Genome

LAYOUTS = (torch.contiguous_format, torch.channels_last)


def ways(data: DataSet) -> dict[str, Callable[[Job], object]]:
    """A generation of one network, by name of the way."""
    trainer = setup(data).evaluator()
    raw = [torch.from_numpy(np.array(array)) for array in (data.x_train, data.x_test)]
    labels = [torch.from_numpy(np.array(array)) for array in (data.y_train, data.y_test)]
    floats = [images.to(torch.float32).div_(255).sub_(0.5).div_(0.5) for images in raw]
    train, test = (Pictures(*pair) for pair in zip(raw, labels, strict=True))
    better: dict[int, torch.memory_format] = {}

    def by_hand_in(genome: Genome, layout: torch.memory_format) -> None:
        model = stock(genome, dense).to(memory_format=layout)
        train_by_hand(model, floats[0], labels[0], layout)
        score_by_hand(model, floats[1], labels[1], layout)

    def by_hand(job: Job) -> None:
        by_hand_in(job.phenotype.genome, better[job.network])

    def prepare(job: Job) -> None:
        """Find the better of two memory layouts for the loop by hand, which takes no part in its time."""
        tried = [processor_seconds(partial(by_hand_in, job.phenotype.genome, one)) for one in LAYOUTS]
        better[job.network] = LAYOUTS[tried.index(min(tried))]

    return {
        "prepare": prepare,
        "native": lambda job: generation(job, data),
        "torch trainer": trainer.run,
        "by hand": by_hand,
        "as described": lambda job: as_described(stock(job.phenotype.genome, Stacked), train, test),
    }


def compare(data: DataSet, count: int) -> None:
    """All ways on the same networks."""
    phenotypes = real.phenotypes()[:: max(1, 64 // count)][:count]
    by_name = ways(data)
    prepare = by_name.pop("prepare")
    times: dict[str, list[float]] = {name: [] for name in by_name}
    names = list(by_name)
    for number, phenotype in enumerate(phenotypes, 1):
        job = Job(number, 2, 1, phenotype)
        prepare(job)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(processor_seconds(partial(by_name[name], job)))
        print(f"{number:3d} " + ", ".join(f"{name} {times[name][-1]:.3f} s" for name in names), flush=True)
    total = {name: sum(values) for name, values in times.items()}
    for name in names:
        row(f"{count} networks of a real run, {name}", f"{count / total[name]:.2f} networks/s")
    for name in names[1:]:
        ratios = [theirs / ours for ours, theirs in zip(times["native"], times[name], strict=True)]
        spread = f"({min(ratios):.1f} to {max(ratios):.1f})"
        row(f"networks a second, native / {name}", f"{total[name] / total['native']:.1f} {spread}")


def main() -> None:
    """Print networks a second of every way, and the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=64)
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        compare(random_data(*MNIST, Path(folder) / "mnist"), options.networks)


if __name__ == "__main__":
    main()
