"""Which connections open in a block and lack nothing, and what their bytes are as columns and as pieces."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from kwire.capture.connection import Connection
from kwire.capture.connections import Connections
from kwire.capture.opened import OpenedConnections
from kwire.capture.streams import Stream

ANSWER = (("10.0.0.2", 9092), ("10.0.0.1", 40000))
REQUEST, RESPONSE = b"\0\0\0\x02ab", b"\0\0\0\x01c"


def feed(make: Any, *packets: bytes) -> tuple[OpenedConnections | None, Any]:
    """What is opened, and the connection."""
    found: list[OpenedConnections] = []
    connections = Connections()
    (connection,) = connections.feed_opened(make.segments(make.block(packets)), found.append)
    return (found[0] if found else None), connection


def packets(make: Any, *, first: bytes = REQUEST) -> list[bytes]:
    def sent(data: bytes, seq: int, flags: str = "A") -> bytes:
        return bytes(make.ip4(make.tcp(data, seq, flags)))

    def answered(data: bytes, seq: int, flags: str = "A") -> bytes:
        return bytes(make.ip4(make.tcp(data, seq, flags, 9092, 40000), "10.0.0.2", "10.0.0.1"))

    return [
        sent(b"", 99, "S"), answered(b"", 499, "SA"), sent(first[:4], 100), answered(RESPONSE, 500),
        sent(first[4:], 104), sent(b"", 100 + len(first), "FA"), answered(b"", 505, "FA"),
    ]  # fmt: skip


def test_bytes_stay_in_the_block_until_somebody_takes_them(make: Any) -> None:
    opened, connection = feed(make, *packets(make))
    assert opened is not None
    assert opened.connections == [connection]
    assert [stream.pieces for stream in connection.streams] == [[], []]
    assert [stream.position for stream in connection.streams] == [6, 5]
    assert connection.closed
    data = opened.columns()
    assert data.buffer == REQUEST + RESPONSE
    columns = data.base, data.length, data.position, data.mark_at, data.mark_packet
    assert [column.tolist() for column in columns] == [[0, 6], [6, 5], [0, 0], [0, 4, 6], [3, 5, 4]]


def test_settled_they_are_pieces(make: Any) -> None:
    opened, connection = feed(make, *packets(make))
    assert opened is not None
    opened.settle_all()
    (sent,), (answered,) = (stream.pieces for stream in connection.streams)
    assert (sent.position, sent.data, sent.starts, sent.numbers) == (0, REQUEST, [0, 4], [3, 5])
    assert (answered.position, answered.data, answered.starts, answered.numbers) == (0, RESPONSE, [0], [4])


def test_it_stands_as_one_whose_bytes_are_taken_at_once(make: Any) -> None:
    opened, connection = feed(make, *packets(make))
    assert opened is not None
    opened.settle_all()
    (other,) = Connections().feed(make.segments(make.block(packets(make))))
    assert state(connection) == state(other)


def state(connection: Connection) -> dict[str, Any]:
    """All that is known of a connection."""
    streams = [{name: getattr(stream, name) for name in Stream.__slots__} for stream in connection.streams]
    return {field.name: getattr(connection, field.name) for field in fields(connection)} | {"streams": streams}


@pytest.mark.parametrize(
    "without",
    [[0], [1], [2], [3], [0, 1]],
    ids=["its SYN", "the answer to it", "the first bytes", "the answer", "both SYNs"],
)
def test_nothing_may_be_missing(make: Any, without: list[int]) -> None:
    opened, connection = feed(make, *(one for at, one in enumerate(packets(make)) if at not in without))
    assert opened is None
    assert any(stream.pieces or stream.held for stream in connection.streams)


def test_a_size_that_begins_with_another_byte_is_left_to_who_judges_what_it_is(make: Any) -> None:
    assert feed(make, *packets(make, first=b"\x16\x03\x01\0\0"))[0] is None


def test_a_second_syn_or_bytes_that_come_again_are_read_in_order(make: Any) -> None:
    made = packets(make)
    for again in (made[0], made[2]):
        assert feed(make, *made[:5], again, *made[5:])[0] is None


@pytest.mark.parametrize(("side", "flags"), [(0, "FA"), (1, "FA"), (0, "RA"), (1, "R"), (1, "A")])
@pytest.mark.parametrize(("without", "closing"), [([], [7, 8]), ([1, 3, 6], [5])], ids=["both sides", "the opener"])
@pytest.mark.parametrize("way", ["as columns", "one block", "each in its own"])
def test_last_words_of_one_that_is_not_known_are_not_of_the_next(
    make: Any, side: int, flags: str, without: list[int], closing: list[int], way: str
) -> None:
    """Though their sequence numbers are near."""
    last = make.tcp(b"", 490, flags, 9092, 40000) if side else make.tcp(b"", 90, flags)
    stray = bytes(make.ip4(last, "10.0.0.2", "10.0.0.1") if side else make.ip4(last))
    sent = [stray, *(one for at, one in enumerate(packets(make)) if at not in without)]
    connections = Connections()
    for first, block in enumerate([[one] for one in sent] if way == "each in its own" else [sent], 1):
        segments = make.segments(make.block(block, first=first))
        if way == "as columns":
            list(connections.feed_opened(segments, OpenedConnections.settle_all))
        else:
            list(connections.feed(segments))
    (found,) = connections.finish()
    assert (found.segments, found.epoch, found.opening[0], found.reset) == (len(sent) - 1, 1, 2, False)
    assert [number for _, number in found.closing] == closing
