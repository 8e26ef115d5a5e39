"""Bytes that came: whole frames come out, however they were cut, and what is kept is little more than what is left."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from struct import pack

import pytest

from kwire.broker.received import SMALL, ReceivedBytes


def frames(sizes: list[int]) -> list[bytes]:
    return [bytes((number % 251,)) * size for number, size in enumerate(sizes)]


def taken(received: ReceivedBytes) -> Iterator[bytes]:
    while received.size is not None and len(received) >= 4 + received.size:
        yield bytes(received.take())


@pytest.mark.parametrize("step", [1, 3, 100, SMALL - 1, SMALL, 3 * SMALL, 1 << 20])
@pytest.mark.parametrize("late", [False, True])
def test_frames_come_out_as_they_were(step: int, late: bool) -> None:
    sent = frames([0, 1, 5, 2_000, 7, SMALL, 40_000, 0, 90_000, 3, 3, 3])
    data = b"".join(pack(">i", len(frame)) + frame for frame in sent)
    received, found = ReceivedBytes(), list[bytes]()
    for start in range(0, len(data), step):
        received.add(data[start : start + step])
        if not late:
            found += taken(received)
    assert [*found, *taken(received)] == sent
    assert (len(received), received.size) == (0, None)


def test_pieces_of_all_sizes() -> None:
    chance = random.Random(7)
    sent = frames([chance.choice((0, 3, 50, SMALL, 30_000)) for _ in range(300)])
    data = b"".join(pack(">i", len(frame)) + frame for frame in sent)
    at, received, found = 0, ReceivedBytes(), list[bytes]()
    while at < len(data):
        step = chance.choice((1, 2, 5, 300, SMALL - 1, SMALL, 50_000))
        received.add(data[at : at + step])
        at += step
        assert received.size is None or len(received.head(2)) <= 2
        for frame in taken(received):
            found.append(frame)
            if chance.random() < 0.3:
                break
    assert [*found, *taken(received)] == sent


def test_the_head_may_be_in_several_pieces() -> None:
    received = ReceivedBytes()
    for piece in (b"\0\0" + bytes(1), b"\x09a", b"bc"):
        received.add(piece)
    assert (received.size, received.head(2), len(received)) == (9, b"ab", 7)


def test_a_size_may_be_below_zero() -> None:
    received = ReceivedBytes()
    received.add(b"\xff\xff\xff\xff")
    assert received.size == -1


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """Bytes of memory since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


def test_single_bytes_take_little_more_than_themselves(allocated: Callable[[], int]) -> None:
    received = ReceivedBytes()
    received.add(pack(">i", 1 << 20))
    for _ in range(20_000):
        received.add(bytes(1))
    assert allocated() < 40_000


def test_what_is_left_of_a_piece_does_not_keep_the_piece(allocated: Callable[[], int]) -> None:
    left = [ReceivedBytes() for _ in range(20)]
    for received in left:
        received.add(pack(">i", 100_000) + bytes(100_000) + b"\0")
        received.take()
    assert allocated() < 80_000


def test_what_was_put_together_is_the_callers_own() -> None:
    received, data = ReceivedBytes(), pack(">i", 9_000) + bytes(9_000)
    for pieces in ([data], [data[:5_000], data[5_000:]]):
        for piece in pieces:
            received.add(piece)
        assert type(received.take()) is (bytes if len(pieces) == 1 else bytearray)
