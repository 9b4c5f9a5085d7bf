"""The versions that the bits of a run depend on."""

from __future__ import annotations

import platform
from importlib import metadata


def versions() -> dict[str, str]:
    """Python, EpiCortex, torch and numpy, as they are here.

    >>> list(versions())
    ['python', 'epicortex', 'torch', 'numpy']
    """
    names = ("epicortex", "torch", "numpy")
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}
