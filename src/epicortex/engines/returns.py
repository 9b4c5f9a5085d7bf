"""Outcomes on their way to whoever waits for them, in a thread of their own.

Whoever waits may write each to a journal. A thread that talks to a thousand workers must not wait for that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Returns:
    """Calls one thing after another; after `close`, which waits for them, nothing more."""

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, give_back: Callable[[], None]) -> None:
        """Have something called, in turn."""
        self._waiting.put(give_back)

    def close(self) -> None:
        """Return when all has been called. Closing twice is harmless."""
        self._waiting.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while (give_back := self._waiting.get()) is not None:
            give_back()
