"""One run of one arm, in a process of its own: `python -m benchmarks.arms`, with JSON in and out.

The clock of every arm begins with its process, so that reading data and measuring speed count for all alike.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from epicortex import machine
from epicortex.errors import ConfigError, EpiCortexError

#: What each arm is, in the order of the tables.
ARMS: Final = {
    "ours": "`epicortex evolve`, with the most parameters that the bar allows",
    "founder": "control (a): the middle founder of ours, trained for the whole time",
    "alone": "one founder of half the usual limits, sized for the whole time and trained for it",
    "scratch": "control (b): the final structure of ours with new weights, trained for the whole time",
    "optuna": "control (c): Optuna TPE with median pruning, same space and recipe, then its best structure",
    "cnn": "a hand-written CNN with batch norm, AdamW and cosine",
    "cnn-changed": "the same CNN, whose images also change in colour and have boxes cut out",
    "lenet": "LeNet-5, trained in the same way",
    "small": "ours with at most 10,000 parameters",
    "forest": "a random forest of 500 trees on the pixels",
    "sgd": "ours with the steps of SGD for all weights",
    "no-averaging": "ours without averaging relatives",
    "no-shapes": "ours without mutations of kernel shapes",
    "uniform": "ours with 3×3 kernels only",
    "drawn": "ours with half of the kernels drawn narrow, which then do not change",
    "naive": "ours without classes of cost: one pool, equal work, the best four of six survive",
    "shape-square": "the depth and the cost of the founder, all kernels 3×3",
    "shape-narrow": "the same depth and cost, a third of the kernels 3×3, others 1×3 and 3×1",
    "shape-long": "the same depth and cost, a third of the kernels 3×3, others 1×5 and 5×1",
    "shape-shrunk": "the same depth, all kernels 3×3 until they shrink by magnitude to that cost",
}
#: Those that compare shapes of kernels.
SHAPES: Final = tuple(arm for arm in ARMS if arm.startswith("shape-"))
#: Arms that take a structure, sizes or augmentation from the run of ours with the same seed.
NEED_OURS: Final = frozenset({"founder", "alone", "scratch", "optuna", *SHAPES})
#: The most parameters that the bars of this project allow: `epicortex evolve --max-parameters`.
MOST_PARAMETERS: Final = {"mnist": 50_000, "fashion-mnist": 100_000, "svhn": 150_000, "cifar10": 250_000}
#: Data whose images a person would mirror.
PHOTOGRAPHS: Final = frozenset({"cifar10", "photographs"})


def run(request: dict[str, Any], began: float) -> dict[str, Any]:
    """The figures of a run; `request` has its key, its folder, and for some arms the figures of ours."""
    arm, data, ours = request["arm"], request["data"], request.get("ours") or {}
    usual: dict[str, Any] = {
        "seed": request["seed"],
        "minutes": request["minutes"],
        "cores": request["cores"],
        "began": began,
    }
    folder = Path(request["folder"])
    if arm in NEED_OURS and not ours:
        raise ConfigError(f"the arm {arm} rests on ours with the same data, minutes and seed; run that first")
    if arm in ("cnn", "cnn-changed", "lenet", "forest"):
        return _by_hand(arm, data, **usual)
    from benchmarks import evolved

    if arm in ("founder", "scratch"):
        genome = ours["founder" if arm == "founder" else "genome"]
        return evolved.fixed(data, genome, flips=evolved.flips(ours), folder=folder, **usual)
    if arm in SHAPES:
        from benchmarks import shapes

        made = shapes.structure(arm, evolved.genome(ours["founder"]), request["seed"])
        parts = shapes.PARTS if arm == "shape-shrunk" else None
        flips = evolved.flips(ours)
        return evolved.fixed(data, made.to_dict(), flips=flips, folder=folder, parts=parts, **usual)
    most = MOST_PARAMETERS.get(Path(data).name)
    if arm == "optuna":
        from benchmarks import tpe

        return tpe.run(data, ours, folder=folder, most_parameters=most, **usual)
    more = evolved.flips(ours) if arm == "alone" else {}
    more["evolution.max_parameters"] = most
    return evolved.run(data, arm, folder=folder, more=more, **usual)


def _by_hand(arm: str, source: str, *, minutes: float, **usual: Any) -> dict[str, Any]:
    import epicortex

    data = epicortex.load_data(source)
    if data.x_train.ndim != 4:
        raise ConfigError(f"the arm {arm} is for images; {source} has none")
    if arm == "forest":
        from benchmarks import forest

        return forest.run(data, seed=usual["seed"], cores=usual["cores"], began=usual["began"])
    from benchmarks import by_hand

    flips = Path(source).name in PHOTOGRAPHS
    return by_hand.train(arm, data, seconds=60 * minutes, flips=flips, **usual)


def main() -> int:
    """Read a request, run it, and print the figures as the last line."""
    began = time.monotonic() - machine.process_age()
    try:
        figures = run(json.load(sys.stdin), began)
    except EpiCortexError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(figures, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
