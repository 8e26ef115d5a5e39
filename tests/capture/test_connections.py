"""From segments to connections: epochs, openings and ends, holes and their bounds; and properties over any traffic."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from capture.conftest import CLOSING, HELLO, MS, OPENING, TALK, TEXT, WORLD, Sent, feed, play, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.capture import tcp
from kwire.capture.connections import LATE_SYN, Connections
from kwire.capture.streams import WRAP, SegmentRun, Stream

PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)


def ways(sent: Sequence[Sent]) -> list[list[Sequence[Sent]]]:
    """The same packets in one block, in two, and each in its own."""
    return [[sent], [sent[: len(sent) // 2], sent[len(sent) // 2 :]], [[one] for one in sent]]


@pytest.mark.parametrize("way", range(3))
def test_a_connection_from_syn_to_fin(make: Any, way: int) -> None:
    (found,) = play(make, *ways([*OPENING, *TALK, *CLOSING])[way])
    assert (found.ends, found.epoch, found.opener, found.opening) == (make.ends, 1, 0, [1, 2])
    assert texts(make, found) == [HELLO, WORLD]
    assert (found.segments, found.first_time, found.fins, found.reset) == (6, 0, 3, False)
    assert (found.closed, found.finished) == (True, True)
    assert [(stream.syn, stream.first) for stream in found.streams] == [(99, 100), (499, 500)]


def test_segments_that_follow_each_other_make_one_piece(make: Any) -> None:
    sent = [(0, 100 + 10 * number, TEXT[10 * number : 10 * number + 10], "A") for number in range(20)]
    (found,) = play(make, OPENING, sent)
    (piece,) = found.streams[0].pieces
    assert (piece.position, piece.data, piece.starts) == (0, TEXT[:200], list(range(0, 200, 10)))
    assert piece.numbers == list(range(3, 23))
    assert piece.times == [MS + number for number in range(20)]


A, B, C = ((0, 100 + low, TEXT[low : low + 10], "A") for low in (0, 10, 20))
OVER = (0, 105, TEXT[5:25], "A")
ALIVE = (0, 109, TEXT[9:10], "A")


@pytest.mark.parametrize("opening", [OPENING, []])
@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize(
    "sent",
    [[A, B, C], [A, C, B], [A, A, B, B, C, C], [A, OVER, C], [A, ALIVE, B, C], [A, B, C, A, B, C], [A, C, OVER]],
)
def test_order_repetition_and_overlap(make: Any, opening: list[Sent], way: int, sent: list[Sent]) -> None:
    (found,) = play(make, *ways([*opening, *sent])[way])
    assert texts(make, found) == [TEXT[:30], b""]
    assert (found.opener, make.gaps(found.streams[0])) == (0 if opening else None, [])


@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize("first", [WRAP - 15, WRAP - 1, 0, 1 << 31])
def test_sequence_numbers_wrap(make: Any, way: int, first: int) -> None:
    sent: list[Sent] = [(0, first - 1, b"", "S"), (1, first + 4, b"", "SA")]
    for low in (10, 0, 20):
        sent += [(0, first + low, TEXT[low : low + 10], "A"), (1, first + 5 + low, TEXT[low : low + 10], "A")]
    (found,) = play(make, *ways([*sent, (0, first + 30, b"", "FA"), (1, first + 35, b"", "FA")])[way])
    assert (texts(make, found), found.closed) == ([TEXT[:30]] * 2, True)


@pytest.mark.parametrize(
    ("sent", "opener", "expected"),
    [
        ([*OPENING, *TALK], 0, [HELLO, WORLD]),
        ([OPENING[0], *TALK], 0, [HELLO, WORLD]),
        ([OPENING[1], *TALK], 0, [HELLO, WORLD]),  # an answer to a SYN tells who sent it
        (TALK, None, [HELLO, WORLD]),
        (TALK[:1], None, [HELLO, b""]),
        ([OPENING[1], TALK[1]], 0, [b"", WORLD]),  # one direction only
        ([OPENING[0], OPENING[0], *OPENING, *TALK], 0, [HELLO, WORLD]),  # sent again
        ([TALK[0], OPENING[0], TALK[1]], 0, [HELLO, WORLD]),  # a SYN that comes late
        ([OPENING[0], TALK[1], OPENING[1], TALK[0]], 0, [HELLO, WORLD]),
        ([(0, 99, b"early", "S"), (1, 499, b"", "SA"), (0, 105, HELLO, "A")], 0, [b"early" + HELLO, b""]),
        ([(0, 99, b"early", "S"), (0, 99, b"", "S"), (0, 100, b"early" + HELLO, "A")], 0, [b"early" + HELLO, b""]),
        ([(0, 99, HELLO, "SF")], 0, [HELLO, b""]),
        ([(0, 99, b"", "S"), (1, 499, b"", "S")], 1, [b"", b""]),  # both at once
    ],
)
@pytest.mark.parametrize("way", range(3))
def test_openings(make: Any, sent: list[Sent], opener: int | None, expected: list[bytes], way: int) -> None:
    (found,) = play(make, *ways(sent)[way])
    opened = None if found.opener is None else make.ends.index(found.ends[found.opener])
    assert (opened, texts(make, found), found.epoch) == (opener, expected, 1)
    assert all(stream.missing == 0 for stream in found.streams)


@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize(
    "second",
    [
        [(0, 7000, b"", "S"), (1, 9000, b"", "SA"), (0, 7001, b"new", "A"), (1, 9001, b"old", "A")],
        [(1, 9000, b"", "S"), (0, 7000, b"", "SA"), (0, 7001, b"new", "A"), (1, 9001, b"old", "A")],
        [(0, 7000, b"new", "S"), (1, 9000, b"old", "SA")],
        [(0, 99 + LATE_SYN * 3, b"", "S"), (0, 100 + LATE_SYN * 3, b"new", "A"), (1, 9000, b"old", "SA")],
    ],
)
@pytest.mark.parametrize("closing", [CLOSING, [(1, 500 + len(WORLD), b"", "R")], []])
def test_a_new_syn_is_a_new_epoch(make: Any, way: int, second: list[Sent], closing: list[Sent]) -> None:
    third: list[Sent] = [(0, 20, b"", "S"), (0, 21, b"x", "A")]
    found = play(make, *ways([*OPENING, *TALK, *closing, *second, *third])[way])
    assert [one.epoch for one in found] == [1, 2, 3]
    assert [texts(make, one) for one in found] == [[HELLO, WORLD], [b"new", b"old"], [b"x", b""]]
    assert found[0].closed is bool(closing)
    assert {one.key for one in found} == {found[0].key}


def test_an_ended_epoch_is_given_before_the_next(make: Any) -> None:
    connections = Connections()
    (first,) = feed(make, connections, [*OPENING, *TALK])
    ended, second = feed(make, connections, [(0, 7000, b"", "S"), (0, 7001, b"new", "A")])
    assert (ended, ended.finished, second.finished) == (first, True, False)
    assert feed(make, connections, [(1, 9000, b"", "SA")]) == [second]
    assert list(connections.finish()) == [second]


def test_a_syn_without_known_bytes_on_its_side_begins_anew(make: Any) -> None:
    found = play(make, TALK[1:], [(0, 99, b"", "S"), (0, 100, HELLO, "A")])
    assert [(one.epoch, texts(make, one)) for one in found] == [(1, [b"", WORLD]), (2, [HELLO, b""])]


@pytest.mark.parametrize(("behind", "epochs"), [(0, [1]), (LATE_SYN, [1]), (LATE_SYN + 1, [1, 2]), (-1, [1, 2])])
@pytest.mark.parametrize("way", range(3))
def test_a_late_syn_belongs_to_what_is_not_far_behind_it(make: Any, behind: int, epochs: list[int], way: int) -> None:
    found = play(make, *ways([(0, 100 + behind, HELLO, "A"), OPENING[0], (1, 499, b"", "SA")])[way])
    assert [one.epoch for one in found] == epochs


@pytest.mark.parametrize(
    ("sent", "closed", "reset"),
    [
        ([*OPENING, *TALK, CLOSING[0]], False, False),
        ([*OPENING, *TALK, *CLOSING], True, False),
        ([*OPENING, (0, 100, HELLO, "FA"), (1, 500, WORLD, "FA")], True, False),
        ([*OPENING, *CLOSING], False, False),  # the FINs are there, what was sent before them is not
        ([*OPENING, *CLOSING, *TALK], True, False),
        ([*OPENING, TALK[0], (0, 111, b"", "R")], True, True),
        ([OPENING[0], (1, 0, b"", "RA")], True, True),  # refused
        (TALK, False, False),
        ([*TALK, *CLOSING], True, False),
    ],
)
@pytest.mark.parametrize("way", range(3))
def test_ends(make: Any, sent: list[Sent], closed: bool, reset: bool, way: int) -> None:
    (found,) = play(make, *ways(sent)[way])
    assert (found.closed, found.reset) == (closed, reset)


@pytest.mark.parametrize("flags", ["FA", "R", "RA"])
def test_the_last_words_of_an_unknown_connection_begin_none(make: Any, flags: str) -> None:
    assert play(make, [(0, 5, b"", flags)]) == []
    assert len(play(make, [(0, 5, b"x", flags)])) == 1


@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize("opening", [True, False])
def test_a_connection_whose_ends_are_the_same(make: Any, way: int, opening: bool) -> None:
    flags = [("S", 99, b""), ("SA", 99, b"")] * opening
    flags += [("A", 100, HELLO), ("A", 100 + len(HELLO), WORLD), ("FA", 100 + len(HELLO + WORLD), b"")]
    packets = [make.ip4(make.tcp(data, seq, flag, 9092, 9092), "127.0.0.1", "127.0.0.1") for flag, seq, data in flags]
    connections, seen = Connections(), {}
    for block in ways(packets)[way]:
        seen.update({id(found): found for found in make.feed(connections, block)})
    seen.update({id(found): found for found in connections.finish()})
    (found,) = seen.values()
    assert found.ends == (("127.0.0.1", 9092), ("127.0.0.1", 9092))
    assert make.data(found.streams[0]) == HELLO + WORLD
    assert make.data(found.streams[1]) == b""


def test_connections_stay_apart_whose_hashes_collide(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "SEED", np.zeros(5, np.uint64))
    ports = range(1000, 1050)
    packets = [make.ip4(make.tcp(b"%d," % port, seq, sport=port)) for seq in (1, 6) for port in ports]
    found = make.feed(Connections(), packets)
    assert [(one.ends[0][1], make.data(one.streams[0])) for one in found] == [
        (port, b"%d,%d," % (port, port)) for port in ports
    ]


def test_a_capture_cut_at_any_byte_invents_nothing(make: Any) -> None:
    packets = [make.segment(*one) for one in [*OPENING, *TALK, *CLOSING]]
    for snaplen in range(40 + len(WORLD) + 1):
        found = make.feed(Connections(), packets, snaplen=snaplen)
        assert len(found) == int(snaplen >= 34)
        for one in found:
            kept = max(snaplen - 40, 0)
            assert texts(make, one) == [HELLO[:kept], WORLD[:kept]]
            assert [stream.position for stream in one.streams] == [len(HELLO), len(WORLD)]
            assert all(gap.cut for stream in one.streams for gap in make.gaps(stream))
            assert (all(make.in_order(stream) for stream in one.streams), one.closed) == (True, True)


Piece = tuple[int, int, int]  # side, from, to


def drawn(data: st.DataObject, side: int, size: int, overlap: bool = True) -> list[Piece]:
    """size bytes of a side in pieces; with overlap some of them twice or again in other pieces."""
    cuts = sorted({0, size, *data.draw(st.lists(st.integers(0, size), max_size=6))})
    pieces = [(side, low, high) for low, high in pairwise(cuts)]
    if overlap and size:
        ends = st.tuples(st.integers(0, size - 1), st.integers(1, size))
        pieces += [(side, low, min(low + more, size)) for low, more in data.draw(st.lists(ends, max_size=4))]
    return pieces


FIRSTS = st.integers(0, WRAP - 1) | st.sampled_from([0, WRAP - 1, WRAP - 50, 1 << 31])


@pytest.mark.slow
@PROPERTY
@given(st.data())
def test_both_sides_give_their_bytes_however_they_were_sent(make: Any, data: st.DataObject) -> None:
    sizes, firsts = data.draw(st.tuples(*[st.integers(0, 200)] * 2)), data.draw(st.tuples(FIRSTS, FIRSTS))
    pieces = data.draw(st.permutations([*drawn(data, 0, sizes[0]), *drawn(data, 1, sizes[1])]))
    sent: list[Sent] = [(side, firsts[side] + low, TEXT[low:high], "A") for side, low, high in pieces]
    extras: list[Sent] = [(side, firsts[side] + sizes[side], b"", "FA") for side in (0, 1)]
    extras += data.draw(st.lists(st.sampled_from([(0, firsts[0] - 1, b"", "S"), (1, firsts[1] - 1, b"", "SA")])))
    for extra in extras:
        sent.insert(data.draw(st.integers(0, len(sent))), extra)
    sent = [(0, firsts[0] - 1, b"", "S"), (1, firsts[1] - 1, b"", "SA"), *sent]
    cuts = sorted({0, len(sent), *data.draw(st.lists(st.integers(0, len(sent)), max_size=5))})
    connections, seen = Connections(), {}
    for low, high in pairwise(cuts):
        seen.update({id(one): one for one in feed(make, connections, sent[low:high], low + 1, low + 1)})
    (found,) = seen.values()
    assert (texts(make, found), found.closed) == ([TEXT[:size] for size in sizes], True)
    for side, stream in enumerate(found.streams):
        assert make.in_order(stream)
        for piece in stream.pieces:
            assert piece.times == piece.numbers
            ends = [*piece.starts[1:], piece.position + len(piece.data)]
            for start, end, number in zip(piece.starts, ends, piece.numbers, strict=True):
                by, seq, carried, _ = sent[number - 1]
                low = (seq - firsts[side]) % WRAP
                assert by == side
                assert low <= start < end <= low + len(carried)
            assert bisect_right(piece.starts, piece.position) == 1


@pytest.mark.slow
@PROPERTY
@given(st.data())
def test_blocks_and_single_segments_agree(make: Any, data: st.DataObject) -> None:
    size, first = data.draw(st.integers(1, 300)), data.draw(FIRSTS)
    cut = data.draw(st.booleans())
    snaplen = data.draw(st.integers(40, 140)) if cut else 1 << 18
    pieces = drawn(data, 0, size, overlap=not cut)
    kept = data.draw(st.lists(st.sampled_from(pieces), unique=True, min_size=1)) if pieces else []
    packets = [make.segment(0, first + low, TEXT[low:high]) for _, low, high in kept]
    connections, slow = Connections(), Stream()
    make.feed(connections, [make.segment(0, first - 1, flags="S")])
    slow.open((first - 1) % WRAP)
    half = data.draw(st.integers(0, len(packets)))
    make.feed(connections, packets[:half], snaplen=snaplen)
    make.feed(connections, packets[half:], snaplen=snaplen, first=half + 1)
    (found,) = connections.finish()
    for number, (_, low, high) in enumerate(kept, 1):
        have = TEXT[low:high][: snaplen - 40]
        slow.take([SegmentRun((first + low) % WRAP, have, high - low, [0], [number], [number])])
    while slow.held:
        slow.give_up()
    fast = found.streams[0]
    assert (make.data(fast), fast.position, fast.missing) == (make.data(slow), slow.position, slow.missing)
    assert make.gaps(fast) == make.gaps(slow)
    assert make.in_order(fast)
    assert make.in_order(slow)


@pytest.mark.parametrize("far", [1 << 21, 1 << 27, 1 << 30, -(1 << 27), -(1 << 30)])
@pytest.mark.parametrize("flags", ["A", "FA", "RA"])
@pytest.mark.parametrize("opening", [OPENING, []])
def test_a_stray_packet_does_not_move_a_connection(make: Any, far: int, flags: str, opening: list[Sent]) -> None:
    connections = Connections()
    sent = [(1, 500 + 10 * at, TEXT[10 * at : 10 * at + 10], "A") for at in range(8)]
    feed(make, connections, [*opening, *sent[:2]])
    stray: Sent = (1, (500 + far) % WRAP, b"stray", flags if abs(far) > 1 << 26 else "A")
    seen = []
    for turn, one in enumerate([stray, *sent[2:]], 1):
        seen += feed(make, connections, [one], turn * 3 * make.second, 10 + turn)
    list(connections.finish())
    (found,) = {id(one): one for one in seen}.values()
    assert make.data(found.streams[1 if found.ends == make.ends else 0]) == TEXT[:80]
    assert (found.epoch, found.reset, found.fins) == (1, False, 0)
