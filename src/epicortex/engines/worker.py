"""A worker of the engine `processes`: a fresh interpreter that trains what it is sent until its parent goes.

It is started by `processes`, never by a person. It draws no conclusions: retries, limits and replacements are
left to the parent.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.engines import serving
from epicortex.engines.channel import Channel, ChannelClosed

if TYPE_CHECKING:
    from epicortex.engines.serving import Bench

_PR_SET_PDEATHSIG: Final = 1
_HEARTBEAT_SECONDS: Final = 1.0


def main(descriptor: int, parent: int, module: str | None = None) -> None:
    """Serve the parent at the other end of the socket until it goes; `module` will be needed."""
    _die_with(parent)
    serving.settle()
    channel = Channel(socket.socket(fileno=descriptor))
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    leftover: list[Path] = []
    threading.Thread(target=_listen, args=(channel, messages, leftover), daemon=True).start()
    if module:
        importlib.import_module(module)  # torch takes a second; meanwhile the parent reads data

    content, orphans_remove = messages.get()
    leftover += orphans_remove
    try:
        bench = serving.make_ready(content)
    except serving.WorkerBroken as broken:
        channel.send(("broken", str(broken)))
        return
    channel.send(("ready", None))
    _serve(channel, messages, bench)


def _serve(channel: Channel, messages: queue.SimpleQueue[Any], bench: Bench) -> None:
    spoken = 0.0

    def heartbeat() -> None:
        nonlocal spoken
        now = time.monotonic()
        if now - spoken >= _HEARTBEAT_SECONDS:
            channel.send(("alive", None))
            spoken = now

    while True:
        job = messages.get()
        spoken = 0.0
        heartbeat()
        outcome = bench.perform(job, heartbeat=heartbeat)
        channel.send(("done", outcome))
        del job, outcome


def _listen(channel: Channel, messages: queue.SimpleQueue[Any], leftover: list[Path]) -> None:
    """Take messages in; when the parent has gone, tidy up after it and end, whatever else is going on."""
    parent = os.getppid()
    try:
        while True:
            if channel.waits(1.0):
                messages.put(channel.receive())
            elif os.getppid() != parent:
                break
    except ChannelClosed:
        pass  # the parent has gone
    except Exception:
        traceback.print_exc()
    finally:
        for path in leftover:
            path.unlink(missing_ok=True)
        os._exit(1)


def _die_with(parent: int) -> None:
    """On Linux even a stopped worker is killed with its parent; elsewhere `_listen` notices."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
