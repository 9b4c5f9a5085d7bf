"""Data of one's own: a folder of photographs, small tables, waveforms, each against what people would try.

python -m benchmarks.own_data photographs --out FILE.jsonl
python -m benchmarks.own_data tables
python -m benchmarks.own_data waveforms
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import epicortex
from benchmarks.baselines import run_all
from benchmarks.ledger import Key, Ledger
from epicortex.data import DataSet
from epicortex.data.values import measure
from epicortex.errors import ConfigError, EpiCortexError

#: Five of CIFAR-10's classes, of which some are easily taken for another.
PHOTOGRAPHED: Final = ("airplane", "automobile", "bird", "cat", "ship")
EACH: Final = 260
PHOTOGRAPH_ARMS: Final = ("ours", "cnn", "cnn-changed", "forest")
WAVES: Final = ("sine", "square", "sawtooth")
_LENGTH: Final = 128
_NOISE: Final = 0.5


def make_photographs(
    folder: Path, data: DataSet, *, each: int = EACH, classes: Sequence[str] = PHOTOGRAPHED
) -> Path:
    """A folder of PNG files below train/ and test/, a subfolder a class; one that is there is kept."""
    from PIL import Image

    if folder.is_dir():
        return folder
    temporary = folder.with_name(f".{folder.name}.part")
    parts = (("train", data.x_train, data.y_train, each), ("test", data.x_test, data.y_test, None))
    for name, images, labels, most in parts:
        for kind in classes:
            place = temporary / name / kind
            place.mkdir(parents=True, exist_ok=True)
            for row in np.flatnonzero(labels == data.classes.index(kind))[:most]:
                pixels = np.moveaxis(np.asarray(images[row]), 0, -1)
                Image.fromarray(pixels).save(place / f"{row}.png")
    temporary.rename(folder)
    return folder


def waveforms(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy waves [count, 1, 128] of random frequency and phase, and which kind each is."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(count) % len(WAVES)
    cycles, phase = rng.uniform(2, 8, (count, 1)), rng.random((count, 1))
    at = (cycles * np.arange(_LENGTH) / _LENGTH + phase) % 1
    shapes = np.stack([np.sin(2 * np.pi * at), np.where(at < 0.5, 1.0, -1.0), 2 * at - 1])
    waves = shapes[kinds, np.arange(count)] + _NOISE * rng.standard_normal((count, _LENGTH))
    order = rng.permutation(count)
    return waves[order, None].astype(np.float32), kinds[order].astype(np.int64)


def wave_data(seed: int, *, train: int = 1500, test: int = 3000) -> DataSet:
    """The waves as a data set."""
    x, y = waveforms(train + test, seed)
    return DataSet(
        name="waveforms",
        x_train=x[:train],
        y_train=y[:train],
        x_test=x[train:],
        y_test=y[train:],
        classes=WAVES,
        scaling=measure(x[:train], 1.0),
    )


def photographs(options: argparse.Namespace) -> int:
    """Five minutes each for ours and the CNN, and a forest."""
    data, given = epicortex.load_data("cifar10"), options.classes or PHOTOGRAPHED
    if unknown := set(given) - set(data.classes):
        raise ConfigError(f"CIFAR-10 has no class {min(unknown)!r}, but {', '.join(data.classes)}")
    folder = options.out.with_suffix("") / ("-".join(options.classes) if options.classes else "photographs")
    folder.parent.mkdir(parents=True, exist_ok=True)
    make_photographs(folder, data, classes=given)
    keys = [
        Key(str(folder.absolute()), options.minutes or 5.0, options.cores, arm, seed)
        for seed in options.seeds
        for arm in options.arms
    ]
    return run_all(keys, Ledger(options.out), again=options.again)


def tables(options: argparse.Namespace) -> int:
    """Repeated cross-validation, the same folds for all models."""
    from sklearn import datasets
    from sklearn.model_selection import RepeatedStratifiedKFold

    print("| table | ours | logistic regression | random forest | slowest fit of ours | within one error |")
    print("|---|---|---|---|---|---|")
    fine = True
    for load in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer):
        x, y = load(return_X_y=True)
        folds = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0).split(x, y))
        scores: dict[str, list[float]] = {}
        slowest = 0.0
        for name, make in classifiers(options.generations).items():
            for number, (train, test) in enumerate(folds[: options.folds]):
                began = time.monotonic()
                model = make(number).fit(x[train], y[train])
                if name == "ours":
                    slowest = max(slowest, time.monotonic() - began)
                scores.setdefault(name, []).append(float(model.score(x[test], y[test])))
        line, within = compared(scores)
        fine &= within and slowest <= 20
        name = load.__name__.removeprefix("load_").replace("_", " ")
        print(f"| {name} | {line} | {slowest:.1f} s | {'yes' if within else 'no'} |", flush=True)
    return 0 if fine else 1


def classifiers(generations: int) -> dict[str, Callable[[int], Any]]:
    """What is compared, each made for a number that it draws from."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "ours": lambda number: epicortex.EvolvedClassifier(generations=generations, random_state=number),
        "logistic": lambda number: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "forest": lambda number: RandomForestClassifier(500, random_state=number),
    }


