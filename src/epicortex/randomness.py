"""Where every random choice comes from: a generator named by run seed, generation, network and purpose.

There is no global generator. Two processes that ask for the same name get the same numbers, whatever else
they did before; that is what makes a run the same for any number of workers and after a resume.
"""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, purpose: str, *, generation: int = 0, network: int = 0) -> np.random.Generator:
    """The generator for one purpose, such as the training batches of one network in one generation.

    >>> a = generator(1, "training", generation=3, network=7)
    >>> b = generator(1, "training", generation=3, network=7)
    >>> a.bytes(8) == b.bytes(8)
    True
    """
    name = zlib.crc32(purpose.encode())
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, generation, network, name])))
