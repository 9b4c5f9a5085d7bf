"""Python objects over a socket between a process and its own worker; large arrays go as they are.

Pickle is safe here and only here: both ends of the socket pair are ours, and no file or network is involved.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
from typing import Any, Final

_HEAD: Final = struct.Struct("<QI")
_SIZE: Final = struct.Struct("<Q")


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a connection. One thread may send and another receive."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: object, *, timeout: float | None = None) -> None:
        """Send a message; `ChannelClosed` where the other side is gone or takes nothing for so long."""
        self.send_encoded(encode(message), timeout=timeout)

    def send_encoded(self, parts: list[bytes | memoryview], *, timeout: float | None = None) -> None:
        """Send a message that `encode` made, perhaps for several channels."""
        try:
            self._socket.settimeout(timeout)
            for part in parts:
                self._socket.sendall(part)
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def waits(self, timeout: float) -> bool:
        """Whether something can be received, or the other side has gone, within so many seconds."""
        try:
            poller = select.poll()
            poller.register(self._socket, select.POLLIN)
            return bool(poller.poll(timeout * 1000))
        except (OSError, ValueError):
            return True

    def receive(self, *, timeout: float | None = None) -> Any:
        """The next message; `ChannelClosed` where it breaks off, or stalls for so long."""
        try:
            self._socket.settimeout(timeout)
            length, count = _HEAD.unpack(self._exactly(_HEAD.size))
            sizes = [_SIZE.unpack(self._exactly(_SIZE.size))[0] for _ in range(count)]
            payload = self._exactly(length)
            # read-only, so that the arrays made of them are
            buffers = [self._exactly(size).toreadonly() for size in sizes]
        except OSError as error:
            raise ChannelClosed(str(error)) from None
        return pickle.loads(payload, buffers=buffers)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _exactly(self, count: int) -> memoryview:
        view = memoryview(bytearray(count))
        place = 0
        while place < count:
            got = self._socket.recv_into(view[place:])
            if got == 0:
                raise ChannelClosed("the other side has gone")
            place += got
        return view


def encode(message: object) -> list[bytes | memoryview]:
    """A message as the pieces to send."""
    buffers: list[pickle.PickleBuffer] = []
    payload = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    sizes = b"".join(_SIZE.pack(view.nbytes) for view in raw)
    return [_HEAD.pack(len(payload), len(raw)) + sizes + payload, *raw]
