"""Fragments: which bytes are there, bounds on what waits; order, overlap and headers are tested with IP."""

from __future__ import annotations

import tracemalloc
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.capture.fragments import LIFETIME, MAX_DATAGRAM, MAX_PENDING, Fragment, Fragments

HEADER = bytes([0x45]) + bytes(19)
BODY = bytes(range(200))


def piece(
    low: int, high: int, *, key: bytes = b"k", time: int = 0, kept: int | None = None, size: int = 200
) -> Fragment:
    data = memoryview(BODY)[low:high]
    return Fragment(key, 1, time, HEADER, low, high < size, high - low, data[:kept])


def payloads(fragments: Fragments) -> list[bytes]:
    return [datagram.data[20:] for datagram in fragments.take()]


@pytest.mark.parametrize("order", list(permutations([(0, 8), (8, 96), (96, 200)])))
def test_the_last_missing_piece_makes_it_whole(order: tuple[tuple[int, int], ...]) -> None:
    fragments = Fragments()
    for low, high in order[:-1]:
        fragments.add(piece(low, high))
        assert payloads(fragments) == []
    fragments.add(piece(*order[-1]))
    assert (payloads(fragments), fragments.pending, fragments.take()) == ([BODY], {}, [])


@given(st.lists(st.tuples(st.integers(0, 24), st.integers(1, 25)), max_size=30))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_it_is_whole_exactly_when_all_units_came(spans: list[tuple[int, int]]) -> None:
    fragments, there = Fragments(), set[int]()
    for at, length in spans:
        low, high = at * 8, min((at + length) * 8, 200)
        fragments.add(piece(low, high))
        there |= set(range(low, high))
        if len(there) == 200 and fragments.pending == {}:
            assert payloads(fragments) == [BODY]
            return
    assert payloads(fragments) == []
    assert len(there) < 200


@pytest.mark.parametrize("kept", [0, 7, 103])
def test_a_last_piece_that_was_cut_makes_nothing_whole(kept: int) -> None:
    fragments = Fragments()
    fragments.add(piece(0, 96))
    fragments.add(piece(96, 200, kept=kept))
    assert (fragments.take(), len(fragments.pending)) == ([], 1)
    fragments.add(piece(96, 200))
    assert payloads(fragments) == [BODY]


def test_pieces_that_waited_too_long_are_forgotten() -> None:
    fragments = Fragments()
    fragments.add(piece(0, 96))
    fragments.add(piece(96, 200, time=LIFETIME + 1))
    assert (fragments.take(), len(fragments.pending)) == ([], 1)
    fragments.add(piece(0, 96, time=LIFETIME + 2))
    assert payloads(fragments) == [BODY]


def test_the_oldest_of_too_many_are_forgotten() -> None:
    fragments = Fragments()
    for number in range(MAX_PENDING + 3):
        fragments.add(piece(0, 96, key=b"%d" % number))
    assert len(fragments.pending) == MAX_PENDING
    assert b"2" not in fragments.pending
    assert b"3" in fragments.pending


def test_however_often_a_datagram_is_cut_it_takes_no_more_than_its_size() -> None:
    fragments, data = Fragments(), memoryview(bytes(8000))
    tracemalloc.start()
    for place in range(1, 7000):
        fragments.add(Fragment(b"k", 1, 0, HEADER, place * 8, True, 8000, data))
    assert tracemalloc.get_traced_memory()[1] < 3 * MAX_DATAGRAM
    tracemalloc.stop()