def compared(scores: dict[str, list[float]]) -> tuple[str, bool]:
    """Means with standard errors, and whether ours is at most one error of the better one below that.

    >>> compared({"ours": [0.9, 0.92], "logistic": [0.9, 0.94], "forest": [0.8, 0.9]})
    ('91.0 ± 1.0 | 92.0 ± 2.0 | 85.0 ± 5.0', True)
    """
    means = {name: statistics.fmean(found) for name, found in scores.items()}
    errors = {name: statistics.stdev(found) / len(found) ** 0.5 for name, found in scores.items()}
    better = max(("logistic", "forest"), key=lambda name: means[name])
    line = " | ".join(f"{100 * means[name]:.1f} ± {100 * errors[name]:.1f}" for name in scores)
    return line, means["ours"] >= means[better] - errors[better]


def waves(options: argparse.Namespace) -> int:
    """Ours on 1-D waveforms, for each seed."""
    tests = []
    for seed in options.seeds:
        began = time.monotonic()
        changes = {
            "evolution.seed": seed,
            "evolution.minutes": options.minutes or 2.0,
            "training.workers": options.cores,
        }
        result = epicortex.evolve(wave_data(seed), epicortex.configure(changes=changes))
        assert result.test is not None
        assert result.champion is not None
        tests.append(result.test)
        size = f"{result.champion.outline.parameters:,} parameters"
        print(f"seed {seed}: {result.test:.2%}, {size}, {time.monotonic() - began:.0f} s", flush=True)
    return 0 if min(tests) >= 0.99 else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """As the command line says; 1 where a bar was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_data")
    checks = {"photographs": photographs, "tables": tables, "waveforms": waves}
    parser.add_argument("check", choices=list(checks))
    parser.add_argument("--classes", nargs="+", help="of CIFAR-10, for other photographs")
    parser.add_argument(
        "--arms", nargs="*", choices=PHOTOGRAPH_ARMS, default=list(PHOTOGRAPH_ARMS), help="of photographs"
    )
    parser.add_argument("--again", action="store_true", help="photographs: also what the file has")
    parser.add_argument("--minutes", type=float, help="of each run (photographs 5, waveforms 2)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--generations", type=int, default=30, help="of each fit of a table (30)")
    parser.add_argument("--folds", type=int, default=25, help="only the first of the 25 folds")
    parser.add_argument("--out", type=Path, default=Path("own-data.jsonl"), help="the file of runs")
    options = parser.parse_args(arguments)
    try:
        return checks[options.check](options)
    except EpiCortexError as error:
        print(f"own_data: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
