"""Messages between a process and its worker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from epicortex.engines.channel import Channel, ChannelClosed, encode
from tests.contracts.world import jobs


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    with one, other:
        yield Channel(one), Channel(other)


def test_messages_arrive_whole_and_in_order(ends: tuple[Channel, Channel]) -> None:
    arrays = [np.arange(size, dtype=np.float32) for size in (0, 1, 3_000_000)]

    def send() -> None:
        for array in arrays:
            ends[0].send(("array", array))

    sender = threading.Thread(target=send)
    sender.start()
    for array in arrays:
        kind, got = ends[1].receive()
        assert kind == "array"
        assert np.array_equal(got, array)
        assert not got.flags.writeable
    sender.join()


def test_a_job_survives_the_journey(ends: tuple[Channel, Channel]) -> None:
    (job,) = jobs(1)
    ends[0].send(job)
    got = ends[1].receive()
    assert got.phenotype.same_bits(job.phenotype)
    assert (got.network, got.generation, got.seed) == (job.network, job.generation, job.seed)


def test_a_message_that_breaks_off_is_no_message() -> None:
    whole = b"".join(bytes(part) for part in encode(("array", np.arange(1000))))
    for length in (0, 5, 30, len(whole) - 1):
        one, other = socket.socketpair()
        with other:
            with one:
                one.sendall(whole[:length])
            with pytest.raises(ChannelClosed):
                Channel(other).receive()


def test_a_stalled_message_and_a_full_pipe_end_after_the_timeout(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(ChannelClosed, match="timed out"):
        ends[1].receive(timeout=0.05)
    with pytest.raises(ChannelClosed, match="timed out"):
        ends[0].send(np.zeros(10_000_000), timeout=0.05)


def test_waiting_tells_silence_from_an_end(ends: tuple[Channel, Channel]) -> None:
    assert not ends[1].waits(0.01)
    ends[0].close()
    assert ends[1].waits(0.01)
    with pytest.raises(ChannelClosed):
        ends[1].receive()
