"""Randomness is named, the same everywhere, and never global."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import product

import numpy as np

from epicortex.randomness import generator


def test_the_same_name_gives_the_same_numbers_whatever_was_drawn_before() -> None:
    first = generator(1, "training", generation=3, network=7)
    first.random(1000)
    again = [generator(1, "training", generation=3, network=7).random(5).tolist() for _ in range(2)]
    assert again[0] == again[1]


def test_every_part_of_the_name_matters() -> None:
    names = product([0, 1, 2**40], ["training", "mutation"], [0, 1, 2], [0, 1, 2])
    first = [generator(s, p, generation=g, network=n).integers(2**63) for s, p, g, n in names]
    assert len(set(first)) == len(first) == 54


def test_another_process_gets_the_same_numbers() -> None:
    code = (
        "from epicortex.randomness import generator;"
        "print(generator(5, 'crossover', generation=2, network=9).integers(2**63, size=3).tolist())"
    )
    mine = generator(5, "crossover", generation=2, network=9).integers(2**63, size=3).tolist()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == str(mine)


def test_a_version_of_epicortex_keeps_the_streams_of_the_one_before() -> None:
    """A run that is resumed after an update would differ otherwise."""
    drawn = generator(1, "training", generation=2, network=3).integers(1_000_000, size=4).tolist()
    assert drawn == [785817, 520184, 542490, 202247]


def test_no_global_generator_is_read_or_moved() -> None:
    state, plain = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    one = generator(1, "start").random(3).tolist()
    np.random.seed(4)  # noqa: NPY002
    random.seed(4)
    moved = np.random.get_state(legacy=False)["state"]["key"].tolist()  # noqa: NPY002
    assert generator(1, "start").random(3).tolist() == one
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == moved  # noqa: NPY002
    np.random.set_state(state)  # noqa: NPY002
    random.setstate(plain)


def test_neighbouring_names_are_independent() -> None:
    streams = np.array([generator(1, "weights", network=n).standard_normal(400) for n in range(40)])
    between = np.corrcoef(streams)[~np.eye(40, dtype=bool)]
    assert abs(between).max() < 5 / np.sqrt(400)
    assert abs(streams.mean()) < 4 / np.sqrt(streams.size)
