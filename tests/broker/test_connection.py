"""A connection without a socket: what it writes, and when."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import pack, unpack_from
from typing import Any

import pytest

from kwire.broker.budgets import Pool, TurnQueue
from kwire.broker.connection import AT_ONCE, KEPT, TOGETHER, ServedConnection
from kwire.broker.context import BrokerLimits, Peer
from kwire.broker.nodes import Listener
from kwire.broker.scheduling import SHORT, Turns

METADATA = ("Metadata", 9, {"Topics": None})


class FakeTransport:
    """Keeps what is written; wrote is told of it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False
        self.wrote: Callable[[], None] = lambda: None
        self.read: list[str] = []

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written.append(data)
        self.wrote()

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, _: str) -> None:
        return None

    def pause_reading(self) -> None:
        self.read.append("pause")

    def resume_reading(self) -> None:
        self.read.append("resume")


class FakeOwner:
    """A server whose loop stands still until run()."""

    def __init__(self) -> None:
        self.limits = BrokerLimits()
        self.loop = self
        self.soon: deque[Callable[[], Any]] = deque()
        self.turns = Turns(lambda: 0, self.soon.append)
        self.unfinished: Pool[ServedConnection] = Pool(1 << 30, list, lambda _: (0, 0.0), "")
        self.unsent = self.unfinished
        self.lane: TurnQueue[ServedConnection] = TurnQueue(lambda each: self.turns.want(each.turn))

    def time(self) -> float:
        return 0.0

    def began(self, _: ServedConnection) -> Peer:
        return Peer(1, "127.0.0.1", 5, 1)

    def bug(self, error: Exception) -> None:
        raise error

    def run(self) -> int:
        """How many rounds it took until nothing was left to do."""
        rounds = 0
        while self.soon:
            self.soon.popleft()()
            rounds += 1
        return rounds


@pytest.fixture
def served(make_socketless: Any) -> tuple[Any, ServedConnection, FakeTransport, FakeOwner]:
    socketless, owner, transport = make_socketless(), FakeOwner(), FakeTransport()
    connection = ServedConnection(owner, socketless.service, 1, Listener("PLAINTEXT"), None)
    connection.connection_made(transport)
    return socketless, connection, transport, owner


def framed(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def answers(written: list[bytes]) -> int:
    """How many frames there are, each whole."""
    data, count, pos = b"".join(written), 0, 0
    while pos < len(data):
        pos += 4 + unpack_from(">i", data, pos)[0]
        count += 1
    assert pos == len(data)
    return count


def test_the_answers_of_a_step_are_sent_together(served: Any) -> None:
    socketless, connection, transport, owner = served
    connection.data_received(framed(socketless.frame(*METADATA)) * 16)
    assert owner.run() == 1  # nobody gets in line for what the step has done already
    assert (len(transport.written), answers(transport.written)) == (1, 16)
    connection.data_received(framed(socketless.frame(*METADATA)) * (AT_ONCE + 1))
    owner.run()
    assert (len(transport.written), answers(transport.written)) == (3, 16 + AT_ONCE + 1)


def test_large_answers_do_not_wait_for_the_end_of_the_step(served: Any) -> None:
    socketless, connection, transport, owner = served
    for number in range(40):
        socketless.state.create(f"topic-{number}", 10)
    size = len(socketless.raw(socketless.frame(*METADATA))[0].data)
    connection.data_received(framed(socketless.frame(*METADATA)) * 30)
    owner.run()
    assert answers(transport.written) == 30
    assert TOGETHER < max(map(len, transport.written)) <= TOGETHER + size


def test_who_does_not_read_is_not_answered_further(served: Any) -> None:
    socketless, connection, transport, owner = served
    transport.wrote = connection.pause_writing
    connection.data_received(framed(socketless.frame(*METADATA)) * (AT_ONCE + 1))
    owner.run()
    assert answers(transport.written) == AT_ONCE
    connection.resume_writing()
    owner.run()
    assert answers(transport.written) == AT_ONCE + 1


def test_reading_pauses_for_requests_that_have_to_wait_and_for_no_others(served: Any) -> None:
    socketless, connection, transport, owner = served
    part = {"Index": 0, "Records": bytes(KEPT)}
    body = {"Acks": 1, "TimeoutMs": 1, "TopicData": [{"Name": "t", "PartitionData": [part]}]}
    request = framed(socketless.frame("Produce", 9, body))
    connection.data_received(request)
    owner.run()
    assert (transport.read, answers(transport.written)) == ([], 1)
    connection.turn.took = SHORT  # too long to be taken at once
    connection.data_received(request)
    connection.data_received(request)  # its turn did not come in between
    assert transport.read == ["pause"]
    owner.run()
    assert (transport.read, answers(transport.written)) == (["pause", "resume"], 3)
    connection.pause_writing()
    connection.data_received(request)
    assert transport.read[2:] == ["pause"]


def test_what_was_answered_goes_out_before_the_connection_ends(served: Any) -> None:
    socketless, connection, transport, owner = served
    connection.data_received(framed(socketless.frame(*METADATA)) * 3 + b"GET / HTTP/1.1\r\n")
    owner.run()
    assert answers(transport.written) == 3
    assert transport.closed
    assert "HTTP" in connection.why


def test_half_a_request_takes_no_turn(served: Any) -> None:
    socketless, connection, transport, owner = served
    data = framed(socketless.frame(*METADATA))
    for byte in data[:-1]:
        connection.data_received(bytes((byte,)))
    assert owner.run() == 0
    connection.data_received(data[-1:])
    owner.run()
    assert answers(transport.written) == 1
