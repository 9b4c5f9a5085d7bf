"""What this machine has for us: its processors and memory, less what is used or forbidden."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_CGROUP: Final = Path("/sys/fs/cgroup")
#: How torch and its libraries, which have no exception of their own for it, say that memory is short.
_SHORT_OF_MEMORY: Final = ("can't allocate memory", "out of memory", "bad_alloc", "could not create a memory")


def available_cores(cgroup: Path = _CGROUP) -> int:
    """At least one.

    >>> available_cores() >= 1
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()[:2]
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no cgroup, or an older kind: affinity is all there is to know
    return cores


def process_age() -> float:
    """How many seconds ago this process began; 0 where that cannot be known.

    >>> 0 <= process_age() < 10**6
    True
    """
    try:
        began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0  # another kind of system
    return max(0.0, up - began / os.sysconf("SC_CLK_TCK"))


def available_memory(cgroup: Path = _CGROUP) -> int:
    """How many bytes this process may still take, as far as can be known; never more than the machine has.

    >>> available_memory() > 0
    True
    """
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        text = Path("/proc/meminfo").read_text()
        bounds.append(1024 * int(text.partition("MemAvailable:")[2].split()[0]))
    except (OSError, ValueError, IndexError):
        pass  # another kind of system: what there is in all has to do
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        if limit != "max":
            bounds.append(int(limit) - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no cgroup, or an older kind
    limit_here, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_here != resource.RLIM_INFINITY:
        bounds.append(limit_here)
    return max(0, min(bounds))


def too_much(needed: int) -> str | None:
    """Says, for a person, that there is not so much memory; None if there is.

    >>> too_much(1)
    >>> too_much(10**18).startswith("1,000,000,000.0 GB of memory are needed, and there are ")
    True
    """
    there = available_memory()
    if needed <= there:
        return None
    return f"{needed / 1e9:,.1f} GB of memory are needed, and there are {there / 1e9:,.1f} GB"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that there was too little memory.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("DefaultCPUAllocator: out of memory"))
    (True, True)
    """
    short = any(words in str(error) for words in _SHORT_OF_MEMORY)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and short)
